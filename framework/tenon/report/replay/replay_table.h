// The comparison that `tenon replay` prints, as a table: a row per trace and allocator, the ideal one last.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

/// Every figure of the contract as a column; people see the ones that decide. After an out of memory the shares say
/// nothing of the history that was asked for: people see at which event it was, programs the figures.
TENON_API Table replay_table(const std::vector<replay::ReplayRow>& rows, TableFormat format = TableFormat::kTable);

/// What the columns of the table mean, a sentence or two for people; ends in a newline.
TENON_API std::string replay_legend();

/// A sentence for each row that says what a table cannot: why it failed, where it ran out of memory.
TENON_API std::vector<std::string> replay_remarks(const std::vector<replay::ReplayRow>& rows);

/// Where to go on from rows that are disqualified (kit_advice); empty where none is.
TENON_API std::string replay_advice(const std::vector<replay::ReplayRow>& rows);

}  // namespace tenon
