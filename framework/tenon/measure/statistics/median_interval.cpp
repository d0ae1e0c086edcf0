// Order statistics and their coverage.
#include <tenon/measure/statistics/median_interval.h>

#include <algorithm>
#include <cmath>

namespace tenon::measure {

namespace {

/// How far in from both ends the interval may begin: the most samples that may be left out on one side, plus 1; 0 where
/// not even none may.
std::size_t rank_of_interval(std::size_t count, double confidence) {
  const double tail = (1 - confidence) / 2;
  double probability = std::exp2(-static_cast<double>(count));  // of exactly `out` samples below the median
  double below = 0;
  std::size_t rank = 0;
  for (std::size_t out = 0; 2 * out < count; ++out) {
    below += probability;
    if (below > tail) break;
    rank = out + 1;
    probability *= static_cast<double>(count - out) / static_cast<double>(out + 1);
  }
  return rank;
}

/// The quantile of the standard normal distribution, from std::erf by halving.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * (1 + std::erf(middle / std::sqrt(2.0))) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double median(std::vector<double> samples) {
  std::ranges::sort(samples);
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 != 0 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

std::optional<Interval> median_interval(std::vector<double> samples, double confidence) {
  const std::size_t rank = rank_of_interval(samples.size(), confidence);
  if (rank == 0) return std::nullopt;
  std::ranges::sort(samples);
  return Interval{samples[rank - 1], median(samples), samples[samples.size() - rank]};
}

std::size_t samples_for(double confidence) {
  std::size_t count = 1;
  while (rank_of_interval(count, confidence) == 0) ++count;
  return count;
}

std::optional<Interval> shift_interval(const std::vector<double>& before, const std::vector<double>& after,
                                       double confidence) {
  if (before.size() < 5 || after.size() < 5) return std::nullopt;
  std::vector<double> differences;
  differences.reserve(before.size() * after.size());
  for (const double then : before) {
    for (const double now : after) differences.push_back(now - then);
  }
  std::ranges::sort(differences);
  const auto m = static_cast<double>(before.size());
  const auto n = static_cast<double>(after.size());
  const double spread = std::sqrt(m * n * (m + n + 1) / 12);
  const double rank = std::floor(m * n / 2 - normal_quantile(0.5 + confidence / 2) * spread);
  if (rank < 1) return std::nullopt;
  const auto out = static_cast<std::size_t>(rank) - 1;
  return Interval{differences[out], median(differences), differences[differences.size() - 1 - out]};
}

}  // namespace tenon::measure
