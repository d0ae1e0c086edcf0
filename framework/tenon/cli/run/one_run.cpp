// From a configuration to result.json, whatever happens in between.
#include <tenon/cli/run/one_run.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/run/allocator_file.h>
#include <tenon/cli/run/estimate.h>
#include <tenon/cli/run/oom_advice.h>
#include <tenon/cli/run/run_folder.h>
#include <tenon/cli/run/run_progress.h>
#include <tenon/cli/run/run_recording.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/watch/run_watch.h>
#include <tenon/core/atomic_file.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

DeviceState* opened(Device device) {
  const std::vector<DeviceState*> open = open_devices();
  const auto found =
      std::find_if(open.begin(), open.end(), [&](DeviceState* state) { return state->device() == device; });
  return found == open.end() ? nullptr : *found;
}

Table table_of(const RunSummary& run, const ExperimentConfig& experiment, TableFormat format) {
  return run_comparison({}, {{}}, {run},
                        {.by_purpose = experiment.section("report").boolean("by_purpose"), .format = format});
}

/// Files that layers write belong to the run's folder, unless the user gave them a place of their own.
void place_layer_files(ExperimentConfig& experiment, const fs::path& folder) {
  for (LayerConfig& layer : experiment.allocator.layers) {
    for (const OptionSpec& option : layer.options.schema()) {
      if (option.name != "file" || option.type != OptionType::kText) continue;
      const fs::path file = layer.options.text("file");
      if (!file.empty() && file.is_relative()) layer.options.set("file", fs::absolute(folder / file).string());
    }
  }
}

class OneRun {
 public:
  OneRun(const RunOptions& options, const Config& config)
      : options_(options),
        config_(config),
        experiment_(config.experiment()),
        manifest_(manifest_of(options, config)),
        folder_(open_run_folder(options, config)) {
    place_layer_files(experiment_, path());
    line_ = std::make_unique<RunProgress>(options.label, options.quiet);
    std::error_code ignored;
    state_ = {.file = fs::absolute(path() / kStateFile),
              .go_on = !options.resume.empty() && fs::exists(path() / kStateFile, ignored)};
    if (!options.resume.empty()) begin_again();
    record_.is_checkpointed = experiment_.section("train").boolean("checkpoint");
    recorded_ = experiment_;
    recording_ = std::make_unique<RunRecording>(recorded_, path(), *line_);
    watch_ = std::make_unique<RunWatch>(WatchedRun{.label = options.label,
                                                   .allocator = experiment_.allocator.policy.name,
                                                   .plugin = file_of_allocator(experiment_),
                                                   .folder = path(),
                                                   .result = result_json(config, record_),
                                                   .writes_page = report_section().boolean("html"),
                                                   .call_seconds = options.call_seconds},
                                        *recording_);
    recorded_.allocator.policy = watch_->watched(recorded_.allocator.policy);
    set_allocator_decorator([this](const AllocatorInfo& info, std::string_view spec) {
      return watch_->watched_behind_route(info, file_of_allocator(info.name, spec, experiment_));
    });
    start_ = std::chrono::steady_clock::now();
  }

  ~OneRun() { set_allocator_decorator({}); }
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;

  ExitCode run() {
    train();
    promise_results();
    const bool is_interrupted = record_.result.interrupted;
    if (is_interrupted) {
      settle("interrupted", interruption().c_str(), interrupted_exit_code());
    } else {
      settle("done", "", ExitCode::kDone);
    }
    if (record_.leaked_bytes != 0) {
      say(fmt::format("tenon: {} bytes are still allocated on {} after the run", record_.leaked_bytes,
                      experiment_.device.str()));
    }
    watch_->entering("the end, when the device is closed");
    shutdown();
    if (!is_interrupted && report_section().boolean("estimate")) {
      watch_->entering("the estimate of its memory");
      ExperimentConfig estimated = experiment_;
      estimated.allocator.policy = watch_->watched(estimated.allocator.policy);
      record_.estimate = estimate_of(estimated);
    }
    judge();
    if (record_.estimate || !record_.faults.empty()) write_results();
    print(render(table_of(summary_of(record_), experiment_, options_.format), options_.format, environment_json()));
    if (options_.is_cell() && unwritten_)  // nobody reads the table of a cell, and the sweep has no result to read
      say(options_.label + "\n" + table_of(summary_of(record_), experiment_, TableFormat::kTable).text());
    say_faults();
    if (is_interrupted) say(how_to_go_on());
    if (!is_interrupted && interrupt_signal() != 0 && !options_.is_cell() && !options_.quiet)
      say(fmt::format("tenon: {} came when the last step was done: the run is finished", interrupt_name()));
    if (options_.format == TableFormat::kTable)
      print(fmt::format("{}\nresults: {}\n", peak_remark({summary_of(record_)}), path().string()));
    if (unwritten_) throw Error(unwritten_->what() + how_to_write_again());
    return is_interrupted ? interrupted_exit_code() : static_cast<ExitCode>(record_.exit_code);
  }

 private:
  const fs::path& path() const { return folder_->path(); }
  const Options& report_section() const { return experiment_.section("report"); }

  /// What a signal brings about from here on: there is no step any more that the run could end after.
  static void promise_results() { change_promise("the run has ended; writing its results"); }

  /// Whether the allocator kept its contract, its end included.
  void judge() {
    const MemoryStats& memory = record_.result.memory;
    if (memory.allocated_bytes.peak > memory.reserved_bytes.peak)
      watch_->own_faults().add(conformance::ServiceFaults::Kind::kFigures,
                               fmt::format("handed out blocks of {} bytes in all with only {} taken from the device",
                                           memory.allocated_bytes.peak, memory.reserved_bytes.peak));
    record_.faults = watch_->faults();
    if (record_.faults.empty() || record_.status != "done") return;
    record_.status = "disqualified";
    record_.error = disqualifications(experiment_.allocator.policy.name, record_.faults).front();
    record_.exit_code = static_cast<int>(ExitCode::kFailed);
  }

  void say_faults() const {
    for (const std::string& sentence : disqualifications(experiment_.allocator.policy.name, record_.faults))
      say(options_.label + "tenon: " + sentence);
  }

  /// What stands in the folder of a part before this one makes room for the whole.
  void begin_again() {
    const std::optional<RunSummary> before = [this]() -> std::optional<RunSummary> {
      try {
        return read_summary(path() / kResultFile);
      } catch (const Error&) {
        return std::nullopt;
      }
    }();
    if (before) earlier_seconds_ = before->seconds;
    keep_earlier_recordings(path(), before ? before->steps.value_or(0) : 0);
    std::error_code ignored;
    fs::remove(path() / kResultFile, ignored);  // it must not stand in for a crash
    if (!state_.go_on && !options_.quiet) say(fmt::format("{}no state was kept: from the beginning", options_.label));
  }

  std::string interruption() const {
    return fmt::format("{} after step {} of {}", interrupt_name(), record_.result.steps, record_.result.planned_steps);
  }

  std::string how_to_go_on() const {
    std::string ended = options_.label + "tenon: ended by " + interruption();
    if (options_.is_cell()) return ended;
    if (!record_.result.state_problem.empty() && record_.result.kept_step == 0)
      return ended + "; its state could not be kept: " + record_.result.state_problem;
    std::error_code ignored;
    if (!fs::exists(path() / kManifestFile, ignored)) return ended;
    const std::string from = record_.result.kept_step == record_.result.steps
                                 ? ""
                                 : fmt::format(" (from step {})", record_.result.kept_step);
    return fmt::format("{}; go on{} with\n  {}", ended, from, resume_command(path()));
  }

  /// The way on from what could not be written, where there is one: the results again, from the last state if need be.
  std::string how_to_write_again() const {
    std::error_code ignored;
    const bool has_results = manifest_.is_finished || options_.is_cell();
    if (has_results || record_.result.interrupted || !fs::exists(path() / kManifestFile, ignored)) return {};
    return "; once there is room, write the results with\n  " + resume_command(path());
  }

  void train() {
    try {
      install(recorded_);
      recording_->start();
      record_.result = run_experiment(recorded_, *watch_, state_);
    } catch (const OutOfMemory& failure) {
      promise_results();
      OutOfMemoryInfo info = failure.info();
      if (report_section().boolean("replay_ooms")) {
        const ProgressLine progress(options_.quiet || options_.is_cell());
        record_.would_fit = replay_failure(config_.experiment().allocator, recording_->recorder(), info);
      }
      const OutOfMemory error(std::move(info));
      fail("out_of_memory", error.what(), error.exit_code());
      throw OutOfMemory(error);
    } catch (const Error& error) {
      fail("failed", error.what(), error.exit_code());
      throw;
    } catch (const std::exception& error) {
      fail("failed", error.what(), ExitCode::kFailed);
      throw;
    }
  }

  void fail(const char* status, const char* error, ExitCode code) {
    record_.faults = watch_->faults();
    settle(status, error, code);
    say_faults();
    if (unwritten_) say(fmt::format("tenon: {}{}", unwritten_->what(), how_to_write_again()));
    say("results: " + path().string());
  }

  /// The run is over: its figures are taken and written.
  void settle(const char* status, const char* error, ExitCode code) {
    line_.reset();
    record_.status = status;
    record_.error = error;
    record_.exit_code = static_cast<int>(code);
    // A part that was killed left no result, but the state that this one goes on from says how long it took.
    record_.earlier_seconds = state_.go_on ? earlier_seconds_.value_or(record_.result.earlier_seconds) : 0;
    record_.seconds =
        record_.earlier_seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (DeviceState* device = opened(experiment_.device)) {
      const MemoryStats stats = device->allocator().stats();
      const bool has_ended_early = std::string_view(status) != "done" && std::string_view(status) != "interrupted";
      if (has_ended_early) record_.result.memory = stats;
      record_.leaked_bytes = stats.requested_bytes.current;
      try {
        record_.recorded = recording_->finish(record_.result, code == ExitCode::kOutOfMemory);
      } catch (const Error& problem) {
        unwritten_ = problem;
      }
    }
    write_results();
    watch_->settled();
  }

  /// What cannot be written is said once the figures are on the screen. Somebody may remove the folder meanwhile, and a
  /// removal takes its time: what is gone when all is written is written again.
  void write_results() {
    constexpr int kTries = 3;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      std::optional<Error> problem;
      try {
        write_all();
      } catch (const Error& error) {
        problem = error;
      }
      std::error_code ignored;
      const bool has_gone = !fs::exists(path(), ignored) || (!problem && !fs::exists(path() / kResultFile, ignored));
      if (has_gone && attempt + 1 < kTries) continue;
      if (problem) unwritten_ = problem;
      return;
    }
  }

  void write_all() {
    if (folder_->restore()) write_manifest(path(), manifest_);
    const std::string json = result_json(config_, record_);
    write_atomically(path() / kResultFile, json);
    if (report_section().boolean("html")) write_atomically(path() / "report.html", run_html(json));
    if (!is_finished_status(record_.status)) return;
    std::error_code ignored;
    fs::remove(state_.file, ignored);
    RunManifest finished = manifest_;
    finished.is_finished = true;
    write_manifest(path(), finished);
    manifest_ = finished;
  }

  const RunOptions& options_;
  const Config& config_;
  ExperimentConfig experiment_;
  RunManifest manifest_;
  std::unique_ptr<OutputFolder> folder_;
  RunState state_;
  ExperimentConfig recorded_;  ///< with a layer more
  std::unique_ptr<RunProgress> line_;
  std::unique_ptr<RunRecording> recording_;
  std::unique_ptr<RunWatch> watch_;
  std::chrono::steady_clock::time_point start_;
  std::optional<double> earlier_seconds_;  ///< as the result of the part before this one says
  RunRecord record_;
  std::optional<Error> unwritten_;  ///< something that was asked for and is not there
};

/// What a run that is finished already had to say.
ExitCode show_finished(const RunOptions& options, const Config& config) {
  const fs::path folder = options.resume;
  const ExperimentConfig experiment = config.experiment();
  complete_finished(folder, experiment.section("report").boolean("html"));
  const RunSummary summary = read_summary(folder / kResultFile);
  print(render(table_of(summary, experiment, options.format), options.format, environment_json()));
  if (!options.quiet) say("tenon: this run is finished; nothing was run");
  if (options.format == TableFormat::kTable) print(fmt::format("\nresults: {}\n", folder.string()));
  return exit_code_of_finished(summary.status);
}

}  // namespace

ExitCode run_one(const RunOptions& options, const Config& config) {
  if (!options.resume.empty() && has_finished_result(options.resume)) {
    refuse_changes(options.resume, manifest_of(options, config));
    return show_finished(options, config);
  }
  return OneRun(options, config).run();
}

}  // namespace tenon::cli
