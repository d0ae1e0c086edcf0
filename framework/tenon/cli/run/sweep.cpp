// Starting the cells, and making a row of whatever becomes of each.
#include <tenon/cli/run/sweep.h>
#include <tenon/cli/run/sweep_cells.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/cli/results/missing_recordings.h>
#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/cli/run/cell_budget.h>
#include <tenon/cli/run/cell_outcome.h>
#include <tenon/cli/run/launched_sweep.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/seconds_since.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/report/run/run_remarks.h>
#include <tenon/report/run/run_report.h>
#include <tenon/report/text/progress_text.h>
#include <tenon/runtime/environment.h>
#include <tenon/train/run_experiment.h>

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
        opened_(open_run_folder(options, config)),
        runs_(cells_.size()) {}

  ExitCode run() {
    if (!opened_.kept.empty() && !options_.quiet) say(kept_message(path(), opened_.kept));
    if (opened_.goes_on) look_at_what_is_there();
    options_.launcher.empty() ? run_cells() : run_cells_elsewhere();
    report();
    if (is_interrupted()) return interrupted_exit_code();
    int code = lost_ == 0 ? 0 : static_cast<int>(ExitCode::kFailed);
    for (const CellOutcome& run : runs_) code = code_of_both(code, run.exit_code);
    return static_cast<ExitCode>(code);
  }

 private:
  const fs::path& path() const { return opened_.folder->path(); }
  std::string go_on_command() const { return resume_command(path(), options_.jobs) + launcher_options(options_); }
  OutputFolder& folder() { return *opened_.folder; }
  fs::path folder_of(std::size_t index) const {
    return path() / kCellsFolder / cell_folder_name(index, cells_[index].values);
  }

  /// A signal that comes when the last cell is done ends nothing.
  bool is_interrupted() const {
    return interrupt_signal() != 0 && std::ranges::any_of(runs_, [](const CellOutcome& run) {
             const RunStatus status = run.summary.status;
             return status == RunStatus::kNotRun || status == RunStatus::kInterrupted || status == RunStatus::kKilled;
           });
  }

  /// Finished cells stay, unless one of their plugins is another file now: then all of the cell is made again, what it
  /// had not finished included.
  void look_at_what_is_there() {
    std::vector<std::string> plugins;
    std::vector<std::size_t> again, finished;
    fs::path kept;
    std::string earlier_version;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      wait_for_cell(folder_of(i));
      const std::optional<RunManifest> then = read_manifest(folder_of(i));
      const BasisChange change = change_between(then ? then->basis : std::nullopt, basis_of(experiment_of(i)));
      fs::path former;
      if (!change.plugins.empty()) former = keep_former(folder_of(i));
      if (!former.empty()) {
        kept = former;
        again.push_back(i);
        for (const UsedPlugin& plugin : change.plugins) {
          if (std::ranges::find(plugins, plugin.path.string()) == plugins.end())
            plugins.push_back(plugin.path.string());
        }
      } else if (has_finished_result(folder_of(i))) {
        finished.push_back(i);
        if (change.is_tenon) earlier_version = then->basis->version;
      }
    }
    if (!again.empty() && !options_.quiet) say(cells_again_message(plugins, again, kept));
    for (const std::size_t index : finished) keep(index);
    if (!earlier_version.empty() && !options_.quiet)
      say(other_build_message(earlier_version, environment().version,
                              "cells that were finished before are of the earlier build"));
  }

  void run_cells() {
    CellBudget budget(options_.jobs);
    plan(budget);
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

  /// How many cells at a time that makes, and, if it is one though more were asked for, why.
  void plan(const CellBudget& budget) {
    std::vector<unsigned> threads;
    for (std::size_t i = 0; i < cells_.size() && options_.jobs > 1; ++i) {
      if (!runs_[i].is_kept) threads.push_back(threads_of(experiment_of(i)));
    }
    at_a_time_ = budget.most(threads);
    if (threads.size() > 1 && at_a_time_ == 1 && !options_.quiet)
      say(one_at_a_time_message(options_.jobs, std::ranges::min(threads), replay::usable_cores()));
  }

  ExperimentConfig experiment_of(std::size_t index) const { return config_of(options_, cells_[index]).experiment(); }

  void announce(std::size_t index) const {
    const double elapsed = seconds_since(start_);
    const double left =
        done_ == 0 ? 0 : elapsed / static_cast<double>(done_) * static_cast<double>(cells_.size() - kept_ - done_);
    const std::string about = done_ == 0 || elapsed < 2 ? "" : fmt::format("  (about {} left)", format_duration(left));
    const std::vector<std::string>& words = keys_.front() == "row" ? cells_[index].values : cells_[index].overrides;
    say(fmt::format("{}{}{}", cell_label(index, cells_.size()), fmt::join(words, " "), about));
  }

  /// The cell as a command line of this program, without the program's name.
  std::vector<std::string> arguments_of(std::size_t index) const {
    const fs::path folder = folder_of(index);
    std::error_code ignored;
    const bool goes_on = opened_.goes_on && read_manifest(folder) && fs::exists(folder / kStateFile, ignored);
    std::vector<std::string> words = {"run", options_.file};
    for (std::string& word : overrides_of(options_, cells_[index])) words.push_back(std::move(word));
    if (!options_.record.empty()) words.push_back(record_override(options_));
    words.insert(words.end(), {"--no-sweep", goes_on ? "--resume" : "--out", folder.string(), "--label",
                               cell_label(index, cells_.size())});
    words.insert(words.end(), {"--deadline", fmt::format("{}", options_.call_seconds), "--cells-at-a-time",
                               std::to_string(at_a_time_)});
    if (options_.quiet) words.push_back("--quiet");
    for (std::string& word : words_of_each(options_, cells_)) words.push_back(std::move(word));
    return words;
  }

  /// Runs this program again. Its messages go to our stderr; its table is dropped: ours has the row.
  RunningCell start(std::size_t index) {
    if (!options_.quiet) announce(index);
    if (folder().restore()) write_manifest(path(), opened_.manifest);
    make_room(index);
    std::vector<std::string> variables, words = arguments_of(index);
    words.insert(words.end(), {"--parent", std::to_string(::getpid())});
    if (options_.jobs > 1) variables.emplace_back("TERM=dumb");  // no lines that rewrite each other
    RunningCell cell{index, start_again(words, variables), nullptr};
    cell.interrupts = std::make_unique<ForwardedInterrupts>(cell.process);
    return cell;
  }

  /// In the cell's folder: an older run's result must not stand in for a crash.
  void make_room(std::size_t index) const {
    wait_for_cell(folder_of(index));
    std::error_code ignored;
    fs::remove(folder_of(index) / kResultFile, ignored);
  }

  /// All cells at once, by workers that an engine starts.
  void run_cells_elsewhere() {
    LaunchedSweep sweep{.options = options_, .folder = path(), .cells = {}, .count = cells_.size()};
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (runs_[i].is_kept) continue;
      make_room(i);
      sweep.cells.push_back({{.index = i, .arguments = arguments_of(i)}, folder_of(i)});
    }
    run_launched(sweep, [&](std::size_t index, CellOutcome outcome) {
      ++done_;
      runs_[index] = std::move(outcome);
    });
    change_promise("the last cell has ended; writing the results");
  }

  /// A cell that could not be started.
  void fail(std::size_t index, const std::string& why) {
    ++done_;
    CellOutcome& run = runs_[index];
    run.exit_code = static_cast<int>(ExitCode::kFailed);
    run.summary.status = RunStatus::kFailed;
    run.summary.error = why;
    note_outcome(index);
  }

  /// A cell has ended: what it left becomes its row.
  void take(std::size_t index, const Ending& ending) {
    ++done_;
    CellOutcome& run = runs_[index];
    run = outcome_of(folder_of(index), ending);
    if (run.exit_code != 0 && !run.is_told && interrupt_signal() == 0) note_outcome(index);
  }

  /// Of a cell whose process could not say it: why stands under the table, if there is one for people.
  void note_outcome(std::size_t index) const {
    if (options_.format != TableFormat::kTable) return say_outcome(index);
    if (!options_.quiet) say(cell_label(index, cells_.size()) + std::string(to_string(runs_[index].summary.status)));
  }

  /// Of a cell that was finished before, too: nothing else says it now.
  void say_outcome(std::size_t index, const char* when = "") const {
    const RunSummary& run = runs_[index].summary;
    say(fmt::format("{}{}{}: {}", cell_label(index, cells_.size()), when, to_string(run.status), run.error));
  }

  void keep(std::size_t index) {
    ++kept_;
    runs_[index] = kept_outcome(folder_of(index), config_.experiment().section("report").boolean("html"));
    if (runs_[index].exit_code != 0) {
      say_outcome(index, "finished before, ");
    } else if (!options_.quiet) {
      say(cell_label(index, cells_.size()) + "finished before");
    }
    if (options_.quiet) return;
    const std::string missing = missing_recordings_message(experiment_of(index), folder_of(index), "");
    if (!missing.empty()) say(cell_label(index, cells_.size()) + missing);
  }

  void report() {
    std::vector<std::vector<std::string>> values;
    std::vector<RunSummary> summaries, done;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      RunSummary& run = runs_[i].summary;
      if (run.status == RunStatus::kNotRun) {
        runs_[i].exit_code = static_cast<int>(ExitCode::kFailed);
        run.error = "the sweep was interrupted before it";
      }
      if (run.status == RunStatus::kDone) done.push_back(run);
      values.push_back(cells_[i].values);
      summaries.push_back(run);
    }
    std::optional<Error> unwritten = problem_of([this] { restore_folder(); });
    const ExperimentConfig experiment = config_.experiment();
    const Options& section = experiment.section("report");
    const auto table_for = [&](TableFormat format) {
      return run_comparison(keys_, values, summaries, {.by_purpose = section.boolean("by_purpose"), .format = format});
    };
    const std::string remarks = losses_remark(done) + peak_remark(summaries) +
                                checkpoint_remark(keys_, values, summaries) + estimate_remark(summaries) +
                                sharing_remark(summaries) + noise_remark(host_);
    const std::string html = section.boolean("html")
                                 ? sweep_html(experiment.name, table_for(TableFormat::kTable), page_cells(), remarks)
                                 : std::string();
    if (!unwritten) {
      unwritten = problem_of([&] {
        write_atomically(path() / kResultFile,
                         render(table_for(TableFormat::kJson), TableFormat::kJson, environment_json()));
        if (!html.empty()) write_atomically(path() / kReportFile, html);
        opened_.manifest.is_finished = !is_interrupted();
        write_manifest(path(), opened_.manifest);
      });
    }
    print(render(table_for(options_.format), options_.format, environment_json()));
    for (std::size_t i = 0; i < runs_.size() && options_.format == TableFormat::kTable; ++i) {
      if (runs_[i].exit_code != 0 && !runs_[i].is_told)
        print(fmt::format("cell {} ({}): {}\n", i + 1, fmt::join(values[i], ", "), runs_[i].summary.error));
    }
    say_ending(unwritten.has_value());
    if (options_.format == TableFormat::kTable)
      print(fmt::format("{}\nresults: {}\n", options_.quiet ? "" : remarks, path().string()));
    if (unwritten) throw Error(*unwritten);
  }

  std::vector<SweepPageCell> page_cells() const {
    std::vector<SweepPageCell> cells;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const std::string page = fmt::format("{}/{}/{}", kCellsFolder, folder_of(i).filename().string(), kReportFile);
      std::error_code ignored;
      cells.push_back({.name = fmt::format("{}", fmt::join(cells_[i].values, ", ")),
                       .result = runs_[i].exit_code == 0 ? runs_[i].result : "",
                       .page = fs::exists(path() / page, ignored) ? page : ""});
    }
    return cells;
  }

  /// What is left to do, and what happened meanwhile.
  void say_ending(bool has_unwritten) const {
    const auto count = [&](const auto& is_counted) {
      return static_cast<std::size_t>(
          std::ranges::count_if(runs_, [&](const CellOutcome& run) { return is_counted(run.summary.status); }));
    };
    std::error_code ignored;
    const SweepEnding ending{.signal = is_interrupted() ? interrupt_name() : "",
                             .finished = count(is_finished),
                             .cells = cells_.size(),
                             .disqualified = count([](RunStatus status) { return status == RunStatus::kDisqualified; }),
                             .is_unwritten = has_unwritten,
                             .command = fs::exists(path() / kManifestFile, ignored) ? go_on_command() : ""};
    const std::string message = sweep_ended_message(ending);
    if (!message.empty() && (!options_.quiet || is_interrupted() || has_unwritten)) say(message);
    end_promise();
    if (!is_interrupted() && interrupt_signal() != 0 && !options_.quiet)
      say(fmt::format("tenon: {} came when the last cell was done: nothing was cut short", interrupt_name()));
    if (restored_ != 0 && !options_.quiet) say(restored_message(path(), restored_));
    if (lost_ != 0) say(lost_message(path(), lost_, go_on_command()));
  }

  /// Somebody may remove the folder while the sweep runs. What finished cells had in it is written again, except where
  /// they recorded something: those have to run again.
  void restore_folder() {
    if (folder().restore()) write_manifest(path(), opened_.manifest);
    const bool has_recordings = !recorded_formats(config_.experiment()).empty();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].result.empty() || has_finished_result(folder_of(i))) continue;
      ++(has_recordings ? lost_ : restored_);
      if (has_recordings) continue;
      const Config config = config_of(options_, cells_[i]);
      write_finished(folder_of(i), manifest_of(alone(options_, cells_[i]), config), runs_[i].result);
      complete_finished(folder_of(i), config.experiment().section("report").boolean("html"));
    }
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
  OpenedFolder opened_;
  const measure::HostState host_ = measure::host_state();
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  unsigned at_a_time_ = 1;  ///< cells, at most
  std::size_t kept_ = 0, done_ = 0;
  std::size_t restored_ = 0, lost_ = 0;  ///< finished cells that somebody removed: written again, and not
  std::vector<CellOutcome> runs_;        ///< in the order of the cells
};

}  // namespace

ExitCode run_sweep(const RunOptions& options, const Config& config) {
  for (const SweepPoint& cell : config.sweep_cells()) check_experiment(config_of(options, cell).experiment());
  return Sweep(options, config).run();
}

}  // namespace tenon::cli
