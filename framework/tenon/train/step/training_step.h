// What one training step does with its batch: forward and backward by micro-batches, then the update.
#pragma once

#include <tenon/core/options.h>
#include <tenon/optim/in_backward.h>
#include <tenon/optim/master_weights.h>
#include <tenon/optim/optimizer.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/model.h>
#include <tenon/train/parallel/pipeline_parallel.h>
#include <tenon/train/peaks.h>
#include <tenon/train/step/data_parallel.h>
#include <tenon/train/step/mixed_precision.h>
#include <tenon/train/step/ranks.h>
#include <tenon/train/step/techniques.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace tenon::train {

/// The model's own loss where it has one. Else the mean cross entropy of logits, as Model::forward gives them, over
/// every class, pixel or symbol of the target that is not -100.
Tensor loss_of(const Model& model, const Tensor& logits, const Tensor& target);

/// What a step works with, borrowed from the run.
struct StepParts {
  const Options& options;  ///< [train]
  const Techniques& techniques;
  const Model& model;
  Batches& data;
  optim::Optimizer& optimizer;
  MixedPrecision& precision;
  Ranks& ranks;
  const optim::MasterWeights* masters = nullptr;  ///< which the optimiser has in place of parameters; null: none
  std::int64_t batch_size = 1;
  DataParallel* parallel = nullptr;           ///< null: on one device
  PipelineParallel* pipeline = nullptr;       ///< the same: not in stages
  bool computes = true;                       ///< the device
  std::function<void(RunPhase)> phase_ended;  ///< told of each forward and backward pass
};

/// The steps of one run.
class TrainingStep {
 public:
  explicit TrainingStep(StepParts parts);

  /// One step with the examples from `first` on, of which this rank computes its share; the loss of all, nan where the
  /// device computes none. Throws what operators throw.
  double run(std::int64_t first);
  /// Whether the step that was run last began to change parameters and did not come to its end.
  bool is_updating() const { return updating_; }
  /// A scalar's value; nan where the device computes none.
  double number(const Tensor& value) const;

 private:
  Batch read(std::int64_t first, std::int64_t count);
  double run_pipeline(std::int64_t first);
  void update();
  Tensor loss_of_batch(const Batch& batch) const;
  Tensor loss_on_one(const Model& model, const Batch& batch) const;

  StepParts parts_;
  std::optional<optim::OptimizerInBackward> in_backward_;
  bool updating_ = false;
};

}  // namespace tenon::train
