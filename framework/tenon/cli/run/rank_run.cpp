// Meeting the other ranks, and a run without a folder.
#include <tenon/cli/run/rank_run.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/results/run_manifest.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/runtime/process_group.h>
#include <tenon/runtime/result_files.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// Rank 0 tells how far all of them are.
class SilentProgress final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
  bool is_stopping() const override { return interrupt_signal() != 0; }
};

/// Layers observe for rank 0: two ranks would write one file.
void drop_layers_that_write(ExperimentConfig& experiment) {
  std::erase_if(experiment.allocator.layers, [](const LayerConfig& layer) {
    return !layer_file(layer).empty() || !layer_file_elsewhere(layer).empty();
  });
}

}  // namespace

bool is_silent_rank(const RunOptions& options) { return !options.is_cell() && rank_environment().rank != 0; }

std::shared_ptr<Communicator> meet_ranks(const RunOptions& options, const Config& config) {
  const ExperimentConfig experiment = config.experiment();
  const RankEnvironment launched = rank_environment();
  if (experiment.distributed.name.empty()) {
    if (launched.size == 1 || options.is_cell()) return nullptr;
    throw ConfigError(fmt::format(
        "{} started {} processes, and the experiment is that of one: set distributed.name for them to train one model "
        "together",
        launched.launcher, launched.size));
  }
  return distributed::init_process_group(experiment.distributed.name, experiment.distributed.options);
}

ExitCode run_rank(const RunOptions& options, const Config& config, std::shared_ptr<Communicator> ranks) {
  ExperimentConfig experiment = config.experiment();
  check_experiment(experiment);
  drop_layers_that_write(experiment);
  install(experiment);
  experiment.device = distributed::device_of_rank(experiment);
  experiment.devices = {experiment.device};
  RunState state{.ranks = std::move(ranks)};
  if (!options.resume.empty()) {
    std::error_code ignored;
    state.file = fs::absolute(fs::path(options.resume) / kStateFile);
    state.go_on = fs::exists(state.file, ignored);
  }
  SilentProgress progress;
  const ExperimentResult result = run_experiment(experiment, progress, state);
  return result.interrupted ? interrupted_exit_code() : ExitCode::kDone;
}

}  // namespace tenon::cli
