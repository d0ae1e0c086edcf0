// The comparison that `tenon replay` prints, as a table or as JSON: a row per trace and allocator, the ideal one last.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/results/gate.h>
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

/// The rows' JSON with what became of each gate: `trips` are the sentences of its rows, in the order of `gates`. With
/// timelines: the curve of each row that has one.
TENON_API std::string replay_json(const std::vector<replay::ReplayRow>& rows, const std::vector<replay::Gate>& gates,
                                  const std::vector<std::vector<std::string>>& trips,
                                  const std::string& environment_json, bool with_timelines = false);

}  // namespace tenon
