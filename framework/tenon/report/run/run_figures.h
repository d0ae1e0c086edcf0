// Figures of a run that result.json and the comparison both state.
#pragma once

#include <tenon/memory/history/growth.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/train/experiment_result.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// Equal for runs whose losses are equal to the last bit; empty where none of them is a number.
std::string losses_hash(const std::vector<double>& losses);

/// Peaks by purpose, and by what their bytes are made of, {"activation": {"bfloat16": 4096}}: those that are not 0,
/// each at a moment of its own.
using ElementPeaks = std::map<std::string, std::map<std::string, std::int64_t>>;
inline ElementPeaks element_peaks(const MemoryStats& stats) {
  ElementPeaks peaks;
  for (std::size_t purpose = 0; purpose < kPurposeCount; ++purpose) {
    for (std::size_t kind = 0; kind < kElementKindCount; ++kind) {
      if (const std::int64_t peak = stats.requested_by_element[purpose][kind].peak; peak > 0)
        peaks[std::string(name_of(static_cast<Purpose>(purpose)))]
             [std::string(name_of(static_cast<ElementKind>(kind)))] = peak;
    }
  }
  return peaks;
}

/// The nearest value at that rank; `values` are not empty.
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

/// The number of the request that failed, the last of the history that was kept.
inline std::uint64_t failed_event(const replay::FitReport& report) {
  const std::uint64_t events = report.lost_events + report.events;
  return events == 0 ? 0 : events - 1;
}

/// The most that was allocated within a training step; empty where no step ended.
inline std::optional<std::int64_t> peak_in_steps(const ExperimentResult& result) {
  std::optional<std::int64_t> peak;
  for (const MemorySample& sample : result.timeline) peak = std::max(peak.value_or(0), sample.peak_allocated_bytes);
  return peak;
}

/// Bytes by which more lives, as requested, at the ends of steps; empty where that does not grow. Warm-up is left out.
inline std::optional<double> growth_of_steps(const ExperimentResult& result) {
  if (result.losses.empty()) return std::nullopt;  // served requests: their caches grow with them
  std::vector<std::uint64_t> live;
  constexpr std::size_t kWarmup = 2;
  for (std::size_t i = kWarmup; i < result.timeline.size(); ++i)
    live.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(0, result.timeline[i].requested_bytes)));
  return growth_per_step(live);
}

/// The rank that took most from its device.
inline std::size_t worst_rank(const std::vector<RankMemory>& ranks) {
  const auto worst = std::max_element(ranks.begin(), ranks.end(), [](const RankMemory& a, const RankMemory& b) {
    return a.peak_reserved_bytes < b.peak_reserved_bytes;
  });
  return static_cast<std::size_t>(worst - ranks.begin());
}

/// After the warm-up; empty when the run did not get so far.
inline std::optional<double> device_calls_per_step(const ExperimentResult& result) {
  const std::int64_t counted = result.steps - result.warmup_steps;
  if (counted <= 0) return std::nullopt;
  return static_cast<double>(result.device_calls_after_warmup) / static_cast<double>(counted);
}

}  // namespace tenon
