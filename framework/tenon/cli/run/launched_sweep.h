// The cells of a sweep run by an engine's workers, on this machine or others (launch/launcher.h).
#pragma once

#include <tenon/cli/launch/cell_list.h>
#include <tenon/cli/results/run_options.h>
#include <tenon/cli/run/cell_outcome.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tenon::cli {

struct LaunchedCell {
  ListedCell listed;
  std::filesystem::path folder;  ///< of its results
};

struct LaunchedSweep {
  const RunOptions& options;
  std::filesystem::path folder;
  std::vector<LaunchedCell> cells;  ///< those that have to run
  std::size_t count = 0;            ///< of all cells, for labels
};

/// Starts the engine's workers, follows them and hands over what became of each cell; those that an interrupt came
/// before are left out. Throws Error where the engine refuses.
void run_launched(const LaunchedSweep& sweep, const std::function<void(std::size_t, CellOutcome)>& ended);

/// " --launcher mpi --launcher-args --oversubscribe", as the command has it that goes on; empty without one.
std::string launcher_options(const RunOptions& options);

}  // namespace tenon::cli
