// Which data an experiment trains on, and in which form its model wants them. Declared in batches.h and data_set.h.
#include <tenon/train/input/data_set.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {

TrainingData open_pictures(const ExperimentConfig& config, const std::string& place, Dtype dtype,
                           data::ImageSet (*read)(const std::string& place, data::Split split)) {
  const Options& data = config.section("data");
  const Options model = with_preset(config.section("model"));
  TrainingData result;
  ImageBatchOptions options{.image_size = model.integer("image_size"),
                            .channels = std::max<std::int64_t>(1, model.integer("channels")),
                            .label_pixels = task_of(model.text("name")) == Task::kSegment,
                            .dtype = dtype,
                            .device = config.device};
  const auto load = [&](data::Split split, const char* limit) {
    const data::ImageSet set = read(place, split);
    result.shape.height = options.image_size > 0 ? options.image_size : set.height;
    result.shape.width = options.image_size > 0 ? options.image_size : set.width;
    result.shape.channels = options.channels;
    result.shape.classes = set.classes + (options.label_pixels ? 1 : 0);  // and the background
    if (const std::int64_t wanted = model.integer("classes"); wanted > 0) {
      if (wanted < result.shape.classes) {
        throw config.error("model.classes", fmt::format("{} is less than the {} classes that the pictures have", wanted,
                                                        result.shape.classes));
      }
      result.shape.classes = wanted;
    }
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
  const Options model = with_preset(config.section("model"));
  const bool has_masks = task_of(model.text("name")) == Task::kMasked;
  const auto symbols = static_cast<std::int64_t>(corpus.vocabulary.size());
  TrainingData result;
  result.shape.context = model.integer("context");
  result.shape.vocabulary = symbols + (has_masks ? 1 : 0);
  if (const std::int64_t wanted = model.integer("vocabulary"); wanted > 0) {
    if (wanted < result.shape.vocabulary) {
      throw config.error("model.vocabulary", fmt::format("{} is less than the {} symbols that the text has{}", wanted,
                                                         symbols, has_masks ? " and one for the mask" : ""));
    }
    result.shape.vocabulary = wanted;
  }
  result.train = make_text_batches(corpus.train, result.shape.context, data.integer("limit"), config.device);
  result.test = make_text_batches(corpus.validation, result.shape.context, data.integer("test_limit"), config.device);
  if (has_masks) {
    for (std::unique_ptr<Batches>* part : {&result.train, &result.test})
      *part = make_masked_batches(std::move(*part), result.shape.context, symbols, config.device);
  }
  return result;
}

void check_data(const ExperimentConfig& config) {
  const std::string& model = config.section("model").text("name");
  const DataSet& set = data_set(config.section("data").text("name"));
  const Content wanted = reads_text(task_of(model)) ? Content::kText : Content::kPictures;
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
