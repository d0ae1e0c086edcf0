// The pattern of growth, and the trend where only sums are known.
#include <tenon/memory/history/growth.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace tenon {

namespace {

using Values = std::vector<std::uint64_t>;

constexpr std::size_t kMostValues = 128;  ///< pairs are compared: of more values each stretch counts with its least

/// What a series never comes below again, at each of its values.
Values lower_bound_of(std::span<const std::uint64_t> levels) {
  Values bound(levels.begin(), levels.end());
  for (std::size_t i = bound.size() - 1; i > 0; --i) bound[i - 1] = std::min(bound[i - 1], bound[i]);
  return bound;
}

/// What is added at each value: one less than there are values.
Values rises_of(std::span<const std::uint64_t> bound) {
  Values rises;
  for (std::size_t i = 1; i < bound.size(); ++i) rises.push_back(bound[i] - bound[i - 1]);
  return rises;
}

double sum(std::span<const std::uint64_t> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// It rises in each of so many parts of the time, and in the later half by at least that share of the earlier.
bool keeps_rising(std::span<const std::uint64_t> rises, std::size_t parts = 3, double least_of_earlier = 0.2) {
  constexpr std::size_t kLeastRises = 3;
  constexpr double kRest = 2;
  const std::size_t count = rises.size();
  std::size_t at_rises = 0, longest = 0, next = 0;  // next: after the last rise
  Values in_part(parts, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (rises[i] == 0) continue;
    ++at_rises;
    ++in_part[i * parts / count];
    longest = std::max(longest, i + 1 - next);
    next = i + 1;
  }
  if (at_rises < kLeastRises || std::ranges::find(in_part, 0U) != in_part.end()) return false;
  if (static_cast<double>(count - next) > kRest * static_cast<double>(longest)) return false;
  const std::size_t half = count / 2;
  return sum(rises.last(half)) >= least_of_earlier * sum(rises.first(half));
}

/// How many values there are before the first one, where these are twice as many as from one to the next: it had not
/// begun.
std::size_t begins_late(std::span<const std::uint64_t> survivors) {
  const auto is_one = [](std::uint64_t bytes) { return bytes != 0; };
  const auto first = std::ranges::find_if(survivors, is_one);
  std::ptrdiff_t longest = 0;
  for (auto last = first, at = first; at != survivors.end(); ++at) {
    if (!is_one(*at)) continue;
    longest = std::max(longest, at - last);
    last = at;
  }
  const std::ptrdiff_t before = first - survivors.begin();
  return before >= 2 * std::max<std::ptrdiff_t>(longest, 1) ? static_cast<std::size_t>(before) : 0;
}

/// Mann, Nonparametric tests against trend (1945), with the correction for ties of Kendall, Rank correlation methods.
bool has_trend(std::span<const std::uint64_t> levels) {
  constexpr double kDeviations = 3, kNearlyAll = 0.85;
  const auto n = static_cast<double>(levels.size());
  double score = 0;
  std::map<std::uint64_t, double> ties;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    ++ties[levels[i]];
    for (std::size_t j = i + 1; j < levels.size(); ++j) score += (levels[j] > levels[i]) - (levels[j] < levels[i]);
  }
  double variance = n * (n - 1) * (2 * n + 5);
  for (const auto& [level, count] : ties) variance -= count * (count - 1) * (2 * count + 5);
  const double deviation = std::sqrt(variance / 18);
  // So few values cannot be further from chance than this.
  const double pairs = n * (n - 1) / 2, most = (pairs - 1) / std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  return most < kDeviations ? score >= kNearlyAll * pairs : score - 1 >= kDeviations * deviation;
}

/// Sen, Estimates of the regression coefficient based on Kendall's tau (1968).
double median_slope(std::span<const std::uint64_t> levels) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < levels.size(); ++i)
    for (std::size_t j = i + 1; j < levels.size(); ++j)
      slopes.push_back((static_cast<double>(levels[j]) - static_cast<double>(levels[i])) / static_cast<double>(j - i));
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::ranges::nth_element(slopes, middle);
  return *middle;
}

}  // namespace

std::optional<double> growth_per_step(std::span<const std::uint64_t> levels) {
  if (levels.size() < kLeastStepsOfGrowth) return std::nullopt;
  const std::size_t stretch = (levels.size() + kMostValues - 1) / kMostValues;
  Values least;
  for (std::size_t from = 0; from < levels.size(); from += stretch)
    least.push_back(std::ranges::min(levels.subspan(from, std::min(stretch, levels.size() - from))));
  if (!keeps_rising(rises_of(lower_bound_of(least))) || !has_trend(least)) return std::nullopt;
  const double slope = median_slope(least);
  // Most pairs of a rare rise are level.
  const double mean =
      (static_cast<double>(least.back()) - static_cast<double>(least.front())) / static_cast<double>(least.size() - 1);
  return (slope > 0 ? slope : mean) / static_cast<double>(stretch);
}

std::optional<double> growth_per_step(std::span<const std::uint64_t> levels, std::span<const std::uint64_t> survivors) {
  if (levels.size() < kLeastStepsOfGrowth) return std::nullopt;
  const Values bound = lower_bound_of(levels);
  if (keeps_rising(survivors) && keeps_rising(rises_of(bound))) {
    const std::size_t late = begins_late(survivors), count = survivors.size() - late;
    // The step that ended last may hold what it still gives back.
    const double made = sum(survivors) / static_cast<double>(count);
    return std::min(made, static_cast<double>(bound.back() - bound[late]) / static_cast<double>(count - 1));
  }
  // A queue has some of several steps. One that takes in more than it gives out rises everywhere; what is on its way up
  // for a while, as any queue may be, does not. With eighths of 24 steps 8 of 100 queues that take in and give out by
  // chance were told once in 400 steps, with these less than 1.
  constexpr std::size_t kLastSteps = 2, kLeastOfQueues = 48, kPartsOfQueues = 12;
  constexpr double kLeastOfEarlierOfQueues = 0.5;
  const bool is_queue = sum(survivors.first(survivors.size() - kLastSteps)) > 0;
  if (is_queue &&
      (levels.size() < kLeastOfQueues || !keeps_rising(rises_of(bound), kPartsOfQueues, kLeastOfEarlierOfQueues)))
    return std::nullopt;
  return growth_per_step(levels);
}

std::size_t rising_end(std::span<const std::uint64_t> levels, std::span<const std::uint64_t> survivors) {
  for (std::size_t count = levels.size(); count >= kLeastStepsOfGrowth; --count) {
    const auto before = levels.first(levels.size() - count);
    if (!before.empty() && std::ranges::max(before) >= levels.back()) continue;
    if (survivors[levels.size() - count] == 0) continue;  // it begins with what was made first
    if (keeps_rising(survivors.last(count)) && keeps_rising(rises_of(lower_bound_of(levels.last(count))))) return count;
  }
  return 0;
}

}  // namespace tenon
