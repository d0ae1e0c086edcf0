// Peaks over a whole run while the allocator's own peaks are reset for every step.
#pragma once

#include <tenon/memory/stats.h>

#include <cstdint>
#include <vector>

namespace tenon::train {

/// Raises every peak in `into` to at least the one in `from`; all other figures become those of `from`.
void merge_peaks(MemoryStats& into, const MemoryStats& from);

/// Every peak, in an order that is always the same, and the way back: each becomes at least what it was.
std::vector<std::int64_t> peaks_of(const MemoryStats& stats);
/// Throws Error for another number of peaks.
void raise_peaks(MemoryStats& stats, const std::vector<std::int64_t>& peaks);

}  // namespace tenon::train
