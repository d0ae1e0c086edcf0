// Order statistics and their coverage.
#include <tenon/measure/statistics/median_interval.h>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>

#include <algorithm>
#include <cmath>

namespace tenon::measure {

namespace {

/// How far in from both ends the interval may begin: the most samples that may be left out on one side, plus 1; 0 where
/// not even none may.
std::size_t rank_of_interval(std::size_t count, double confidence) {
  const double tail = (1 - confidence) / 2;
  const boost::math::binomial below_the_median(static_cast<double>(count), 0.5);
  if (boost::math::cdf(below_the_median, 0) > tail) return 0;
  return static_cast<std::size_t>(boost::math::quantile(below_the_median, tail)) + 1;  // a low quantile rounds down
}

}  // namespace

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
  const double rank =
      std::floor(m * n / 2 - boost::math::quantile(boost::math::normal(), 0.5 + confidence / 2) * spread);
  if (rank < 1) return std::nullopt;
  const auto out = static_cast<std::size_t>(rank) - 1;
  return Interval{differences[out], median(differences), differences[differences.size() - 1 - out]};
}

}  // namespace tenon::measure
