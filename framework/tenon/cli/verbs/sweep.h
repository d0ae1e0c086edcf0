// A sweep: every cell in a process of its own, so that a crash, a kill or an out-of-memory loses one row.
#pragma once

#include <tenon/cli/run_files.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// One cell as a command line of this program, without the program's name.
struct SweepCell {
  std::vector<std::string> arguments;
  std::filesystem::path folder;  ///< where it writes result.json
};

struct CellOutcome {
  CellSummary summary;
  int exit_code = 0;  ///< 1 for a process that a signal ended
};

/// Runs this program again with the cell's arguments, waits, and reads what it left. Its messages go to our stderr.
CellOutcome run_cell(const SweepCell& cell);

}  // namespace tenon::cli
