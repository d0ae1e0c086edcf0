// The comparison that `tenon replay` prints: a row per trace and allocator, the ideal one last.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/report/table.h>

#include <vector>

namespace tenon {

/// Every figure of the contract as a column; people see the ones that decide.
TENON_API Table replay_table(const std::vector<replay::ReplayRow>& rows);

/// A sentence for each row that says what a table cannot: why it failed, where it ran out of memory.
TENON_API std::vector<std::string> replay_remarks(const std::vector<replay::ReplayRow>& rows);

}  // namespace tenon
