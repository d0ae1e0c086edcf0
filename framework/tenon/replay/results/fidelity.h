// Fidelity: how far a replay can be trusted for one file. The trace is replayed under the settings that it was recorded
// with, from the segments that were there when the recording began, and the device calls are held against the recorded
// ones.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::replay {

struct Fidelity {
  bool is_known = false;  ///< the file says what the recorded allocator did
  std::string why_unknown;
  std::string settings;                       ///< that were replayed: "" is PyTorch's default
  bool is_stated = true;                      ///< the settings are the file's or the user's, not a guess
  std::uint64_t recorded_reserved_bytes = 0;  ///< at the end
  std::uint64_t replayed_reserved_bytes = 0;
  std::uint64_t recorded_peak_bytes = 0;
  std::uint64_t replayed_peak_bytes = 0;
  std::uint64_t recorded_actions = 0;  ///< segment_alloc, segment_free, segment_map, segment_unmap in the history
  std::uint64_t replayed_actions = 0;
  std::uint64_t matching_actions = 0;  ///< equal in kind, size and event, from the first on
  std::uint64_t common_actions = 0;    ///< equal in kind, size and event, wherever they stand
  /// Of the replayed device, where the recording shows that memory was short: its peak.
  std::optional<std::uint64_t> capacity_bytes;
  bool is_exact = false;         ///< every action the same, and the end too
  bool ties_by_address = false;  ///< of equal blocks the lowest was taken, as in PyTorch before May 2026

  /// |replayed / recorded - 1| of the peak.
  double peak_error() const;
  /// Next to none of the recorded device calls come again, wherever they stand: the replay is about something else.
  TENON_API bool reproduces_nothing() const;
  /// One sentence for people.
  TENON_API std::string sentence() const;
};

/// Replays in this process. `policy` is the recorded settings as Tenon runs them.
TENON_API Fidelity measure_fidelity(const Trace& trace, const StackConfig& policy, const std::string& settings);

}  // namespace tenon::replay
