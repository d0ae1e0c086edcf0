// Starting the cells, and making a row of whatever becomes of each.
#include <tenon/cli/run/sweep.h>

#include <tenon/cli/output_folder.h>
#include <tenon/cli/own_process.h>
#include <tenon/cli/run/estimate.h>
#include <tenon/cli/status_line.h>
#include <tenon/cli/verb.h>
#include <tenon/report/run_html.h>
#include <tenon/report/run_report.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>

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
  int exit_code = 0;   ///< 1 for a process that a signal ended
  std::string result;  ///< the text of its result.json; empty where it failed
};

class Sweep {
 public:
  Sweep(const RunOptions& options, const Config& config)
      : options_(options),
        config_(config),
        keys_(config.sweep_keys()),
        cells_(config.sweep_cells()),
        folder_(make_output_folder(options.out, config.experiment().name)) {}

  ExitCode run() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!options_.quiet) announce(i);
      runs_.push_back(run_cell(i));
      const SweepRun& run = runs_.back();
      if (run.exit_code != 0 && !options_.quiet)
        say(fmt::format("{}{}: {}", label_of(i, cells_.size()), run.summary.status, run.summary.error));
    }
    report();
    int code = 0;
    for (const SweepRun& run : runs_) {
      if (run.exit_code != 0)
        code = code == 0 || code == run.exit_code ? run.exit_code : static_cast<int>(ExitCode::kFailed);
    }
    return static_cast<ExitCode>(code);
  }

 private:
  void announce(std::size_t index) const {
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double left =
        index == 0 ? 0 : elapsed / static_cast<double>(index) * static_cast<double>(cells_.size() - index);
    const std::string about = index == 0 || elapsed < 2 ? "" : fmt::format("  (about {} left)", format_duration(left));
    const std::vector<std::string>& words = keys_.front() == "row" ? cells_[index].values : cells_[index].overrides;
    say(fmt::format("{}{}{}", label_of(index, cells_.size()), fmt::join(words, " "), about));
  }

  /// The cell as a command line of this program, without the program's name.
  std::vector<std::string> arguments_of(std::size_t index, const fs::path& folder) const {
    std::vector<std::string> words = {"run", options_.file};
    for (std::string& word : overrides_of(options_, cells_[index])) words.push_back(std::move(word));
    if (!options_.record.empty()) words.push_back(record_override(options_));
    words.insert(words.end(), {"--no-sweep", "--out", folder.string(), "--label", label_of(index, cells_.size())});
    if (options_.quiet) words.push_back("--quiet");
    return words;
  }

  /// Runs this program again, waits, and reads what it left. Its messages go to our stderr.
  SweepRun run_cell(std::size_t index) const {
    const fs::path folder = folder_ / "cells" / folder_name(index, cells_[index].values);
    const fs::path file = folder / "result.json";
    std::error_code ignored;
    fs::remove(file, ignored);  // an older run's result must not stand in for a crash
    const Ending ending = run_again(arguments_of(index, folder), true);  // its table is dropped; ours has the row

    SweepRun run;
    run.exit_code = ending.exit_code;
    if (ending.signal != 0) {
      const bool from_outside = ending.signal == SIGKILL || ending.signal == SIGTERM || ending.signal == SIGINT;
      run.summary.status = from_outside ? "killed" : "crashed";
      run.summary.error = "ended by " + ending.signal_text();
      if (ending.signal == SIGKILL) run.summary.error += "; the kernel does this when the host runs out of memory";
      return run;
    }
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
    if (std::ifstream text(file); run.exit_code == 0 && text)
      run.result = std::string(std::istreambuf_iterator<char>(text), {});
    return run;
  }

  void report() const {
    std::vector<std::vector<std::string>> values;
    std::vector<RunSummary> summaries;
    std::vector<std::pair<std::string, std::string>> results;  // of the cells that left one
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      values.push_back(cells_[i].values);
      summaries.push_back(runs_[i].summary);
      if (!runs_[i].result.empty())
        results.emplace_back(fmt::format("{}", fmt::join(cells_[i].values, ", ")), runs_[i].result);
    }
    const ExperimentConfig experiment = config_.experiment();
    const Options& section = experiment.section("report");
    const Table table = run_comparison(keys_, values, summaries, section.boolean("by_purpose"));
    write_file(folder_ / "result.json", render(table, TableFormat::kJson, environment_json()));
    if (section.boolean("html")) write_file(folder_ / "report.html", sweep_html(experiment.name, table, results));
    print(render(table, options_.format, environment_json()));
    if (options_.format != TableFormat::kTable) return;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].exit_code != 0)
        print(fmt::format("cell {} ({}): {}\n", i + 1, fmt::join(values[i], ", "), summaries[i].error));
    }
    print(fmt::format("{}\nresults: {}\n", losses_remark(summaries), folder_.string()));
  }

  const RunOptions& options_;
  const Config& config_;
  const std::vector<std::string> keys_;
  const std::vector<SweepPoint> cells_;
  const fs::path folder_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<SweepRun> runs_;
};

}  // namespace

ExitCode run_sweep(const RunOptions& options, const Config& config) { return Sweep(options, config).run(); }

ExitCode estimate_sweep(const RunOptions& options, const Config& config) {
  std::vector<std::vector<std::string>> values;
  std::vector<Estimate> estimates;
  for (const SweepPoint& cell : config.sweep_cells()) {
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
