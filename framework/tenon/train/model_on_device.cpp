// Where parameters are made, and how they come to their device.
#include <tenon/train/model_on_device.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/parameter.h>
#include <tenon/tensor/generator.h>

namespace tenon::train {

Model make_model_on_device(const ExperimentConfig& config, const ModelRequest& request) {
  manual_seed(static_cast<std::uint64_t>(config.section("train").integer("seed")));
  if (!device_state(config.device).driver().properties().computes) {
    // There are no values to show.
    const nn::ParametersWithoutMemory scope(config.device);
    Model model = make_model(request);
    PurposeGuard purpose(Purpose::kParameter);
    model.module->to_empty(config.device);
    return model;
  }
  Model model = make_model(request);
  if (config.device.is_cpu()) return model;
  PurposeGuard purpose(Purpose::kParameter);
  model.module->to(config.device);
  return model;
}

}  // namespace tenon::train
