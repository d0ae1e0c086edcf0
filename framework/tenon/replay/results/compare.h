// Comparing replays: repeated timings with their intervals, and a verdict for each metric against a baseline.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <string>
#include <vector>

namespace tenon::replay {

/// Adds another round's timed passes of the same job.
TENON_API void add_passes(ReplayRow& row, const ReplayRow& round);

/// A sentence per metric and row that has a match in the baseline: better, worse, the same, within noise.
TENON_API std::vector<std::string> verdicts(const std::vector<ReplayRow>& rows, const std::vector<ReplayRow>& baseline);

/// A sentence for each row that was timed in several passes: the median of its seconds with the 95 % interval.
TENON_API std::vector<std::string> timing_remarks(const std::vector<ReplayRow>& rows);

}  // namespace tenon::replay
