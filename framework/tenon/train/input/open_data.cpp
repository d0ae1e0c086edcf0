// Which data an experiment trains on, and in which form its model wants them. Declared in batches.h and data_set.h.
#include <tenon/train/input/data_set.h>

#include <fmt/format.h>

namespace tenon::train {

TrainingData open_pictures(const ExperimentConfig& config, const std::string& place, Dtype dtype,
                           data::ImageSet (*read)(const std::string& place, data::Split split)) {
  const Options& data = config.section("data");
  TrainingData result;
  ImageBatchOptions options{.image_size = config.section("model").integer("image_size"),
                            .label_pixels = task_of(config.section("model").text("name")) == Task::kSegment,
                            .dtype = dtype,
                            .device = config.device};
  const auto load = [&](data::Split split, const char* limit) {
    const data::ImageSet set = read(place, split);
    result.shape.height = options.image_size > 0 ? options.image_size : set.height;
    result.shape.width = options.image_size > 0 ? options.image_size : set.width;
    result.shape.classes = set.classes + (options.label_pixels ? 1 : 0);  // and the background
    options.limit = data.integer(limit);
    return make_image_batches(set, options);
  };
  result.train = load(data::Split::kTrain, "limit");
  result.test = load(data::Split::kTest, "test_limit");
  return result;
}

TrainingData open_text(const ExperimentConfig& config, const std::string& place) {
  const Options& data = config.section("data");
  const data::TextUnit unit = data.text("unit") == "byte" ? data::TextUnit::kByte : data::TextUnit::kCharacter;
  const data::TextCorpus corpus = data::read_text(place, unit);
  TrainingData result;
  result.shape.context = config.section("model").integer("context");
  result.shape.vocabulary = static_cast<std::int64_t>(corpus.vocabulary.size());
  if (const std::int64_t wanted = config.section("model").integer("vocabulary"); wanted > 0) {
    if (wanted < result.shape.vocabulary) {
      throw config.error("model.vocabulary", fmt::format("{} is less than the {} symbols that the text has", wanted,
                                                         result.shape.vocabulary));
    }
    result.shape.vocabulary = wanted;
  }
  result.train = make_text_batches(corpus.train, result.shape.context, data.integer("limit"), config.device);
  result.test = make_text_batches(corpus.validation, result.shape.context, data.integer("test_limit"), config.device);
  return result;
}

void check_data(const ExperimentConfig& config) {
  const std::string& model = config.section("model").text("name");
  const DataSet& set = data_set(config.section("data").text("name"));
  const Content wanted = task_of(model) == Task::kLanguage ? Content::kText : Content::kPictures;
  if (set.content != wanted) {
    throw config.error(set.content == Content::kText ? "data.name" : "model.name",
                       fmt::format("the model '{}' learns from {}; data.name = \"{}\" has {}", model, name_of(wanted),
                                   set.name, name_of(set.content)));
  }
  set.check(place_of(config, set));
}

TrainingData open_data(const ExperimentConfig& config, Dtype dtype) {
  check_data(config);
  const DataSet& set = data_set(config.section("data").text("name"));
  return set.open(config, place_of(config, set), dtype);
}

}  // namespace tenon::train
