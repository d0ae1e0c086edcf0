// A step on several devices, each with some of the model's layers: a pipeline (nn/pipeline.h). The batch passes through
// it in train.micro_batches parts; gradients are those of one device that computes as many parts.
//
//   device 0   symbols, block0, block1     data, parameters of these layers, their gradients and states
//   device 1   block2, block3              …
//   device 2   block4, norm, head          …, targets and losses
#pragma once

#include <tenon/nn/pipeline.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/model.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::train {

/// Whether the experiment's devices are the stages of a pipeline.
bool is_pipeline(const ExperimentConfig& config);

/// What [train] says of it. Throws ConfigError for a balance that is not made of numbers.
nn::parallel::PipelineOptions pipeline_options(const ExperimentConfig& config);

/// How many layers each of the devices gets. Throws ConfigError for more devices than layers, and for a balance of
/// another sum or length.
std::vector<std::int64_t> stage_sizes(const ExperimentConfig& config, const Model& model);

/// Throws ConfigError, with the reason, for settings that make no sense with stages on several devices.
void check_pipeline(const ExperimentConfig& config);

class PipelineParallel {
 public:
  /// Of a model whose layers lie on their devices: make_model_on_device() has put them there.
  PipelineParallel(const ExperimentConfig& config, const Model& model);

  /// The output for a batch, on the last device.
  Tensor forward(const Tensor& input) { return pipeline_.forward(input); }
  using Scale = std::function<Tensor(const Tensor& loss)>;
  /// Forward and backward of a batch, whose loss counts as `scaled` has it: adds to the gradients of all parameters,
  /// and gives that loss.
  Tensor step(const Batch& batch, const Scale& scaled);
  /// What each stage is: for the results of the devices, in their order.
  void note(std::vector<DeviceResult>& devices) const;
  /// The part of a step in which a stage waits where all take equally long: (p - 1) / (m + p - 1).
  double bubble() const;

 private:
  Tensor loss_of_output(const Tensor& output, const Tensor& target) const;

  const Model model_;
  const std::int64_t micro_batches_, loss_chunks_;
  nn::parallel::Pipeline pipeline_;
};

}  // namespace tenon::train
