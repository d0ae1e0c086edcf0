// Reads the folder of a cell, and the way in which its process ended.
#include <tenon/cli/run/cell_outcome.h>

#include <tenon/cli/results/run_folder.h>
#include <tenon/core/files/file_text.h>

#include <fmt/format.h>

#include <csignal>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// A cell that crashed has told of it in its result.
void take_last_words(const fs::path& folder, CellOutcome& outcome) {
  try {
    const RunSummary summary = read_summary(folder / kResultFile);
    if (summary.status != RunStatus::kCrashed) return;
    outcome.summary = summary;
    outcome.is_told = true;
  } catch (const Error&) {  // it left none
  }
}

CellOutcome outcome_of_signal(const fs::path& folder, const Ending& ending) {
  CellOutcome outcome;
  outcome.exit_code = ending.exit_code;
  const bool from_outside = ending.signal == SIGKILL || ending.signal == SIGTERM || ending.signal == SIGINT;
  outcome.summary.status = from_outside ? RunStatus::kKilled : RunStatus::kCrashed;
  outcome.summary.error = "ended by " + ending.signal_text();
  if (ending.signal == SIGKILL) outcome.summary.error += "; the kernel does this when the host runs out of memory";
  if (!from_outside) take_last_words(folder, outcome);
  return outcome;
}

}  // namespace

CellOutcome outcome_of(const fs::path& folder, const Ending& ending, const std::string& messages) {
  if (ending.signal != 0) return outcome_of_signal(folder, ending);
  CellOutcome outcome;
  outcome.exit_code = ending.exit_code;
  try {
    outcome.summary = read_summary(folder / kResultFile);
    outcome.is_told = !outcome.summary.error.empty();
    if (is_finished(outcome.summary.status)) outcome.result = text_of_file(folder / kResultFile);
  } catch (const Error&) {
    outcome.summary.status = RunStatus::kFailed;
    if (outcome.exit_code == 0) outcome.exit_code = static_cast<int>(ExitCode::kFailed);
  }
  if (outcome.exit_code != 0 && outcome.summary.error.empty()) {
    outcome.summary.status = RunStatus::kFailed;
    outcome.summary.error =
        ending.exit_code == 0
            ? "its process ended with code 0 before it was done: its result is not in " + folder.string()
            : fmt::format("exit code {}; its messages are {}", ending.exit_code,
                          messages.empty() ? "above" : "in " + messages);
  }
  return outcome;
}

CellOutcome kept_outcome(const fs::path& folder, bool has_report) {
  complete_finished(folder, has_report);
  CellOutcome outcome;
  outcome.summary = read_summary(folder / kResultFile);
  outcome.exit_code = static_cast<int>(exit_code_of_finished(outcome.summary.status));
  outcome.result = text_of_file(folder / kResultFile);
  outcome.is_kept = outcome.is_told = true;
  return outcome;
}

}  // namespace tenon::cli
