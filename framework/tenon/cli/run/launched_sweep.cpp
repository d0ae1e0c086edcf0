// From cells to workers and back.
#include <tenon/cli/run/launched_sweep.h>

#include <tenon/cli/launch/command.h>
#include <tenon/cli/launch/follow_cells.h>
#include <tenon/cli/run/sweep_cells.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/core/text/counted.h>
#include <tenon/report/text/command_line.h>

#include <fmt/format.h>

#include <map>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLaunchFolder = "launch";

CellOutcome outcome_of(const FollowedCell& cell, const fs::path& folder, const std::string& messages) {
  CellOutcome outcome = outcome_of(folder, cell.end.ending, messages);
  if (cell.lost.empty()) return outcome;
  outcome.summary.status = RunStatus::kKilled;
  outcome.summary.error = cell.lost;
  if (!messages.empty()) outcome.summary.error += "; its messages are in " + messages;
  outcome.exit_code = static_cast<int>(ExitCode::kFailed);
  outcome.result.clear();
  return outcome;
}

}  // namespace

std::string launcher_options(const RunOptions& options) {
  if (options.launcher.empty()) return {};
  const std::string& words = options.launcher_args;
  return " --launcher " + options.launcher + (words.empty() ? "" : " --launcher-args " + shell_word(words));
}

void run_launched(const LaunchedSweep& sweep, const std::function<void(std::size_t, CellOutcome)>& ended) {
  if (sweep.cells.empty()) return;
  const RunOptions& options = sweep.options;
  std::vector<ListedCell> listed;
  std::vector<std::size_t> indices;
  std::map<std::size_t, fs::path> folders;
  for (const LaunchedCell& cell : sweep.cells) {
    listed.push_back(cell.listed);
    indices.push_back(cell.listed.index);
    folders.emplace(cell.listed.index, cell.folder);
  }
  const CellList list(fs::absolute(sweep.folder) / kLaunchFolder);
  list.write(listed);
  const auto launcher = make_launcher(options.launcher, words_of(options.launcher_args));
  const std::string what = launcher->start(list, indices, options.has_jobs ? options.jobs : 0);
  if (!options.quiet) say(fmt::format("{}: {}", what, counted(listed.size(), "cell")));
  follow_cells(list, *launcher, indices, [&](const FollowedCell& cell) {
    CellOutcome outcome = outcome_of(cell, folders.at(cell.index), launcher->messages_of(cell.index));
    if (!options.quiet) {
      say(fmt::format("{}{}{}", cell_label(cell.index, sweep.count), to_string(outcome.summary.status),
                      cell.end.host.empty() ? "" : " on " + cell.end.host));
    }
    ended(cell.index, std::move(outcome));
  });
}

}  // namespace tenon::cli
