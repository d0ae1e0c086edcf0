// Pipelined model parallelism: a Sequential cut into stages, one on each device, that work on micro-batches of the
// batch at the same time. Two schedules, of p stages and m micro-batches (digits: forward, letters: backward):
//
//   GPipe (Huang et al., 2019)             1F1B (PipeDream-Flush: Narayanan et al., 2021)
//   stage 0  1 2 3 4 . . . . d c b a       stage 0  1 2 . . a 3 b 4 c . d
//   stage 1  . 1 2 3 4 . . d c b a         stage 1  . 1 a 2 b 3 c 4 d
//
// Both leave a stage idle for (p - 1) / (m + p - 1) of a step, if stages take equally long. GPipe keeps what backward
// needs of all m micro-batches, 1F1B on stage k of at most p - k.
//
//   nn::parallel::Pipeline pipeline(model, devices, nn::parallel::PipelineOptions().micro_batches(8));
//   optim::SGD optimizer(model->parameters(), 0.1);
//   for (…) { optimizer.zero_grad(); const double loss = pipeline.step(x, y, loss_function).item<double>();
//   optimizer.step(); }
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::nn::parallel {

/// In which order a stage computes: all forward passes first, or one backward pass for each forward pass as soon as the
/// pipeline is full.
enum class PipelineSchedule : std::uint8_t { kGPipe, k1F1B };

struct TENON_API PipelineOptions {
  /// Into how many parts a batch is cut, along its first dim.
  PipelineOptions& micro_batches(std::int64_t count);
  std::int64_t micro_batches() const { return micro_batches_; }
  /// The order of passes; 1F1B unless another is set.
  PipelineOptions& schedule(PipelineSchedule schedule);
  PipelineSchedule schedule() const { return schedule_; }
  /// How many modules of the Sequential each stage gets; unless set, stages with about as many parameters each.
  PipelineOptions& balance(std::vector<std::int64_t> modules);
  const std::vector<std::int64_t>& balance() const { return balance_; }

 private:
  std::int64_t micro_batches_ = 1;
  PipelineSchedule schedule_ = PipelineSchedule::k1F1B;
  std::vector<std::int64_t> balance_;
};

/// One pass of one micro-batch on one stage.
struct PipelinePass {
  std::int64_t stage = 0;
  std::int64_t micro_batch = 0;
  bool backward = false;
  bool operator==(const PipelinePass&) const = default;
};

/// The passes of a step in an order in which each finds what it needs, of every stage in the schedule's order; passes
/// of different stages that stand together may run at the same time.
TENON_API std::vector<PipelinePass> pipeline_passes(PipelineSchedule schedule, std::int64_t stages,
                                                    std::int64_t micro_batches);

/// How many modules of the Sequential each of so many stages gets: the balance of the options, or one with about as
/// many parameters in each. Throws Error as Pipeline's constructor does.
TENON_API std::vector<std::int64_t> pipeline_balance(const Sequential& model, std::size_t stages,
                                                     const PipelineOptions& options = {});

/// What a stage is and holds.
struct PipelineStage {
  Device device;
  std::vector<std::string> modules;       ///< names in the Sequential
  std::int64_t parameters = 0;            ///< elements
  std::int64_t peak_micro_batches = 0;    ///< whose activations were there at the same time in the last step
  std::int64_t peak_allocated_bytes = 0;  ///< of its device, in the last step
};

class TENON_API Pipeline {
 public:
  /// Moves the modules of each stage to its device. Throws Error without devices, for more devices than modules, for a
  /// balance of another sum or length, and for fewer than one micro-batch.
  Pipeline(const Sequential& model, std::vector<Device> devices, const PipelineOptions& options = {});
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  using Loss = std::function<Tensor(const Tensor& output, const Tensor& target)>;
  /// Forward and backward of a batch: gradients are added to the parameters', as of the mean of the losses of its
  /// micro-batches, each by its share of the examples. Returns that mean, on the last device. `loss` gives the mean
  /// over its examples. An input that requires a gradient gets one. Under autocast forward passes and losses are cast,
  /// backward passes are not; a parameter's cast is made once a step and kept for its micro-batches. Throws Error where
  /// the batch has fewer examples than there are micro-batches.
  Tensor step(const Tensor& input, const Tensor& target, const Loss& loss);
  /// The output for a batch, on the last device: the stages one after another, recorded as grad mode says.
  Tensor forward(const Tensor& input);

  /// The stages, first to last.
  const std::vector<PipelineStage>& stages() const;

 private:
  struct Parts;
  Owned<Parts> parts_;
};

}  // namespace tenon::nn::parallel
