// From a configuration to result.json, whatever happens in between.
// Long: what ends a run is settled in one place, with all that the run has.
#include <tenon/cli/run/one_run.h>

#include <tenon/cli/estimate/estimate.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/record/run_profile.h>
#include <tenon/cli/record/run_recording.h>
#include <tenon/cli/results/allocator_file.h>
#include <tenon/cli/results/former_results.h>
#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/cli/run/finished_run.h>
#include <tenon/cli/run/oom_advice.h>
#include <tenon/cli/run/rank_run.h>
#include <tenon/cli/run/run_progress.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/watch/death_words.h>
#include <tenon/cli/watch/run_watch.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/conformance/service_watch.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/seconds_since.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/report/kit_advice.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/report/run/run_remarks.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/estimate/searched_settings.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

class OneRun {
 public:
  OneRun(const RunOptions& options, const Config& config, std::shared_ptr<Communicator> ranks)
      : options_(options),
        config_(config),
        experiment_(config.experiment()),
        line_(progress_of(options, experiment_)),
        opened_(open_run_folder(options, config)) {
    if (!options.quiet) say_what_was_there();
    place_layer_files(experiment_, path());
    std::error_code ignored;
    state_ = {.file = fs::absolute(path() / kStateFile),
              .go_on = opened_.goes_on && fs::exists(path() / kStateFile, ignored),
              .ranks = std::move(ranks)};
    if (opened_.goes_on) begin_again();
    if (options.is_cell()) record_.host.load = 0;  // it is that of the cells before, too: the sweep says it
    record_.cells_at_a_time = opened_.manifest.cells_at_a_time;
    record_.is_checkpointed = experiment_.section("train").boolean("checkpoint");
    recorded_ = experiment_;
    recording_ = std::make_unique<RunRecording>(
        recorded_, [&] { return hparams_of(config, options.varied); }, path(), *line_);
    watch_ = std::make_unique<RunWatch>(WatchedRun{.label = options.label,
                                                   .allocator = experiment_.allocator.policy.name,
                                                   .plugin = file_of_allocator(experiment_),
                                                   .options = experiment_.allocator.options.spec(),
                                                   .folder = path(),
                                                   .result = result_json(config, record_),
                                                   .writes_page = report_section().boolean("html"),
                                                   .call_seconds = options.call_seconds,
                                                   .earlier_faults = earlier_faults_,
                                                   .on_new_faults = [this] { keep_faults(all_faults()); }},
                                        *recording_);
    profile_ = std::make_unique<RunProfile>(experiment_, path(), *watch_);
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
    if (!train()) return ExitCode::kFailed;
    promise_results();
    const bool is_interrupted = record_.result.interrupted;
    if (is_interrupted)
      settle(RunStatus::kInterrupted, interruption(interrupt_name(), record_.result), interrupted_exit_code());
    else
      settle(RunStatus::kDone, "", ExitCode::kDone);
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
      const auto ranks = static_cast<int>(record_.result.ranks.size());
      record_.estimate = estimate_of(estimated, {.rank = 0, .size = std::max(ranks, 1)});
    }
    judge();
    if (record_.estimate || !record_.faults.empty()) write_results();
    print(render(table_of(summary_of(record_), experiment_, options_.format), options_.format, environment_json()));
    if (options_.is_cell() && unwritten_)  // nobody reads the table of a cell, and the sweep has no result to read
      say(options_.label + "\n" + table_of(summary_of(record_), experiment_, TableFormat::kTable).text());
    say_faults();
    if (const std::string nothing = profile_->nothing_recorded(); !nothing.empty())
      say(options_.label + "tenon: " + nothing);
    if (is_interrupted)
      say(options_.label +
          interrupted_message(record_.error, record_.result, options_.is_cell() ? "" : go_on_command()));
    end_promise();
    if (!is_interrupted && interrupt_signal() != 0 && !options_.is_cell() && !options_.quiet)
      say(fmt::format("tenon: {} came when the last step was done: the run is finished", interrupt_name()));
    if (options_.format == TableFormat::kTable)
      print(fmt::format("{}\nresults: {}\n", options_.quiet ? "" : remarks(), path().string()));
    if (unwritten_) throw Error(what_is_unwritten());
    return is_interrupted ? interrupted_exit_code() : static_cast<ExitCode>(record_.exit_code);
  }

 private:
  const fs::path& path() const { return opened_.folder->path(); }
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
    record_.faults = all_faults();
    if (record_.faults.empty() || record_.status != RunStatus::kDone) return;
    record_.status = RunStatus::kDisqualified;
    record_.error = disqualifications(experiment_.allocator.policy.name, record_.faults).front();
    record_.exit_code = static_cast<int>(ExitCode::kFailed);
  }

  /// Those of the parts before this one too: what was broken once was broken.
  std::vector<RunFault> all_faults() const {
    std::vector<RunFault> faults = earlier_faults_;
    for (RunFault& fault : watch_->faults()) {
      // Steps that ran again find what they found before, another number of times perhaps.
      const auto known = std::ranges::find_if(faults, [&](const RunFault& earlier) {
        return earlier.allocator == fault.allocator &&
               conformance::without_times(earlier.what) == conformance::without_times(fault.what);
      });
      if (known == faults.end()) {
        faults.push_back(std::move(fault));
      } else {
        *known = std::move(fault);
      }
    }
    return faults;
  }

  /// At once, beside the saved state: a part that is killed leaves no result.
  void keep_faults(std::vector<RunFault> faults) {
    opened_.manifest.faults = std::move(faults);
    try {
      write_manifest(path(), opened_.manifest);
    } catch (const Error&) {  // a full disk: the figures go on, and their result has the faults too
    }
  }

  void say_faults() const {
    for (const std::string& sentence : disqualifications(experiment_.allocator.policy.name, record_.faults))
      say(options_.label + "tenon: " + sentence);
    if (const std::string advice = kit_advice(specs_of(record_.faults)); !advice.empty()) say(options_.label + advice);
    if (record_.status != RunStatus::kDisqualified || options_.is_cell()) return;
    if (const std::string command = go_on_command(); !command.empty()) say(once_mended_message(command));
  }

  std::string remarks() const {
    const RunSummary summary = summary_of(record_);
    return ranks_remark(record_.result.ranks) + peak_remark({summary}) + memory_remarks(record_.result) +
           estimate_remark({summary}) + noise_remark(record_.host) + devices_remark(record_.result) +
           layers_remark(record_.layers);
  }

  void say_what_was_there() const {
    std::vector<std::string> plugins;
    for (const UsedPlugin& plugin : opened_.change.plugins) plugins.push_back(plugin.path.string());
    if (!plugins.empty()) {
      say(options_.label + begins_again_message(plugins, opened_.kept));
    } else if (!opened_.kept.empty()) {
      say(options_.label + kept_message(path(), opened_.kept));
    } else if (opened_.change.is_tenon) {
      say(options_.label + other_build_message(opened_.earlier_version, environment().version,
                                               "the steps of this run will be of two builds"));
    }
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
    if (state_.go_on) earlier_faults_ = before ? before->faults : opened_.manifest.faults;
    // The end of a part finds more than its steps did, and its result goes; what begins again has found nothing.
    if (earlier_faults_.size() != opened_.manifest.faults.size()) keep_faults(earlier_faults_);
    std::error_code ignored;
    std::vector<std::string> files = opened_.manifest.files;
    const ExperimentConfig as_asked = config_.experiment();  // here the files of layers are placed already
    for (const LayerConfig& layer : as_asked.allocator.layers) {
      std::string elsewhere = layer_file_elsewhere(layer);
      const bool is_file = fs::is_regular_file(fs::symlink_status(elsewhere, ignored));  // no link such as /dev/stdout
      if (is_file) files.push_back(std::move(elsewhere));
    }
    const std::string overlap = keep_recordings(path(), files, state_, before ? before->steps : std::nullopt);
    if (!overlap.empty() && !options_.quiet) say(options_.label + overlap);
    fs::remove(path() / kResultFile, ignored);  // it must not stand in for a crash
    if (!state_.go_on && !options_.quiet)
      say(fmt::format("{}no saved state in {}: the run begins again at its first step", options_.label,
                      path().string()));
  }

  /// Empty where nothing can go on.
  std::string go_on_command() const {
    std::error_code ignored;
    if (!fs::exists(path() / kManifestFile, ignored)) return "";
    return state_.ranks ? relaunched(rank_environment(), resume_command(path())) : resume_command(path());
  }

  /// The way on from what could not be written, where there is one: the results again, from the last state if need be.
  std::string writing_command() const {
    const bool has_results = opened_.manifest.is_finished || options_.is_cell();
    return has_results || record_.result.interrupted ? "" : go_on_command();
  }

  /// Why, what is missing for it, and the way to get it.
  std::string what_is_unwritten() const {
    const std::string missing = recording_->what_is_missing(report_section().boolean("html"));
    const bool has_commands = missing.find('\n') != std::string::npos;
    return unwritten_->what() + missing + how_to_write_again(writing_command(), has_commands);
  }

  /// False where the allocator is disqualified for what ended the run, which is told.
  bool train() {
    try {
      const auto searched = settle_searched(experiment_, *watch_, state_);
      recorded_.sections = experiment_.sections;
      install(recorded_);
      if (state_.ranks) share_folder(*state_.ranks, config_, fs::absolute(path()));
      recording_->start();
      record_.result = run_experiment(recorded_, *profile_, state_);
      if (state_.ranks && record_.result.interrupted) share_interrupt(*state_.ranks);
      std::ranges::copy(searched, std::back_inserter(record_.result.figures));
      return true;
    } catch (const conformance::EndOfService&) {
      record_.result = watch_->finished();
      fail(RunStatus::kDisqualified, disqualifications(experiment_.allocator.policy.name, all_faults()).front(),
           ExitCode::kFailed);
      return false;
    } catch (const OutOfMemory& failure) {
      promise_results();
      OutOfMemoryInfo info = failure.info();
      if (report_section().boolean("replay_ooms")) {
        const ProgressLine progress(options_.quiet || options_.is_cell());
        record_.would_fit = replay_failure(config_.experiment().allocator, recording_->recorder(), info);
      }
      const OutOfMemory error(std::move(info));
      fail(RunStatus::kOutOfMemory, error.what(), error.exit_code());
      if (!options_.is_cell()) {
        watch_->entering("the search for what would have saved memory");
        say(explained_failure(record_, experiment_));
        write_results();
        if (state_.ranks) say_how_to_go_on(state_.file, go_on_command());
      }
      throw OutOfMemory(error);
    } catch (const Error& error) {
      fail(RunStatus::kFailed, error.what(), error.exit_code());
      throw;
    } catch (const std::exception& error) {
      fail(RunStatus::kFailed, error.what(), ExitCode::kFailed);
      throw;
    }
  }

  void fail(RunStatus status, const std::string& error, ExitCode code) {
    record_.faults = all_faults();
    if (watch_->broken_off() != nullptr && status != RunStatus::kDisqualified) record_.result = *watch_->broken_off();
    if (status == RunStatus::kOutOfMemory) record_.result.attribution = recording_->attributed_at_failure();
    const bool has_nothing = !watch_->has_begun() && status == RunStatus::kFailed && record_.faults.empty();
    if (has_nothing && !opened_.goes_on && !options_.is_cell()) return leave_as_it_was();
    settle(status, error, code);
    say_faults();
    if (status == RunStatus::kDisqualified) say(options_.label + finished_sentence(record_.result));
    if (unwritten_) say("tenon: " + what_is_unwritten());
    if (!options_.is_cell()) say("results: " + path().string());
    if (state_.ranks && status == RunStatus::kFailed) say_how_to_go_on(state_.file, go_on_command());
  }

  /// What went wrong before the first step is not a result.
  void leave_as_it_was() {
    line_.reset();
    static_cast<void>(recording_->finish(record_.result, /*out_of_memory=*/false, /*succeeded=*/false));
    const ResultFiles files(path(), opened_.manifest.files);
    files.remove();
    if (!opened_.kept.empty()) {
      files.put_back(opened_.kept);
      if (!options_.quiet) say(fmt::format("tenon: {} is as it was", path().string()));
    }
    opened_.folder->remove_new();
  }

  /// The run is over: its figures are taken and written.
  void settle(RunStatus status, const std::string& error, ExitCode code) {
    line_.reset();
    record_.status = status;
    record_.error = error;
    record_.exit_code = static_cast<int>(code);
    // A part that was killed left no result, but the state that this one goes on from says how long it took.
    record_.earlier_seconds = state_.go_on ? earlier_seconds_.value_or(record_.result.earlier_seconds) : 0;
    record_.seconds = record_.earlier_seconds + seconds_since(start_);
    if (DeviceState* device = device_if_open(experiment_.device)) {
      const MemoryStats stats = device->allocator().stats();
      const bool has_ended_early = status != RunStatus::kDone && status != RunStatus::kInterrupted;
      if (has_ended_early && watch_->broken_off() == nullptr) record_.result.memory = stats;
      record_.leaked_bytes = stats.requested_bytes.current;
      record_.layers = device->allocator().layer_reports();
      record_.recorded = recording_->finish(record_.result, code == ExitCode::kOutOfMemory, code == ExitCode::kDone);
      unwritten_ = recording_->unwritten();
    }
    std::ranges::copy(profile_->finish(), std::back_inserter(record_.recorded));
    if (!unwritten_) unwritten_ = profile_->unwritten();
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
    if (opened_.folder->restore()) write_manifest(path(), opened_.manifest);
    const std::string json = result_json(config_, record_);
    write_atomically(path() / kResultFile, json);
    if (report_section().boolean("html")) write_atomically(path() / kReportFile, run_html(json));
    if (!is_finished(record_.status)) return;
    std::error_code ignored;
    fs::remove(state_.file, ignored);
    RunManifest finished = opened_.manifest;
    finished.is_finished = true;
    write_manifest(path(), finished);
    opened_.manifest = finished;
  }

  const RunOptions& options_;
  const Config& config_;
  ExperimentConfig experiment_;
  std::unique_ptr<ProgressSink> line_;  ///< before the folder: what cannot be shown leaves that as it was
  OpenedFolder opened_;
  RunState state_;
  ExperimentConfig recorded_;  ///< with a layer more
  std::unique_ptr<RunRecording> recording_;
  std::unique_ptr<RunWatch> watch_;
  std::unique_ptr<RunProfile> profile_;
  std::chrono::steady_clock::time_point start_;
  std::optional<double> earlier_seconds_;  ///< as the result of the part before this one says
  std::vector<RunFault> earlier_faults_;   ///< the same
  RunRecord record_;
  std::optional<Error> unwritten_;  ///< something that was asked for and is not there
};

}  // namespace

ExitCode run_one(const RunOptions& options, const Config& config, std::shared_ptr<Communicator> ranks) {
  if (const std::optional<ExitCode> code = show_finished(options, config)) {
    if (ranks && *code == ExitCode::kDone) release_ranks(*ranks, config);
    return *code;
  }
  check_experiment(config.experiment(), ranks ? ranks->size() : 0);
  if (ranks) begin_ranks(*ranks, config);
  return OneRun(options, config, std::move(ranks)).run();
}

}  // namespace tenon::cli
