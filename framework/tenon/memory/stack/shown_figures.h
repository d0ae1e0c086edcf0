// Figures that several documents show, as excess. Each is made and named here alone: runs, replays, comparisons agree.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

/// Calls to the source: of a replay's row, or of a part of a run. MemoryStats has the same fields.
template <class Count>
struct DeviceCounts {
  Count device_allocations = 0;  ///< successful acquire/create calls
  Count device_frees = 0;        ///< release/destroy calls
  Count device_maps = 0;
  Count device_unmaps = 0;
  Count device_synchronizations = 0;  ///< waits for all streams
  Count device_waits = 0;             ///< waits for one ticket

  /// Those that took or gave memory.
  Count device_calls() const { return device_allocations + device_frees + device_maps + device_unmaps; }
};

/// Visits (key, field of each) under the keys that every document has for them.
template <class Visit, class... Counts>
void for_each_device_count(Visit&& visit, Counts&... counts) {
  visit("device_allocations", counts.device_allocations...);
  visit("device_frees", counts.device_frees...);
  visit("device_maps", counts.device_maps...);
  visit("device_unmaps", counts.device_unmaps...);
  visit("device_synchronizations", counts.device_synchronizations...);
  visit("device_waits", counts.device_waits...);
}

/// Peak reserved over peak requested, minus 1; empty where nothing was requested.
inline std::optional<double> excess_of(double peak_reserved_bytes, double peak_requested_bytes) {
  if (!(peak_requested_bytes > 0)) return std::nullopt;
  return peak_reserved_bytes / peak_requested_bytes - 1;
}

}  // namespace tenon
