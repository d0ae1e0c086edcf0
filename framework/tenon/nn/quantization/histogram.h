// Histograms of HistogramObserver: counting, adding up, and the range whose quantization loses least.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tenon::nn::quantization {

struct Range {
  float low = 0, high = 0;
};

/// Values in each of `bins` equal parts of [low, high]; the last one holds `high` too. Where both ends are one number,
/// the range reaches from one below it to one above.
std::vector<double> histogram(std::span<const float> values, std::size_t bins, float low, float high);

/// Adds `old`, which covers a narrower range, to `sum`: each old bin spread over sixteen points of the new range.
void add_histogram(std::vector<double>& sum, Range range, const std::vector<double>& old, Range old_range);

/// The bins between which `levels` integers represent the values with the least squared error, ends being cut by
/// quantiles of 1e-5 at a time for as long as the error falls.
Range range_of_least_error(const std::vector<double>& counts, Range range, int levels);

}  // namespace tenon::nn::quantization
