// Peaks over a whole run while the allocator's own peaks are reset for every step.
#pragma once

#include <tenon/memory/stats.h>

namespace tenon::train {

/// Raises every peak in `into` to at least the one in `from`; all other figures become those of `from`.
void merge_peaks(MemoryStats& into, const MemoryStats& from);

}  // namespace tenon::train
