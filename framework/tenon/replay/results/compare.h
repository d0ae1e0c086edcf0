// Comparing replays: repeated timings with their intervals, and a verdict for each metric against a baseline.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::replay {

/// With fewer timed passes on a side, nothing is said or judged of a change in speed.
inline constexpr std::size_t kPassesForVerdict = 5;

/// Adds another round's timed passes of the same job.
TENON_API void add_passes(ReplayRow& row, const ReplayRow& round);

/// A sentence per metric and row that has a match in the baseline: better, worse, the same, within noise; "not
/// comparable: OOM at event 12" of figures that need the end where one of them ran out.
TENON_API std::vector<std::string> verdicts(const std::vector<ReplayRow>& rows, const std::vector<ReplayRow>& baseline);

/// A sentence for each row that was timed in several passes: the median of its seconds with the 95 % interval.
TENON_API std::vector<std::string> timing_remarks(const std::vector<ReplayRow>& rows);

}  // namespace tenon::replay
