// Starting the cells, and making a row of whatever becomes of each.
#include <tenon/cli/run/sweep.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/cli/run/cell_budget.h>
#include <tenon/cli/run/cell_outcome.h>
#include <tenon/cli/run/estimate_apart.h>
#include <tenon/cli/run/run_folder.h>
#include <tenon/cli/run/run_recording.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/core/atomic_file.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/environment.h>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// The settings of a cell on the command line: those of the user that the cell does not set itself, then its own.
std::vector<std::string> overrides_of(const RunOptions& options, const SweepPoint& cell) {
  const auto key_of = [](const std::string& word) { return word.substr(0, word.find('=')); };
  std::vector<std::string> words;
  for (const std::string& word : options.overrides) {
    const bool is_swept = std::any_of(cell.overrides.begin(), cell.overrides.end(),
                                      [&](const std::string& own) { return key_of(own) == key_of(word); });
    if (!is_swept) words.push_back(word);
  }
  words.insert(words.end(), cell.overrides.begin(), cell.overrides.end());
  return words;
}

/// Those of a cell that is run by itself.
RunOptions alone(const RunOptions& options, const SweepPoint& cell) {
  RunOptions one = options;
  one.sweep = false;
  one.no_sweep = true;
  one.overrides = overrides_of(options, cell);
  return one;
}

std::string folder_name(std::size_t index, const std::vector<std::string>& values) {
  std::string name = fmt::format("{:03}", index + 1);
  for (const std::string& value : values) name += "-" + value;
  return plain_name(name, '_').substr(0, 100);
}

std::string label_of(std::size_t index, std::size_t count) { return fmt::format("[{}/{}] ", index + 1, count); }

/// Of a sweep: that of its cells where those that failed agree.
int code_of_both(int one, int other) {
  if (one == 0 || other == 0 || one == other) return one != 0 ? one : other;
  return static_cast<int>(ExitCode::kFailed);
}

/// One that runs.
struct RunningCell {
  std::size_t index = 0;
  pid_t process = 0;
  std::unique_ptr<ForwardedInterrupts> interrupts;
};

class Sweep {
 public:
  Sweep(const RunOptions& options, const Config& config)
      : options_(options),
        config_(config),
        keys_(config.sweep_keys()),
        cells_(config.sweep_cells()),
        manifest_(manifest_of(options, config)),
        folder_(open_run_folder(options, config)),
        runs_(cells_.size()) {}

  ExitCode run() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (options_.resume.empty()) continue;
      wait_for_cell(folder_of(i));
      if (has_finished_result(folder_of(i))) keep(i);
    }
    run_cells();
    report();
    if (is_interrupted()) return interrupted_exit_code();
    int code = lost_ == 0 ? 0 : static_cast<int>(ExitCode::kFailed);
    for (const CellOutcome& run : runs_) code = code_of_both(code, run.exit_code);
    return static_cast<ExitCode>(code);
  }

 private:
  const fs::path& path() const { return folder_->path(); }
  std::string go_on_command() const {
    return resume_command(path()) + (options_.jobs > 1 ? fmt::format(" -j {}", options_.jobs) : "");
  }
  fs::path folder_of(std::size_t index) const {
    return path() / kCellsFolder / folder_name(index, cells_[index].values);
  }

  /// A signal that comes when the last cell is done ends nothing.
  bool is_interrupted() const {
    return interrupt_signal() != 0 && std::ranges::any_of(runs_, [](const CellOutcome& run) {
             const std::string& status = run.summary.status;
             return status == "not run" || status == "interrupted" || status == "killed";
           });
  }

  void run_cells() {
    CellBudget budget(options_.jobs);
    std::vector<RunningCell> running;
    std::map<pid_t, CellNeed> needs;
    std::size_t next = 0;
    std::optional<CellNeed> need;  // of the next one, once it is known
    while (true) {
      while (next < cells_.size() && runs_[next].is_kept) ++next;
      const bool may_start = next < cells_.size() && interrupt_signal() == 0;
      if (may_start && !need)
        need = options_.jobs > 1 ? need_of(experiment_of(next), options_.call_seconds) : CellNeed{};
      if (may_start && budget.allows(*need)) {
        const std::size_t index = next++;
        try {
          running.push_back(start(index));
          needs[running.back().process] = *need;
          budget.start(*need);
        } catch (const Error& problem) {  // of its folder: the others, and what is finished, are worth more
          fail(index, problem.what());
        }
        need.reset();
        continue;
      }
      if (running.empty()) return change_promise("the last cell has ended; writing the results");
      const Ended ended = wait_for_child();
      const auto cell =
          std::ranges::find_if(running, [&](const RunningCell& one) { return one.process == ended.child; });
      if (cell == running.end()) continue;
      budget.end(needs[ended.child]);
      take(cell->index, ended.ending);
      running.erase(cell);
    }
  }

  RunOptions options_of(std::size_t index) const { return alone(options_, cells_[index]); }
  ExperimentConfig experiment_of(std::size_t index) const {
    return Config::load(request_of(options_of(index))).experiment();
  }

  void announce(std::size_t index) const {
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double left =
        done_ == 0 ? 0 : elapsed / static_cast<double>(done_) * static_cast<double>(cells_.size() - kept_ - done_);
    const std::string about = done_ == 0 || elapsed < 2 ? "" : fmt::format("  (about {} left)", format_duration(left));
    const std::vector<std::string>& words = keys_.front() == "row" ? cells_[index].values : cells_[index].overrides;
    say(fmt::format("{}{}{}", label_of(index, cells_.size()), fmt::join(words, " "), about));
  }

  /// The cell as a command line of this program, without the program's name.
  std::vector<std::string> arguments_of(std::size_t index) const {
    const fs::path folder = folder_of(index);
    std::error_code ignored;
    const bool goes_on = !options_.resume.empty() && read_manifest(folder) && fs::exists(folder / kStateFile, ignored);
    std::vector<std::string> words = {"run", options_.file};
    for (std::string& word : overrides_of(options_, cells_[index])) words.push_back(std::move(word));
    if (!options_.record.empty()) words.push_back(record_override(options_));
    words.insert(words.end(), {"--no-sweep", goes_on ? "--resume" : "--out", folder.string(), "--label",
                               label_of(index, cells_.size()), "--parent", std::to_string(::getpid())});
    words.insert(words.end(), {"--deadline", fmt::format("{}", options_.call_seconds)});
    if (options_.quiet) words.push_back("--quiet");
    return words;
  }

  /// Runs this program again. Its messages go to our stderr; its table is dropped: ours has the row.
  RunningCell start(std::size_t index) {
    if (!options_.quiet) announce(index);
    if (folder_->restore()) write_manifest(path(), manifest_);
    wait_for_cell(folder_of(index));
    std::error_code ignored;
    fs::remove(folder_of(index) / kResultFile, ignored);  // an older run's result must not stand in for a crash
    std::vector<std::string> variables;
    if (options_.jobs > 1) variables.emplace_back("TERM=dumb");  // no lines that rewrite each other
    RunningCell cell{index, start_again(arguments_of(index), variables), nullptr};
    cell.interrupts = std::make_unique<ForwardedInterrupts>(cell.process);
    return cell;
  }

  /// A cell that could not be started.
  void fail(std::size_t index, const std::string& why) {
    ++done_;
    CellOutcome& run = runs_[index];
    run.exit_code = static_cast<int>(ExitCode::kFailed);
    run.summary.status = "failed";
    run.summary.error = why;
    if (!options_.quiet) say(fmt::format("{}failed: {}", label_of(index, cells_.size()), why));
  }

  /// A cell has ended: what it left becomes its row.
  void take(std::size_t index, const Ending& ending) {
    ++done_;
    CellOutcome& run = runs_[index];
    run = outcome_of(folder_of(index), ending);
    if (run.exit_code != 0 && !options_.quiet && interrupt_signal() == 0)
      say(fmt::format("{}{}: {}", label_of(index, cells_.size()), run.summary.status, run.summary.error));
  }

  void keep(std::size_t index) {
    ++kept_;
    runs_[index] = kept_outcome(folder_of(index), config_.experiment().section("report").boolean("html"));
    if (!options_.quiet) say(fmt::format("{}finished before", label_of(index, cells_.size())));
  }

  void report() {
    std::vector<std::vector<std::string>> values;
    std::vector<RunSummary> summaries, done;
    std::size_t finished = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].summary.status.empty()) {
        runs_[i].summary.status = "not run";
        runs_[i].exit_code = static_cast<int>(ExitCode::kFailed);
        runs_[i].summary.error = "the sweep was interrupted before it";
      }
      const std::string& status = runs_[i].summary.status;
      finished += is_finished_status(status) ? 1 : 0;
      if (status == "done") done.push_back(runs_[i].summary);
      values.push_back(cells_[i].values);
      summaries.push_back(runs_[i].summary);
    }
    std::optional<Error> unwritten = problem_of([this] { restore_folder(); });
    const ExperimentConfig experiment = config_.experiment();
    const Options& section = experiment.section("report");
    const auto table_for = [&](TableFormat format) {
      return run_comparison(keys_, values, summaries, {.by_purpose = section.boolean("by_purpose"), .format = format});
    };
    std::vector<SweepPageCell> cells;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const std::string page = fmt::format("{}/{}/report.html", kCellsFolder, folder_of(i).filename().string());
      std::error_code ignored;
      cells.push_back({.name = fmt::format("{}", fmt::join(cells_[i].values, ", ")),
                       .result = runs_[i].exit_code == 0 ? runs_[i].result : "",
                       .page = fs::exists(path() / page, ignored) ? page : ""});
    }
    const std::string remarks =
        losses_remark(done) + peak_remark(summaries) + checkpoint_remark(keys_, values, summaries);
    const std::string html = section.boolean("html")
                                 ? sweep_html(experiment.name, table_for(TableFormat::kTable), cells, remarks)
                                 : std::string();
    if (!unwritten) {
      unwritten = problem_of([&] {
        write_atomically(path() / kResultFile,
                         render(table_for(TableFormat::kJson), TableFormat::kJson, environment_json()));
        if (!html.empty()) write_atomically(path() / "report.html", html);
        manifest_.is_finished = !is_interrupted();
        write_manifest(path(), manifest_);
      });
    }
    print(render(table_for(options_.format), options_.format, environment_json()));
    const bool for_people = options_.format == TableFormat::kTable;
    for (std::size_t i = 0; i < runs_.size() && for_people; ++i) {
      if (runs_[i].exit_code != 0)
        print(fmt::format("cell {} ({}): {}\n", i + 1, fmt::join(values[i], ", "), summaries[i].error));
    }
    if (is_interrupted() || unwritten || (finished < runs_.size() && !options_.quiet)) {
      std::error_code ignored;
      const bool can_go_on = fs::exists(path() / kManifestFile, ignored);
      const std::string why = is_interrupted() ? "ended by " + interrupt_name() + ", " : "";
      const char* const next = is_interrupted() ? "go on with" : "once what was wrong is mended, go on with";
      say(fmt::format("tenon: {}{} of {} cells are finished{}", why, finished, cells_.size(),
                      can_go_on ? fmt::format("; {}\n  {}", next, go_on_command()) : ""));
    }
    if (!is_interrupted() && interrupt_signal() != 0 && !options_.quiet)
      say(fmt::format("tenon: {} came when the last cell was done: nothing was cut short", interrupt_name()));
    say_removal();
    if (for_people) print(fmt::format("{}\nresults: {}\n", remarks, path().string()));
    if (unwritten) throw Error(*unwritten);
  }

  /// Somebody may remove the folder while the sweep runs. What finished cells had in it is written again, except where
  /// they recorded something: those have to run again.
  void restore_folder() {
    if (folder_->restore()) write_manifest(path(), manifest_);
    const bool has_recordings = !recorded_formats(config_.experiment()).empty();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].result.empty() || has_finished_result(folder_of(i))) continue;
      ++(has_recordings ? lost_ : restored_);
      if (has_recordings) continue;
      const RunOptions own = options_of(i);
      const Config config = Config::load(request_of(own));
      write_finished(folder_of(i), manifest_of(own, config), runs_[i].result);
      complete_finished(folder_of(i), config.experiment().section("report").boolean("html"));
    }
  }

  void say_removal() const {
    if (restored_ != 0 && !options_.quiet)
      say(fmt::format("tenon: {} was removed while the sweep ran; the results of {} finished cell{} are written again",
                      path().string(), restored_, restored_ == 1 ? "" : "s"));
    if (lost_ != 0)
      say(
          fmt::format("tenon: {} was removed while the sweep ran, with the recordings of {} finished cell{}; run what "
                      "is missing again with\n  {}",
                      path().string(), lost_, lost_ == 1 ? "" : "s", go_on_command()));
  }

  /// What goes wrong there: the table is printed first.
  static std::optional<Error> problem_of(const std::function<void()>& write) {
    try {
      write();
    } catch (const Error& problem) {
      return problem;
    }
    return std::nullopt;
  }

  const RunOptions& options_;
  const Config& config_;
  const std::vector<std::string> keys_;
  const std::vector<SweepPoint> cells_;
  RunManifest manifest_;
  const std::unique_ptr<OutputFolder> folder_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t kept_ = 0, done_ = 0;
  std::size_t restored_ = 0, lost_ = 0;  ///< finished cells that somebody removed: written again, and not
  std::vector<CellOutcome> runs_;        ///< in the order of the cells
};

}  // namespace

ExitCode run_sweep(const RunOptions& options, const Config& config) { return Sweep(options, config).run(); }

ExitCode estimate_sweep(const RunOptions& options, const Config& config) {
  std::vector<std::vector<std::string>> values;
  std::vector<Estimate> estimates;
  int code = 0;
  const std::vector<SweepPoint> cells = config.sweep_cells();
  ProgressLine progress("estimating", options.quiet);
  for (const SweepPoint& cell : cells) {
    progress.update(estimates.size(), cells.size());
    values.push_back(cell.values);
    const ExperimentConfig experiment = Config::load(request_of(alone(options, cell))).experiment();
    EstimateApart apart = estimate_apart(experiment, options.call_seconds);
    code = code_of_both(code, apart.exit_code);
    const std::vector<std::string> complaints = apart.complaints(experiment.allocator.policy.name);
    estimates.push_back(std::move(apart.estimate));
    for (const std::string& complaint : complaints) say(fmt::format("cell {}: {}", estimates.size(), complaint));
    if (!estimates.back().memory && complaints.empty())
      say(fmt::format("cell {}: no estimate of its memory: {}", estimates.size(), estimates.back().problem));
  }
  print(render(estimate_table(config.sweep_keys(), values, estimates), options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(fmt::format("{} cells; nothing was run\n", estimates.size()));
  return static_cast<ExitCode>(code);
}

}  // namespace tenon::cli
