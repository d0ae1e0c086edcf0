// Follows cells that run elsewhere, until each has ended in one way or another.
#pragma once

#include <tenon/cli/launch/launcher.h>

#include <functional>
#include <vector>

namespace tenon::cli {

/// What became of a cell.
struct FollowedCell {
  std::size_t index = 0;
  CellEnd end;       ///< where its process ended
  std::string lost;  ///< why there is no end; empty: there is one
};

/// Calls `ended` once for each of the cells. Once this process is asked to end (interrupt.h) the list is stopped: cells
/// that run end after their step, and those that nobody began are not told of. Throws what `ended` throws.
void follow_cells(const CellList& list, Launcher& launcher, std::vector<std::size_t> cells,
                  const std::function<void(const FollowedCell&)>& ended);

}  // namespace tenon::cli
