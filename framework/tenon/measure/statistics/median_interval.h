// The median of samples with an interval that needs no assumption about how they are distributed.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/results/median.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace tenon::measure {

using replay::Interval;
using replay::median;

/// The order statistics between which the median of the population lies with at least this confidence (the sign test
/// turned round: B(n, 1/2) says how many samples fall on one side of it). Right for independent samples of any
/// distribution. Empty where even the smallest and the largest are not far enough apart: samples_for() says how many
/// are needed.
TENON_API std::optional<Interval> median_interval(std::vector<double> samples, double confidence);

/// The least number of samples for which there is an interval of this confidence.
TENON_API std::size_t samples_for(double confidence);

/// The difference between two populations' medians, `after` less `before`, for samples that are not pairs: the interval
/// of Hodges and Lehmann (Mann and Whitney's test turned round, in its normal approximation). Empty below five samples
/// on a side.
TENON_API std::optional<Interval> shift_interval(const std::vector<double>& before, const std::vector<double>& after,
                                                 double confidence);

}  // namespace tenon::measure
