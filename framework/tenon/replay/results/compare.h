// Comparing replays: repeated timings with their intervals, and a verdict for each metric against a baseline.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::replay {

/// Why nothing is said or judged of a change in speed against a baseline, however many passes there are of each: a
/// machine is slower at one time than at another, which the passes of one file do not show.
inline constexpr char kOneFileEach[] =
    "one file each (take both in one `tenon bench OLD NEW --history TRACE`, or six files or more a side, made in turn, "
    "as `tenon compare a-* vs b-*`)";

/// Adds another round's timed passes of the same job.
TENON_API void add_passes(ReplayRow& row, const ReplayRow& round);

/// A sentence per metric and row that has a match in the baseline: better, worse, the same, of times no verdict; "not
/// comparable: OOM at event 12" of figures that need the end where one of them ran out.
TENON_API std::vector<std::string> verdicts(const std::vector<ReplayRow>& rows, const std::vector<ReplayRow>& baseline);

/// A sentence for each row that was timed in several passes: the median of its seconds with the 95 % interval.
TENON_API std::vector<std::string> timing_remarks(const std::vector<ReplayRow>& rows);

}  // namespace tenon::replay
