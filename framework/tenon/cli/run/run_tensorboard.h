// What a run tells TensorBoard: curves over its steps, and its settings beside what came of them.
#pragma once

#include <tenon/memory/stats.h>
#include <tenon/runtime/config/config.h>
#include <tenon/tensorboard/summary_writer.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tenon::cli {

/// What the file, the environment and the command line set of the experiment itself: its hyperparameters. Where the
/// run's results go is none.
HParams hparams_of(const Config& config);

/// Every function throws Error where the events cannot be written.
class RunTensorboard {
 public:
  RunTensorboard(std::string folder, HParams hparams) : folder_(std::move(folder)), hparams_(std::move(hparams)) {}

  /// The first step comes next. `done` are steps that an earlier part of the run has done: what it wrote of later ones
  /// is void.
  void begin(std::int64_t done);
  void step(const Progress& now, const MemoryStats& stats);
  /// The run has ended, well or not.
  void end(const ExperimentResult& result, bool succeeded);

 private:
  std::string folder_;
  HParams hparams_;
  std::optional<SummaryWriter> writer_;
  std::map<int, std::int64_t> last_step_of_epoch_;
};

}  // namespace tenon::cli
