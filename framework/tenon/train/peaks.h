// Peaks over a whole run while the allocator's own peaks are reset for every step.
#pragma once

#include <tenon/memory/stats.h>
#include <tenon/train/experiment_result.h>

#include <cstdint>
#include <vector>

namespace tenon::train {

/// The point of the timeline behind a step, whose peaks were reset before it.
MemorySample sample_after(std::int64_t step, const MemoryStats& stats);

/// Raises every peak in `into` to at least the one in `from`; all other figures become those of `from`.
void merge_peaks(MemoryStats& into, const MemoryStats& from);

/// Follows the phases of a run, for the place of its peak.
class PhaseWatch {
 public:
  /// A phase begins at these figures; their peaks are of what the phase follows without a reset.
  void begin(const MemoryStats& now) { before_ = now; }
  /// The phase ends, and the next one begins. `place` becomes this phase where nothing before had allocated as much.
  void end(RunPhase phase, const MemoryStats& now, PeakPlace& place);

 private:
  MemoryStats before_;
};

/// Every peak, in an order that is always the same, and the way back: each becomes at least what it was.
std::vector<std::int64_t> peaks_of(const MemoryStats& stats);
/// Throws Error for another number of peaks.
void raise_peaks(MemoryStats& stats, const std::vector<std::int64_t>& peaks);

}  // namespace tenon::train
