// Peaks over a whole run.
#include <tenon/train/peaks.h>

#include <tenon/core/error.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// Calls visit(a, b) for every Stat of both.
template <class Visit>
void for_each_stat(MemoryStats& a, const MemoryStats& b, Visit visit) {
  visit(a.requested_bytes, b.requested_bytes);
  visit(a.allocated_bytes, b.allocated_bytes);
  visit(a.reserved_bytes, b.reserved_bytes);
  visit(a.allocations, b.allocations);
  for (std::size_t purpose = 0; purpose < kPurposeCount; ++purpose) {
    visit(a.requested_by_purpose[purpose], b.requested_by_purpose[purpose]);
    for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
      visit(a.requested_by_element[purpose][kind], b.requested_by_element[purpose][kind]);
  }
  const auto pools = [&](PoolStats& x, const PoolStats& y) {
    for (int i = 0; i < 3; ++i) visit(x[i], y[i]);
  };
  PolicyStats& p = a.policy;
  const PolicyStats& q = b.policy;
  pools(p.allocation, q.allocation);
  pools(p.segment, q.segment);
  pools(p.active, q.active);
  pools(p.inactive_split, q.inactive_split);
  pools(p.allocated_bytes, q.allocated_bytes);
  pools(p.reserved_bytes, q.reserved_bytes);
  pools(p.active_bytes, q.active_bytes);
  pools(p.inactive_split_bytes, q.inactive_split_bytes);
  pools(p.requested_bytes, q.requested_bytes);
  visit(p.oversize_allocations, q.oversize_allocations);
  visit(p.oversize_segments, q.oversize_segments);
}

}  // namespace

MemorySample sample_after(std::int64_t step, const MemoryStats& stats) {
  return {.step = step,
          .requested_bytes = stats.requested_bytes.current,
          .allocated_bytes = stats.allocated_bytes.current,
          .reserved_bytes = stats.reserved_bytes.current,
          .peak_allocated_bytes = stats.allocated_bytes.peak};
}

void merge_peaks(MemoryStats& into, const MemoryStats& from) {
  MemoryStats merged = from;
  for_each_stat(merged, into, [](Stat& now, const Stat& before) { now.peak = std::max(now.peak, before.peak); });
  into = merged;
}

void PhaseWatch::end(RunPhase phase, const MemoryStats& now, PeakPlace& place) {
  // What rose in an earlier phase was noted at its end.
  if (now.allocated_bytes.peak > place.allocated_bytes) {
    place.phase = phase;
    place.allocated_bytes = now.allocated_bytes.peak;
    for (std::size_t i = 0; i < place.requested_by_purpose.size(); ++i) {
      const Stat& was = before_.requested_by_purpose[i];
      const Stat& is = now.requested_by_purpose[i];
      place.requested_by_purpose[i] = is.peak > was.peak ? is.peak : std::max(was.current, is.current);
    }
  }
  before_ = now;
}

std::vector<std::int64_t> peaks_of(const MemoryStats& stats) {
  std::vector<std::int64_t> peaks;
  MemoryStats copy = stats;
  for_each_stat(copy, stats, [&](const Stat& stat, const Stat&) { peaks.push_back(stat.peak); });
  return peaks;
}

void raise_peaks(MemoryStats& stats, const std::vector<std::int64_t>& peaks) {
  const MemoryStats copy = stats;
  if (peaks.size() != peaks_of(stats).size()) throw Error("the peaks of this run were saved by another version");
  std::size_t next = 0;
  for_each_stat(stats, copy, [&](Stat& stat, const Stat&) { stat.peak = std::max(stat.peak, peaks[next++]); });
}

}  // namespace tenon::train
