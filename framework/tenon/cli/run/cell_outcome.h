// What became of one cell of a sweep: what its process left, or what it says by the way in which it ended.
#pragma once

#include <tenon/cli/process/own_process.h>
#include <tenon/report/run/run_report.h>

#include <filesystem>
#include <string>

namespace tenon::cli {

struct CellOutcome {
  RunSummary summary;
  int exit_code = 0;     ///< 1 for a process that a signal ended
  std::string result;    ///< the text of its result.json; empty where it is not finished
  bool is_kept = false;  ///< from before, when the sweep was resumed
  bool is_told = false;  ///< its process has said what went wrong
};

/// Of a process that ended so, with its folder; `messages`: the file of what it said, empty where that is above.
CellOutcome outcome_of(const std::filesystem::path& folder, const Ending& ending, const std::string& messages = {});

/// Of a cell that was finished when the sweep was resumed; see complete_finished().
CellOutcome kept_outcome(const std::filesystem::path& folder, bool has_report);

}  // namespace tenon::cli
