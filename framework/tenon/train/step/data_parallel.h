// A step on several devices: each computes its part of the batch with a copy of the model, and the gradients are summed
// on the first (torch.nn.DataParallel; nn/parallel.h is its form for modules that can be cloned).
//
//   parameters   0 -> 1, 2          broadcast
//   batch        0 -> 0, 1, 2       scatter
//   forward      0    1    2        or forward and loss: train.parallel_loss
//   outputs      0 <- 1, 2          gather
//   gradients    0 <- 1, 2          reduce
//
// The first device holds what the others hold, and besides it the optimiser's state, the data and all outputs.
#pragma once

#include <tenon/runtime/config/experiment.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/model.h>

#include <functional>
#include <span>
#include <vector>

namespace tenon::train {

class DataParallel {
 public:
  /// Copies of `first` on the other devices of the experiment. Throws what make_model_on_device() throws.
  DataParallel(const ExperimentConfig& config, const ModelRequest& request, const Model& first);

  /// The models on the other devices.
  std::span<const Model> copies() const { return std::span(models_).subspan(1); }
  /// Whether losses are computed on the first device, of all outputs: train.parallel_loss, and a model whose loss reads
  /// what its last forward pass left has it where that ran.
  bool loss_on_first() const { return loss_on_first_; }

  /// Broadcasts the parameters and computes the outputs of the whole batch, on the first device.
  Tensor forward(const Batch& batch);
  /// Broadcasts the parameters and computes each device's loss there; their mean by examples, on the first device.
  Tensor mean_loss(const Batch& batch, const std::function<Tensor(const Model& model, const Batch& part)>& loss);
  /// After backward: adds the copies' gradients to those of the first model, and gives theirs back.
  void reduce_gradients();
  /// Of a step that failed: what gradients the copies have goes, or it would be a part of the next step's.
  void forget_gradients() const;

 private:
  std::vector<Batch> scatter(const Batch& batch) const;
  void broadcast() const;

  std::vector<Model> models_;  ///< the first and its copies
  std::vector<Device> devices_;
  bool loss_on_first_;
};

}  // namespace tenon::train
