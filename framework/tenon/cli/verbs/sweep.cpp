// Starting a cell and making a row of whatever becomes of it.
#include <tenon/cli/own_process.h>
#include <tenon/cli/verbs/sweep.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <csignal>

namespace tenon::cli {

CellOutcome run_cell(const SweepCell& cell) {
  const std::filesystem::path file = cell.folder / "result.json";
  std::error_code ignored;
  std::filesystem::remove(file, ignored);                 // an older run's result must not stand in for a crash
  const Ending ending = run_again(cell.arguments, true);  // its table is dropped; ours has the row

  CellOutcome outcome;
  outcome.exit_code = ending.exit_code;
  if (ending.signal != 0) {
    const bool from_outside = ending.signal == SIGKILL || ending.signal == SIGTERM || ending.signal == SIGINT;
    outcome.summary.status = from_outside ? "killed" : "crashed";
    outcome.summary.error = "ended by " + ending.signal_text();
    if (ending.signal == SIGKILL) outcome.summary.error += "; the kernel does this when the host runs out of memory";
    return outcome;
  }
  try {
    outcome.summary = read_summary(file);
  } catch (const Error&) {
    outcome.summary.status = "failed";
    if (outcome.exit_code == 0) outcome.exit_code = static_cast<int>(ExitCode::kFailed);
  }
  if (outcome.exit_code != 0 && outcome.summary.error.empty()) {
    outcome.summary.status = "failed";
    outcome.summary.error = fmt::format("exit code {}; its messages are above", ending.exit_code);
  }
  return outcome;
}

}  // namespace tenon::cli
