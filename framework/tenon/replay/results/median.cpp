// The middle of sorted samples; the bootstrap draws with a fixed seed.
#include <tenon/replay/results/median.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

namespace tenon::replay {

namespace {

constexpr int kResamples = 1000;
constexpr std::uint32_t kSeed = 47;

}  // namespace

double median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

Interval bootstrap_median(const std::vector<double>& samples) {
  Interval interval;
  interval.middle = median(samples);
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<std::size_t> pick(0, samples.size() - 1);
  std::vector<double> medians;
  std::vector<double> drawn(samples.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : drawn) value = samples[pick(random)];
    medians.push_back(median(drawn));
  }
  std::ranges::sort(medians);
  interval.low = medians[kResamples / 40];
  interval.high = medians[kResamples - 1 - kResamples / 40];
  return interval;
}

}  // namespace tenon::replay
