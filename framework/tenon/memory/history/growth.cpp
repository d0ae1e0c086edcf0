// Growth of a series: its later half lies above its earlier one, in steps.
#include <tenon/memory/history/growth.h>

#include <algorithm>
#include <numeric>

namespace tenon {

namespace {

double mean(std::span<const std::uint64_t> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::optional<double> growth_per_step(std::span<const std::uint64_t> values) {
  constexpr std::size_t kLeastHeights = 3;
  if (values.size() < kLeastStepsOfGrowth) return std::nullopt;
  const std::size_t half = values.size() / 2;
  const auto earlier = values.first(half), later = values.last(half);
  if (*std::ranges::min_element(later) <= *std::ranges::max_element(earlier)) return std::nullopt;
  std::size_t heights = 0, last = 0;
  std::uint64_t highest = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= highest) continue;
    highest = values[i];
    last = i;
    ++heights;
  }
  if (heights < kLeastHeights || last < values.size() - half) return std::nullopt;
  return (mean(later) - mean(earlier)) / static_cast<double>(values.size() - half);
}

}  // namespace tenon
