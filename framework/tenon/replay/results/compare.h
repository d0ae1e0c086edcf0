// Comparing replays: repeated timings with bootstrap intervals, and a verdict for each metric against a baseline.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::replay {

/// Adds another round's timed passes of the same job.
TENON_API void add_passes(ReplayRow& row, const ReplayRow& round);

struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};

/// The median of the samples with a 95 % percentile-bootstrap interval; the resampling is seeded, so equal samples give
/// equal intervals. At least one sample.
TENON_API Interval bootstrap_median(const std::vector<double>& samples);

/// A sentence per metric and row that has a match in the baseline: better, worse, the same, within noise.
TENON_API std::vector<std::string> verdicts(const std::vector<ReplayRow>& rows, const std::vector<ReplayRow>& baseline);

/// A sentence for each row that was timed in several passes: the median of its seconds with the 95 % interval.
TENON_API std::vector<std::string> timing_remarks(const std::vector<ReplayRow>& rows);

}  // namespace tenon::replay
