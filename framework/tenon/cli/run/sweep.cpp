// Starting the cells, and making a row of whatever becomes of each.
#include <tenon/cli/run/sweep.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/cli/run/cell_budget.h>
#include <tenon/cli/run/estimate.h>
#include <tenon/cli/run/run_folder.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/cli/verb.h>
#include <tenon/core/atomic_file.h>
#include <tenon/core/file_text.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/environment.h>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
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

std::string folder_name(std::size_t index, const std::vector<std::string>& values) {
  std::string name = fmt::format("{:03}", index + 1);
  for (const std::string& value : values) name += "-" + value;
  return plain_name(name, '_').substr(0, 100);
}

std::string label_of(std::size_t index, std::size_t count) { return fmt::format("[{}/{}] ", index + 1, count); }

/// What became of one cell.
struct SweepRun {
  RunSummary summary;
  int exit_code = 0;     ///< 1 for a process that a signal ended
  std::string result;    ///< the text of its result.json; empty where it failed
  bool is_kept = false;  ///< from before, when the sweep was resumed
};

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
    if (interrupt_signal() != 0) return interrupted_exit_code();
    int code = 0;
    for (const SweepRun& run : runs_) {
      if (run.exit_code != 0)
        code = code == 0 || code == run.exit_code ? run.exit_code : static_cast<int>(ExitCode::kFailed);
    }
    return static_cast<ExitCode>(code);
  }

 private:
  const fs::path& path() const { return folder_->path(); }
  fs::path folder_of(std::size_t index) const {
    return path() / kCellsFolder / folder_name(index, cells_[index].values);
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
      if (may_start && !need) need = options_.jobs > 1 ? need_of(experiment_of(next)) : CellNeed{};
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
      if (running.empty()) return;
      const Ended ended = wait_for_child();
      const auto cell =
          std::ranges::find_if(running, [&](const RunningCell& one) { return one.process == ended.child; });
      if (cell == running.end()) continue;
      budget.end(needs[ended.child]);
      take(cell->index, ended.ending);
      running.erase(cell);
    }
  }

  ExperimentConfig experiment_of(std::size_t index) const {
    RunOptions alone = options_;
    alone.sweep = false;
    alone.no_sweep = true;
    alone.overrides = overrides_of(options_, cells_[index]);
    return Config::load(request_of(alone)).experiment();
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
    SweepRun& run = runs_[index];
    run.exit_code = static_cast<int>(ExitCode::kFailed);
    run.summary.status = "failed";
    run.summary.error = why;
    if (!options_.quiet) say(fmt::format("{}failed: {}", label_of(index, cells_.size()), why));
  }

  /// A cell has ended: what it left becomes its row.
  void take(std::size_t index, const Ending& ending) {
    ++done_;
    SweepRun& run = runs_[index];
    run = result_of(index, ending);
    if (run.exit_code != 0 && !options_.quiet && interrupt_signal() == 0)
      say(fmt::format("{}{}: {}", label_of(index, cells_.size()), run.summary.status, run.summary.error));
  }

  void keep(std::size_t index) {
    ++kept_;
    SweepRun& run = runs_[index];
    complete_finished(folder_of(index), config_.experiment().section("report").boolean("html"));
    run.summary = read_summary(folder_of(index) / kResultFile);
    run.exit_code = static_cast<int>(exit_code_of_finished(run.summary.status));
    if (run.exit_code == 0) run.result = text_of_file(folder_of(index) / kResultFile);
    run.is_kept = true;
    if (!options_.quiet) say(fmt::format("{}finished before", label_of(index, cells_.size())));
  }

  /// A cell that crashed has told of it in its result.
  void take_last_words(std::size_t index, SweepRun& run) const {
    try {
      const RunSummary summary = read_summary(folder_of(index) / kResultFile);
      if (summary.status == "crashed") run.summary = summary;
    } catch (const Error&) {  // it left none
    }
  }

  SweepRun result_of(std::size_t index, const Ending& ending) const {
    SweepRun run;
    run.exit_code = ending.exit_code;
    if (ending.signal != 0) {
      const bool from_outside = ending.signal == SIGKILL || ending.signal == SIGTERM || ending.signal == SIGINT;
      run.summary.status = from_outside ? "killed" : "crashed";
      run.summary.error = "ended by " + ending.signal_text();
      if (ending.signal == SIGKILL) run.summary.error += "; the kernel does this when the host runs out of memory";
      if (!from_outside) take_last_words(index, run);
      return run;
    }
    const fs::path file = folder_of(index) / kResultFile;
    try {
      run.summary = read_summary(file);
    } catch (const Error&) {
      run.summary.status = "failed";
      if (run.exit_code == 0) run.exit_code = static_cast<int>(ExitCode::kFailed);
    }
    if (run.exit_code != 0 && run.summary.error.empty()) {
      run.summary.status = "failed";
      run.summary.error = fmt::format("exit code {}; its messages are above", ending.exit_code);
    }
    if (run.exit_code == 0) run.result = text_of_file(file);
    return run;
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
                       .result = runs_[i].result,
                       .page = fs::exists(path() / page, ignored) ? page : ""});
    }
    const std::string remarks =
        losses_remark(done) + peak_remark(summaries) + checkpoint_remark(keys_, values, summaries);
    const std::string html = section.boolean("html")
                                 ? sweep_html(experiment.name, table_for(TableFormat::kTable), cells, remarks)
                                 : std::string();
    const std::optional<Error> unwritten = write(table_for(TableFormat::kJson), html);
    print(render(table_for(options_.format), options_.format, environment_json()));
    const bool for_people = options_.format == TableFormat::kTable;
    for (std::size_t i = 0; i < runs_.size() && for_people; ++i) {
      if (runs_[i].exit_code != 0)
        print(fmt::format("cell {} ({}): {}\n", i + 1, fmt::join(values[i], ", "), summaries[i].error));
    }
    const bool is_interrupted = interrupt_signal() != 0;
    if (is_interrupted || unwritten || (finished < runs_.size() && !options_.quiet)) {
      std::error_code ignored;
      const bool can_go_on = fs::exists(path() / kManifestFile, ignored);
      const std::string why = is_interrupted ? "ended by " + interrupt_name() + ", " : "";
      const char* const next = is_interrupted ? "go on with" : "once what was wrong is mended, go on with";
      say(fmt::format("tenon: {}{} of {} cells are finished{}", why, finished, cells_.size(),
                      can_go_on ? fmt::format("; {}\n  {}", next, resume_command(path())) : ""));
    }
    if (for_people) print(fmt::format("{}\nresults: {}\n", remarks, path().string()));
    if (unwritten) throw Error(*unwritten);
  }

  /// What went wrong: the table is printed first.
  std::optional<Error> write(const Table& table, const std::string& html) {
    try {
      if (folder_->restore()) write_manifest(path(), manifest_);
      write_atomically(path() / kResultFile, render(table, TableFormat::kJson, environment_json()));
      if (!html.empty()) write_atomically(path() / "report.html", html);
      manifest_.is_finished = interrupt_signal() == 0;
      write_manifest(path(), manifest_);
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
  std::vector<SweepRun> runs_;  ///< in the order of the cells
};

}  // namespace

ExitCode run_sweep(const RunOptions& options, const Config& config) { return Sweep(options, config).run(); }

ExitCode estimate_sweep(const RunOptions& options, const Config& config) {
  std::vector<std::vector<std::string>> values;
  std::vector<Estimate> estimates;
  const std::vector<SweepPoint> cells = config.sweep_cells();
  ProgressLine progress("estimating", options.quiet);
  for (const SweepPoint& cell : cells) {
    progress.update(estimates.size(), cells.size());
    RunOptions alone = options;
    alone.sweep = false;
    alone.no_sweep = true;
    alone.overrides = overrides_of(options, cell);
    values.push_back(cell.values);
    estimates.push_back(estimate_of(Config::load(request_of(alone)).experiment()));
    if (!estimates.back().memory)
      say(fmt::format("cell {}: no estimate of its memory: {}", estimates.size(), estimates.back().problem));
  }
  print(render(estimate_table(config.sweep_keys(), values, estimates), options.format, environment_json()));
  if (options.format == TableFormat::kTable) print(fmt::format("{} cells; nothing was run\n", estimates.size()));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
