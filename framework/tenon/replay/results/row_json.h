// Rows as JSON, the contract's keys, and back.
#pragma once

#include <tenon/replay/engine/replay.h>
#include <tenon/replay/results/gate.h>

#include <string>
#include <vector>

namespace tenon::replay {

/// {"schema_version":1,"environment":…,"rows":[…],"gates":[…]}. `environment_json` is runtime's block; `trips` says of
/// each gate why it tripped.
TENON_API std::string rows_json(const std::vector<ReplayRow>& rows, const std::string& environment_json,
                                bool with_timelines = false, const std::vector<Gate>& gates = {},
                                const std::vector<std::vector<std::string>>& trips = {});

/// The rows of a file that rows_json wrote. Throws ConfigError naming the file.
TENON_API std::vector<ReplayRow> read_rows(const std::string& path);

/// One row with everything in it, curves and layouts too: what a child process sends.
std::string pack_row(const ReplayRow& row);
ReplayRow unpack_row(const std::string& packed);

}  // namespace tenon::replay
