// Which data an experiment trains on, and in which form its model wants them. Declared in batches.h.
#include <tenon/train/input/batches.h>

#include <fmt/format.h>

namespace tenon::train {
namespace {

std::filesystem::path folder_of(const ExperimentConfig& config, std::string_view usual) {
  const std::string& given = config.section("data").text("path");
  return given.empty() ? std::filesystem::path(usual) : config.resolve(given);
}

TrainingData open_pictures(const ExperimentConfig& config, Task task, Dtype dtype) {
  const Options& data = config.section("data");
  const std::filesystem::path folder = folder_of(config, data::kFashionMnistFolder);
  TrainingData result;
  ImageBatchOptions options{.image_size = config.section("model").integer("image_size"),
                            .label_pixels = task == Task::kSegment,
                            .dtype = dtype,
                            .device = config.device};
  const auto load = [&](data::Split split, const char* limit) {
    const data::ImageSet set = data::read_mnist(folder, split);
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

TrainingData open_text(const ExperimentConfig& config) {
  const Options& data = config.section("data");
  const data::TextUnit unit = data.text("unit") == "byte" ? data::TextUnit::kByte : data::TextUnit::kCharacter;
  const data::TextCorpus corpus = data::read_text(folder_of(config, data::kTextFolder), unit);
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

}  // namespace

void check_data(const ExperimentConfig& config) {
  const std::string& model = config.section("model").text("name");
  const std::string& data = config.section("data").text("name");
  const bool is_text = data == "text";
  if (is_text != (task_of(model) == Task::kLanguage)) {
    throw config.error(is_text ? "data.name" : "model.name",
                       fmt::format("the model '{}' learns from {}; data.name = \"{}\" has {}", model,
                                   is_text ? "pictures" : "text", data, is_text ? "text" : "pictures"));
  }
  if (is_text) return data::check_text(folder_of(config, data::kTextFolder));
  for (const data::Split split : {data::Split::kTrain, data::Split::kTest})
    data::check_mnist(folder_of(config, data::kFashionMnistFolder), split);
}

TrainingData open_data(const ExperimentConfig& config, Dtype dtype) {
  check_data(config);
  const Task task = task_of(config.section("model").text("name"));
  return task == Task::kLanguage ? open_text(config) : open_pictures(config, task, dtype);
}

}  // namespace tenon::train
