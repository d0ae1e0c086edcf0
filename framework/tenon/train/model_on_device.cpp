// Where parameters are made, and how they come to their device.
#include <tenon/train/model_on_device.h>

#include <tenon/train/parallel/pipeline_parallel.h>
#include <tenon/train/serve/serving.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/lora.h>
#include <tenon/nn/parameter.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/tensor/generator.h>

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <string_view>

namespace tenon::train {

namespace {

/// The model; with train.lora_rank low-rank matrices are beside its linear layers, whose weights may be integers. The
/// output layer is left out: a loss in chunks reads its weight.
Model make_whole_model(const ExperimentConfig& config, const ModelRequest& request) {
  Model model = make_model(request);
  const Options& train = config.section("train");
  if (const std::string& scheme = train.text("quantize"); serves(config) && scheme.starts_with("weight_only")) {
    model.module->eval();
    nn::quantization::quantize_weights(*model.module, scheme.ends_with("8") ? 8 : 4);
  }
  if (train.integer("lora_rank") == 0) return model;
  const std::string& part = train.text("lora_layers");
  try {
    if (const std::string& weights = train.text("lora_weights"); weights != "float") {
      model.module->eval();
      nn::quantization::quantize_weights(*model.module, weights == "int8" ? 8 : 4, 64,
                                         [](const std::string& path, const nn::Module&) { return path != "head"; });
      model.module->train();
    }
    nn::add_lora(*model.module, nn::LoraOptions(train.integer("lora_rank"))
                                    .alpha(train.real("lora_alpha"))
                                    .choice([part](const std::string& path) {
                                      return path != "head" && path.find(part) != std::string::npos;
                                    }));
  } catch (const OutOfMemory&) {  // whatever the setting is
    throw;
  } catch (const Error& error) {
    const bool is_of_choice =
        !part.empty() && std::string_view(error.what()).find("no linear layer") != std::string::npos;
    throw config.error(is_of_choice ? "train.lora_layers" : "train.lora_rank",
                       is_of_choice ? fmt::format("\"{}\": {}", part, error.what()) : std::string(error.what()));
  }
  return model;
}

std::atomic<int> on = 0;  ///< MakesAsOnHost that live

/// The layers of each stage to its device, by `move`.
template <class Move>
void place_stages(const ExperimentConfig& config, const Model& model, Move move) {
  const std::vector<std::int64_t> sizes = stage_sizes(config, model);
  std::size_t layer = 0;
  for (std::size_t stage = 0; stage < sizes.size(); ++stage)
    for (std::int64_t i = 0; i < sizes[stage]; ++i) move(*model.stages.layers->ptr(layer++), config.devices[stage]);
}

}  // namespace

MakesAsOnHost::MakesAsOnHost() { ++on; }
MakesAsOnHost::~MakesAsOnHost() { --on; }
bool MakesAsOnHost::is_on() { return on > 0; }

Model make_model_on_device(const ExperimentConfig& config, const ModelRequest& request, bool stays_on_host) {
  manual_seed(static_cast<std::uint64_t>(config.section("train").integer("seed")));
  if (!device_state(config.device).driver().properties().computes) {
    // There are no values to show.
    const bool is_host = MakesAsOnHost::is_on() && !is_pipeline(config);
    const nn::ParametersWithoutMemory scope(config.device, /*at_once=*/is_host);
    Model model = make_whole_model(config, request);
    if (is_host) return model;
    PurposeGuard purpose(Purpose::kParameter);
    if (is_pipeline(config))
      place_stages(config, model, [](nn::Module& layer, Device device) { layer.to_empty(device); });
    else
      model.module->to_empty(config.device);
    return model;
  }
  Model model = make_whole_model(config, request);
  if (config.device.is_cpu() || stays_on_host) return model;
  PurposeGuard purpose(Purpose::kParameter);
  if (is_pipeline(config))
    place_stages(config, model, [](nn::Module& layer, Device device) { layer.to(device); });
  else
    model.module->to(config.device);
  return model;
}

double trained_elements(const nn::Module& module) {
  double elements = 0;
  for (const Tensor& parameter : nn::trainable_parameters(module)) elements += static_cast<double>(parameter.numel());
  return elements;
}

}  // namespace tenon::train
