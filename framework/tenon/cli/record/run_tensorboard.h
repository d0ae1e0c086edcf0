// What a run tells TensorBoard: curves over its steps, and its settings beside what came of them.
#pragma once

#include <tenon/memory/stats.h>
#include <tenon/runtime/config/config.h>
#include <tenon/tensorboard/summary_writer.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::cli {

/// What the file, the environment and the command line set of the experiment itself, and what `varied` names besides:
/// its hyperparameters. Where the run's results go is none. TensorBoard has one list of them for all runs that it
/// shows, so that the cells of a sweep name the same ones.
HParams hparams_of(const Config& config, const std::vector<std::string>& varied);

/// The memory of one of the run's devices.
struct DeviceStats {
  std::string name;  ///< empty where there is one alone
  MemoryStats stats;
};

/// Every function throws Error where the events cannot be written.
class RunTensorboard {
 public:
  RunTensorboard(std::string folder, HParams hparams) : folder_(std::move(folder)), hparams_(std::move(hparams)) {}

  /// The first step comes next. `done` are steps that an earlier part of the run has done: what it wrote of later ones
  /// is void.
  void begin(std::int64_t done);
  void step(const Progress& now, const std::vector<DeviceStats>& devices);
  /// Of this part of the run, all that have ended; those that were not told before end with that step.
  void epochs(const std::vector<EpochResult>& epochs, std::int64_t step);
  /// The run has ended, well or not; nothing is said of one that was interrupted and may go on.
  void end(const ExperimentResult& result, bool succeeded);

 private:
  std::string folder_;
  HParams hparams_;
  std::optional<SummaryWriter> writer_;
  std::size_t told_epochs_ = 0;
};

}  // namespace tenon::cli
