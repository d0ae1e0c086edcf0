// Meeting the other ranks, a run without a folder, and what stands in for rank 0 when it has died.
#include <tenon/cli/run/rank_run.h>

#include <unistd.h>

#include <tenon/cli/process/exit_code.h>
#include <tenon/cli/process/first_rank.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/results/run_manifest.h>
#include <tenon/cli/run/rank_settings.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/seconds_since.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/process_group.h>
#include <tenon/runtime/result_files.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// Where a rank has died mpirun ends as soon as the others have, and forgets what it has not read of them by then.
constexpr std::chrono::milliseconds kTimeToBeRead{300};

/// Rank 0 tells how far all of them are.
class SilentProgress final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
  bool is_stopping() const override { return interrupt_signal() != 0; }
  void broken_off(const ExperimentResult& so_far) override { so_far_ = so_far; }
  const ExperimentResult& so_far() const { return so_far_; }

 private:
  ExperimentResult so_far_;
};

/// Some communicators take a device's memory for all that is sent: it is set up before anything is.
bool needs_device(const Communicator& ranks) { return !ranks.device_kind().empty(); }

/// Rank 0's path, on every rank. The devices are set up by then.
fs::path broadcast_path(Communicator& ranks, const fs::path& own) {
  std::string path = own.string();
  auto length = static_cast<std::int64_t>(path.size());
  ranks.broadcast({.data = &length, .count = 1, .dtype = Dtype::kInt64}, /*root=*/0)->wait();
  path.resize(static_cast<std::size_t>(length));
  ranks.broadcast({.data = path.data(), .count = path.size(), .dtype = Dtype::kUInt8}, /*root=*/0)->wait();
  return path;
}

/// Of rank 0's error: whether it is there to tell of it.
bool is_told_by_rank_0(const DistributedError& error) {
  return error.said_by() == 0 || std::ranges::find(error.ranks(), 0) == error.ranks().end();
}

enum class Left : std::uint8_t { kByThisRank, kByAnother, kNowhere };

/// As result.json in the folder of rank 0, unless one is there: the first rank that comes leaves it.
Left leave_result(const fs::path& folder, const std::string& json, bool has_page) {
  const fs::path file = folder / kResultFile, own = fs::path(file) += fmt::format(".partial-{}", ::getpid());
  try {
    if (folder.empty() || !fs::exists(folder)) return Left::kNowhere;  // it is on another machine's disk
    write_atomically(own, json);
    const bool is_first = ::link(own.c_str(), file.c_str()) == 0;
    const bool is_there = is_first || errno == EEXIST;
    fs::remove(own);
    if (is_first && has_page) write_atomically(folder / kReportFile, run_html(json));
    return is_first ? Left::kByThisRank : is_there ? Left::kByAnother : Left::kNowhere;
  } catch (const std::exception&) {
    return Left::kNowhere;
  }
}

/// What this rank says of its error; empty: another one says it.
std::string last_words(const Communicator& ranks, const std::exception& error, Left left, const fs::path& folder) {
  const auto* const between = dynamic_cast<const DistributedError*>(&error);
  if (between == nullptr && ranks.has_ended(0)) return {};  // which has told of this error, or of the same of its own
  if (between == nullptr) return with_rank(error.what(), ranks.rank(), ranks.size());
  if (is_told_by_rank_0(*between)) return {};
  if (left == Left::kByThisRank) return fmt::format("{}\nresults: {}", error.what(), folder.string());
  int first = 1;  // of those that are not to blame
  while (std::ranges::find(between->ranks(), first) != between->ranks().end()) ++first;
  if (left == Left::kByAnother || ranks.rank() != first) return {};
  return fmt::format("{}\ntenon: the folder of rank 0 is not seen from here, so that no result was left{}",
                     error.what(), folder.empty() ? "" : ": " + folder.string());
}

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

void begin_ranks(Communicator& ranks, const Config& config) {
  ranks.barrier()->wait();
  if (!needs_device(ranks)) compare_settings(ranks, config);
}

void compare_dry_runs(const RunOptions& options, const Config& config) {
  const ExperimentConfig experiment = config.experiment();
  const bool can_meet = rank_environment().size > 1 && !options.is_cell() && !experiment.distributed.name.empty() &&
                        !find_communicator(experiment.distributed.name).needs_device;
  if (!can_meet) return;
  std::shared_ptr<Communicator> ranks;
  try {
    ranks = meet_ranks(options, config);
  } catch (const DistributedError& error) {
    if (error.exit_code() == ExitCode::kUsage) throw;
    return;  // variables of a launcher that were set by hand, say
  }
  try {
    ranks->barrier()->wait();  // as begin_ranks(), where others may be
    compare_settings(*ranks, config, "--dry-run");
  } catch (const std::exception& error) {
    ranks->abort(error.what(), exit_code_of(error));
    throw;
  }
}

void share_folder(Communicator& ranks, const Config& config, const fs::path& folder) {
  if (needs_device(ranks)) compare_settings(ranks, config);
  static_cast<void>(broadcast_path(ranks, folder));
}

void release_ranks(Communicator& ranks, const Config& config) {
  begin_ranks(ranks, config);
  install(config.experiment());
  share_folder(ranks, config, {});
}

// What mpirun ends with is the code of whichever rank ends first.
void share_interrupt(Communicator& ranks) {
  std::int64_t signal = interrupt_signal();
  const CommBuffer buffer{.data = &signal, .count = 1, .dtype = Dtype::kInt64};
  ranks.all_reduce(buffer, ReduceOp::kMax)->wait();
  note_signal_of_another_rank(static_cast<int>(signal));
}

void say_how_to_go_on(const fs::path& state, const std::string& command) {
  std::error_code ignored;
  if (!command.empty() && fs::exists(state, ignored)) say(go_on_message(command));
}

ExitCode run_rank(const RunOptions& options, const Config& config, const std::shared_ptr<Communicator>& ranks) {
  SilentProgress progress;
  RunRecord record;
  fs::path folder;
  const auto start = std::chrono::steady_clock::now();
  try {
    begin_ranks(*ranks, config);  // to which rank 0 comes when it has found nothing wrong, or says it for all
    ExperimentConfig experiment = config.experiment();
    check_experiment(experiment, ranks->size());
    drop_layers_that_write(experiment);
    install(experiment);
    if (needs_device(*ranks)) compare_settings(*ranks, config);
    folder = broadcast_path(*ranks, {});
    if (folder.empty()) return ExitCode::kDone;  // release_ranks()
    experiment.devices = distributed::devices_of_rank(experiment);
    experiment.device = experiment.devices.front();
    RunState state{.ranks = ranks};
    if (!options.resume.empty()) {
      std::error_code ignored;
      state.file = fs::absolute(fs::path(options.resume) / kStateFile);
      state.go_on = fs::exists(state.file, ignored);
    }
    const ExperimentResult result = run_experiment(experiment, progress, state);
    if (!result.interrupted) return ExitCode::kDone;
    share_interrupt(*ranks);
    return interrupted_exit_code();
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    const auto* const between = dynamic_cast<const DistributedError*>(&error);
    Left left = Left::kNowhere;
    if (between != nullptr && !is_told_by_rank_0(*between)) {
      record.status = RunStatus::kFailed;
      record.error = error.what();
      record.exit_code = static_cast<int>(code);
      record.result = progress.so_far();
      record.earlier_seconds = record.result.earlier_seconds;
      record.seconds = record.earlier_seconds + seconds_since(start);
      left = leave_result(folder, result_json(config, record), config.experiment().section("report").boolean("html"));
    }
    ranks->abort(error.what(), code);
    if (const std::string words = last_words(*ranks, error, left, folder); !words.empty()) {
      say("tenon: " + words);
      if (left == Left::kByThisRank)
        say_how_to_go_on(folder / kStateFile, relaunched(rank_environment(), resume_command(folder)));
      std::this_thread::sleep_for(kTimeToBeRead);
    }
    return code;
  }
}

}  // namespace tenon::cli
