// Histograms: PyTorch's steps in float64, whose choices are the same but where two errors are equal to float32.
#include <tenon/nn/quantization/histogram.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tenon::nn::quantization {
namespace {

constexpr double kStep = 1e-5;       // of the quantiles at which an end is cut
constexpr int kPointsOfOldBin = 16;  // that an old bin becomes when the range grows

/// The bins that stay: [begin, end].
struct Cut {
  std::size_t begin, end;
};

/// What values spread over [from, to] with density 1 have as squares.
double squares(double from, double to) { return (to * to * to - from * from * from) / 3; }

double squared_error(const std::vector<double>& counts, double width, Cut cut, int levels) {
  const double step = width * static_cast<double>(cut.end - cut.begin + 1) / levels;
  if (step == 0) return 0;
  const auto level_of = [&](double at) {
    return std::clamp(std::floor(at / step), 0.0, static_cast<double>(levels - 1));
  };
  double sum = 0;
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    const double begin = (static_cast<double>(bin) - static_cast<double>(cut.begin)) * width, end = begin + width;
    const double first = level_of(begin), last = level_of(end);
    const double of_one = squares(begin - (first + 0.5) * step, step / 2) +
                          (last - first - 1) * squares(-step / 2, step / 2) +
                          squares(-step / 2, end - (last + 0.5) * step);
    sum += counts[bin] / width * of_one;
  }
  return sum;
}

}  // namespace

std::vector<double> histogram(std::span<const float> values, std::size_t bins, float low, float high) {
  std::vector<double> counts(bins);
  if (low == high) {
    low -= 1;
    high += 1;
  }
  for (const float value : values) {
    const float at = (value - low) * static_cast<float>(bins) / (high - low);
    counts[std::min(static_cast<std::size_t>(std::max(at, 0.0F)), bins - 1)] += 1;
  }
  return counts;
}

void add_histogram(std::vector<double>& sum, Range range, const std::vector<double>& old, Range old_range) {
  if (range.low == old_range.low && range.high == old_range.high) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += old[i];
    return;
  }
  const double width = (static_cast<double>(range.high) - range.low) / static_cast<double>(sum.size());
  const auto add = [&](double at, double count) {
    const double bin = std::clamp((at - range.low) / width, 0.0, static_cast<double>(sum.size() - 1));
    sum[static_cast<std::size_t>(bin)] += count;
  };
  if (old_range.low == old_range.high) return add(old_range.low, std::accumulate(old.begin(), old.end(), 0.0));
  const double points = static_cast<double>(old.size()) * kPointsOfOldBin;
  const double step = (static_cast<double>(old_range.high) - old_range.low) / points;
  for (std::size_t bin = 0; bin < old.size(); ++bin) {
    for (int i = 0; i < kPointsOfOldBin; ++i) {
      const double point = static_cast<double>(bin) * kPointsOfOldBin + i;
      add(old_range.low + (point + 0.5) * step, old[bin] / kPointsOfOldBin);
    }
  }
}

Range range_of_least_error(const std::vector<double>& counts, Range range, int levels) {
  const double width = (static_cast<double>(range.high) - range.low) / static_cast<double>(counts.size());
  std::vector<double> up_to(counts.size());
  std::partial_sum(counts.begin(), counts.end(), up_to.begin());
  const double total = up_to.back();
  Cut cut{0, counts.size() - 1};
  double low = 0, high = 1, least = std::numeric_limits<double>::infinity();
  while (low < high) {
    const double next_low = low + kStep, next_high = high - kStep;
    Cut next = cut;
    while (next.begin < cut.end && up_to[next.begin] < next_low * total) ++next.begin;
    while (next.end > cut.begin && up_to[next.end] > next_high * total) --next.end;
    // The end that gives up more bins for its quantile is the one that is cut.
    if (next.begin - cut.begin > cut.end - next.end) {
      next.end = cut.end;
      low = next_low;
    } else {
      next.begin = cut.begin;
      high = next_high;
    }
    if (next.begin == cut.begin && next.end == cut.end) continue;
    const double error = squared_error(counts, width, next, levels);
    if (error > least) break;
    least = error;
    cut = next;
  }
  const auto at = [&](std::size_t bin) { return static_cast<float>(range.low + width * static_cast<double>(bin)); };
  return {at(cut.begin), at(cut.end + 1)};
}

}  // namespace tenon::nn::quantization
