// A training run: data and model onto the device, steps, tests, figures.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/optim/optimizer.h>
#include <tenon/optim/schedulers.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/model.h>
#include <tenon/train/peaks.h>
#include <tenon/train/progress.h>
#include <tenon/train/resume/saved_run.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/step/data_parallel.h>
#include <tenon/train/step/ranks.h>
#include <tenon/train/step/run_attribution.h>
#include <tenon/train/step/settling.h>
#include <tenon/train/step/techniques.h>
#include <tenon/train/step/training_step.h>
#include <tenon/train/step/virtual_steps.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace tenon::train {

/// New tensors of this scope have the experiment's dtype.
class DefaultDtype {
 public:
  explicit DefaultDtype(Dtype dtype) : previous_(get_default_dtype()) { set_default_dtype(dtype); }
  ~DefaultDtype() { set_default_dtype(previous_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  TypeMeta previous_;
};

/// Less than the whole, for estimates; 0 = no limit.
struct TrainingLimits {
  std::int64_t steps = 0;
  bool until_settled = false;     ///< what an epoch brings once memory is as it was before is left out: settling.h
  std::int64_t test_batches = 0;  ///< of each test
  bool tests = true;              ///< false: there is none
  bool skips = true;              ///< false: an update is made of gradients that are not finite, too, for its memory

  bool is_whole() const { return steps == 0 && !until_settled; }
};

inline constexpr int kMostTries = 3;  ///< of a step that runs out of memory

/// One run, once.
class Training {
 public:
  Training(const ExperimentConfig& config, ProgressSink& progress, TrainingLimits limits = {}, RunState state = {});
  ExperimentResult run();

 private:
  ExperimentResult run_to_its_end();
  void prepare();
  void share_threads();
  void make_step();
  void attribute();
  void check_attribution(std::string_view when);
  void report_attribution();
  void check_sizes() const;
  /// After the first forward pass.
  void check_blocks();
  void resume();
  RunPosition position() const;
  RunParts saved_parts();
  ExperimentResult so_far() const;
  std::string what_this_rank_sees() const;
  void tell_what_there_is();
  void save_whole(const std::function<void()>& save);
  void save();
  void keep_state();
  void write_state();
  TheoryRequest theory_request() const;
  /// `train.checkpoint_budget`: how many blocks run again.
  void choose_checkpoints();
  bool has_closed_form() const;
  void note_theory();
  /// `train.quantize`. Estimates and devices without values leave it out.
  void compare_with_integers();
  // Whether it came to its end, rather than being interrupted.
  bool run_epoch(int epoch);
  double timed_step(std::int64_t first);
  double step_or_retry(std::int64_t first);
  bool test(int epoch, EpochResult& figures);
  void report(const char* phase, int epoch, double loss);
  std::int64_t steps_done() const { return first_step_ + result_.steps; }

  const ExperimentConfig& config_;
  const Options& options_;
  const Techniques techniques_;
  ProgressSink& progress_;
  TrainingLimits limits_;
  const RunState state_;
  Ranks ranks_;
  DeviceState& device_;
  const bool computes_;  ///< the device; asked once, as properties are read from the machine
  std::optional<DefaultDtype> dtype_;
  std::optional<MixedPrecision> precision_;
  TrainingData data_;
  const std::shared_ptr<OperatorNames> met_ = std::make_shared<OperatorNames>();  ///< in blocks that run again
  bool is_reach_checked_ = false;
  CheckpointedBlocks checkpoint_;
  Model model_;
  std::optional<optim::MasterWeights> masters_;
  std::optional<DataParallel> parallel_;
  std::optional<PipelineParallel> pipeline_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LRScheduler> schedule_;
  std::optional<TrainingStep> step_;
  std::optional<Settling> settling_;  ///< with limits_.until_settled
  std::int64_t scheduled_ = 0;        ///< the step that the rates are for
  std::int64_t batch_size_ = 1, steps_per_epoch_ = 0;
  std::int64_t planned_steps_ = 0;  ///< what the course of the learning rate is laid out for
  std::int64_t last_step_ = 0;      ///< this run ends here; the plan's end, or earlier to be resumed
  std::int64_t first_step_ = 0;     ///< of this run: what it resumed from had done so many
  double epoch_loss_sum_ = 0;
  double epoch_seconds_ = 0;
  int epoch_ = 1;  ///< under way
  int epochs_ = 0;
  std::chrono::steady_clock::time_point start_;
  PhaseWatch phases_;
  std::vector<std::unique_ptr<RunAttribution>> attributions_;   ///< with report.attribution, one of each device
  std::vector<memory::AttributionReport> device_attributions_;  ///< what they said in the end
  VirtualSteps virtual_steps_;
  ExperimentResult earlier_;  ///< of the parts before this one, with state_.go_on
  ExperimentResult result_;   ///< of this part
};

}  // namespace tenon::train
