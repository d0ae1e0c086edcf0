// Stages on their devices, and a step through them.
#include <tenon/train/parallel/pipeline_parallel.h>

#include <tenon/core/error.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/step/training_step.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace tenon::train {

bool is_pipeline(const ExperimentConfig& config) {
  return config.devices.size() > 1 && config.section("train").text("parallel") == "pipeline";
}

nn::parallel::PipelineOptions pipeline_options(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  std::vector<std::int64_t> balance;
  std::istringstream words(train.text("pipeline_balance"));
  for (std::string word; std::getline(words, word, ',');) {
    const auto begin = word.find_first_not_of(' ');
    const char* const first = word.data() + (begin == std::string::npos ? 0 : begin);
    const char* const last = word.data() + word.size();
    std::int64_t count = 0;
    const auto [end, problem] = std::from_chars(first, last, count);
    if (problem != std::errc() || end != last || count < 1)
      throw config.error("train.pipeline_balance",
                         fmt::format("'{}' is no number of layers: \"3,4,4\" is for three devices", word));
    balance.push_back(count);
  }
  const bool is_gpipe = train.text("pipeline_schedule") == "gpipe";
  return nn::parallel::PipelineOptions()
      .micro_batches(train.integer("micro_batches"))
      .schedule(is_gpipe ? nn::parallel::PipelineSchedule::kGPipe : nn::parallel::PipelineSchedule::k1F1B)
      .balance(std::move(balance));
}

std::vector<std::int64_t> stage_sizes(const ExperimentConfig& config, const Model& model) {
  const std::size_t layers = model.stages.layers->size();
  if (config.devices.size() > layers)
    throw config.error("device.names",
                       fmt::format("{} devices, but the model has {} layers: a stage needs one at least",
                                   config.devices.size(), layers));
  try {
    return nn::parallel::pipeline_balance(model.stages.layers, config.devices.size(), pipeline_options(config));
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw config.error("train.pipeline_balance", error.what());
  }
}

void check_pipeline(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const auto refuse = [&](const char* key, const char* why) { throw config.error(key, why); };
  if (train.text("parallel") == "pipeline" && config.devices.size() < 2)
    refuse("train.parallel", "the stages of a pipeline lie on several devices: name them in device.names");
  if (!is_pipeline(config)) {
    if (!train.text("pipeline_balance").empty())
      refuse("train.pipeline_balance", "there are no stages: train.parallel = \"pipeline\" makes some");
    return;
  }
  const std::string& model = config.section("model").text("name");
  const std::vector<std::string> staged = staged_models();
  if (std::ranges::find(staged, model) == staged.end())
    throw config.error("train.parallel", fmt::format("the model '{}' is not made of layers one after another; {} are",
                                                     model, fmt::join(staged, ", ")));
  static_cast<void>(pipeline_options(config));
  if (offload_of(train).activations)
    refuse("train.offload",
           "a stage keeps what its micro-batches need on its device: more micro-batches, or 1f1b, take "
           "less of it");
  if (train.text("quantize") != "none")
    refuse("train.quantize", "integers are tested on one device: train.save the model and quantize it there");
  if (train.real("checkpoint_budget") > 0 || train.size("checkpoint_memory") > 0)
    refuse(train.real("checkpoint_budget") > 0 ? "train.checkpoint_budget" : "train.checkpoint_memory",
           "a budget is that of one device: with stages give train.checkpoint_blocks");
}

PipelineParallel::PipelineParallel(const ExperimentConfig& config, const Model& model)
    : model_(model),
      micro_batches_(config.section("train").integer("micro_batches")),
      loss_chunks_(config.section("train").integer("chunked_loss")),
      pipeline_(model.stages.layers, config.devices, pipeline_options(config)) {}

namespace {

/// While it lives the last stage ends before the output layer.
class HeadLeftOut {
 public:
  explicit HeadLeftOut(std::shared_ptr<bool> flag) : flag_(std::move(flag)) {
    if (flag_) *flag_ = true;
  }
  ~HeadLeftOut() {
    if (flag_) *flag_ = false;
  }
  HeadLeftOut(const HeadLeftOut&) = delete;
  HeadLeftOut& operator=(const HeadLeftOut&) = delete;

 private:
  std::shared_ptr<bool> flag_;
};

}  // namespace

Tensor PipelineParallel::loss_of_output(const Tensor& output, const Tensor& target) const {
  return loss_chunks_ == 0 ? loss_of(model_, output, target)
                           : chunked_loss_of(model_.stages.head_input(output), target, loss_chunks_);
}

Tensor PipelineParallel::step(const Batch& batch, const Scale& scaled) {
  const auto loss = [&](const Tensor& output, const Tensor& target) { return scaled(loss_of_output(output, target)); };
  const HeadLeftOut without(loss_chunks_ > 0 ? model_.stages.leaves_out_head : nullptr);
  try {
    Tensor sum = pipeline_.step(batch.input, batch.target, loss);
    if (model_.stages.tied) model_.stages.tied->give_back();
    return sum;
  } catch (...) {
    if (model_.stages.tied) model_.stages.tied->forget();
    throw;
  }
}

void PipelineParallel::note(std::vector<DeviceResult>& devices) const {
  for (std::size_t i = 0; i < devices.size() && i < pipeline_.stages().size(); ++i) {
    const nn::parallel::PipelineStage& stage = pipeline_.stages()[i];
    devices[i].stage = StageResult{
        .layers = stage.modules, .parameters = stage.parameters, .peak_micro_batches = stage.peak_micro_batches};
  }
}

double PipelineParallel::bubble() const {
  const auto waits = static_cast<double>(pipeline_.stages().size()) - 1;
  return waits / (static_cast<double>(micro_batches_) + waits);
}

}  // namespace tenon::train
