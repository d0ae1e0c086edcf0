// From a configuration to result.json, whatever happens in between.
#include <tenon/cli/run/one_run.h>

#include <tenon/cli/output_folder.h>
#include <tenon/cli/run/estimate.h>
#include <tenon/cli/run/oom_advice.h>
#include <tenon/cli/run/run_progress.h>
#include <tenon/cli/run/run_recording.h>
#include <tenon/cli/verb.h>
#include <tenon/device/device_state.h>
#include <tenon/report/run_html.h>
#include <tenon/report/run_report.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

DeviceState* opened(Device device) {
  const std::vector<DeviceState*> open = open_devices();
  const auto found =
      std::find_if(open.begin(), open.end(), [&](DeviceState* state) { return state->device() == device; });
  return found == open.end() ? nullptr : *found;
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
        folder_(make_output_folder(options.out, experiment_.name)) {
    place_layer_files(experiment_, folder_);
    line_ = std::make_unique<RunProgress>(options.label, options.quiet);
    recorded_ = experiment_;
    recording_ = std::make_unique<RunRecording>(recorded_, folder_, *line_);
    write_file(folder_ / "config.resolved.toml", config.resolved_toml());
    start_ = std::chrono::steady_clock::now();
  }

  ExitCode run() {
    train();
    settle("done", "", ExitCode::kDone);
    if (unwritten_) throw Error(*unwritten_);
    if (record_.leaked_bytes != 0) {
      say(fmt::format("tenon: {} bytes are still allocated on {} after the run", record_.leaked_bytes,
                      experiment_.device.str()));
    }
    if (report_section().boolean("estimate")) {
      shutdown();
      record_.estimate = estimate_of(experiment_);
      write_results();
    }
    const Table table = run_comparison({}, {{}}, {summary_of(record_)}, report_section().boolean("by_purpose"));
    print(render(table, options_.format, environment_json()));
    if (options_.format == TableFormat::kTable) print(fmt::format("\nresults: {}\n", folder_.string()));
    shutdown();
    return ExitCode::kDone;
  }

 private:
  const Options& report_section() const { return experiment_.section("report"); }

  void train() {
    try {
      install(recorded_);
      recording_->start();
      record_.result = run_experiment(recorded_, *recording_);
    } catch (const OutOfMemory& failure) {
      OutOfMemoryInfo info = failure.info();
      if (report_section().boolean("replay_ooms"))
        record_.would_fit = replay_failure(config_.experiment().allocator, recording_->recorder(), info);
      const OutOfMemory error(std::move(info));
      fail("out_of_memory", error.what(), error.exit_code());
      throw error;
    } catch (const Error& error) {
      fail("failed", error.what(), error.exit_code());
      throw;
    } catch (const std::exception& error) {
      fail("failed", error.what(), ExitCode::kFailed);
      throw;
    }
  }

  void fail(const char* status, const char* error, ExitCode code) {
    settle(status, error, code);
    say("results: " + folder_.string());
  }

  /// The run is over: its figures are taken and written.
  void settle(const char* status, const char* error, ExitCode code) {
    line_.reset();
    record_.status = status;
    record_.error = error;
    record_.exit_code = static_cast<int>(code);
    record_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (DeviceState* device = opened(experiment_.device)) {
      const MemoryStats stats = device->allocator().stats();
      if (code != ExitCode::kDone) record_.result.memory = stats;
      record_.leaked_bytes = stats.requested_bytes.current;
      try {
        record_.recorded = recording_->finish(record_.result, code == ExitCode::kOutOfMemory);
      } catch (const Error& problem) {
        unwritten_ = problem;
      }
    }
    write_results();
  }

  void write_results() {
    const std::string json = result_json(config_, record_);
    write_file(folder_ / "result.json", json);
    if (report_section().boolean("html")) write_file(folder_ / "report.html", run_html(json));
  }

  const RunOptions& options_;
  const Config& config_;
  ExperimentConfig experiment_;
  ExperimentConfig recorded_;  ///< with a layer more
  fs::path folder_;
  std::unique_ptr<RunProgress> line_;
  std::unique_ptr<RunRecording> recording_;
  std::chrono::steady_clock::time_point start_;
  RunRecord record_;
  std::optional<Error> unwritten_;  ///< a recording that was asked for and is not there
};

}  // namespace

ExitCode run_one(const RunOptions& options, const Config& config) { return OneRun(options, config).run(); }

}  // namespace tenon::cli
