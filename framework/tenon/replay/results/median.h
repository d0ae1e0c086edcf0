// The median of samples, and an interval for however few of them there are.
#pragma once

#include <tenon/core/export.h>

#include <vector>

namespace tenon::replay {

struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};

/// At least one sample.
TENON_API double median(std::vector<double> samples);

/// The median of the samples with a 95 % percentile-bootstrap interval; the resampling is seeded, so equal samples give
/// equal intervals. At least one sample.
///
/// measure/statistics/median_interval.h has an interval that keeps what it promises, but only from six samples on, and
/// a replay is timed two to five times as a rule: "seconds_interval" in its JSON stands from two passes on.
TENON_API Interval bootstrap_median(const std::vector<double>& samples);

}  // namespace tenon::replay
