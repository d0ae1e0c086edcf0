// Would it have fitted? A history that ran out of memory is replayed under other allocators and settings on a device of
// the same size. The settings that failed are replayed as well: only where they fail again do the others prove
// anything.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

inline constexpr double kNearPeak = 0.01;  ///< peaks this close count as equal in advice

struct FitCandidate {
  std::string label;  ///< as a user sets it: a SPEC, or a conf string of PyTorch
  StackConfig policy;
  bool is_planned = false;  ///< it serves from a plan of the history that it is tried on (own_allocators.h)
};

struct FitAttempt {
  std::string label;
  StackConfig policy;
  bool is_planned = false;
  std::uint64_t ooms = 0;
  std::optional<std::uint64_t> first_oom_event;
  std::uint64_t peak_reserved_bytes = 0;  ///< as far as it came
  std::uint64_t device_calls = 0;
  bool is_slow = false;  ///< goes to the device for every few requests
  std::string failure;   ///< the replay itself went wrong: it is disqualified
  std::optional<std::uint64_t> failed_event;
  bool fits() const { return ooms == 0 && failure.empty(); }
  /// "'faulty' is disqualified: overlaps … at event 10"; empty when it is not.
  TENON_API std::string complaint() const;
};

struct FitReport {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t peak_requested_bytes = 0;
  std::uint64_t lost_events = 0;   ///< before the trace began
  FitAttempt current;              ///< what was in use
  std::vector<FitAttempt> others;  ///< those that fit first, slow ones after the others, then the lowest peak
  std::vector<FitAttempt> own;     ///< Tenon's, where the others are PyTorch's settings; in the same order

  /// One sentence for people: which would have fitted; that none would, with the figures; or why nothing can be said.
  TENON_API std::string sentence() const;
  /// Whether the failure came again under what was in use.
  bool is_reproduced() const { return current.failure.empty() && current.ooms != 0; }
  /// The one to recommend: fits, and what was in use does not. Null when there is none.
  TENON_API const FitAttempt* best() const;
  /// What fits with the lowest peak, of what was in use and the others; null where nothing does.
  TENON_API const FitAttempt* least() const;
};

struct FitOptions {
  unsigned jobs = 0;                   ///< replays at a time; 0: as many as there are cores
  std::function<bool()> is_stopping;   ///< asked now and then; candidates whose replay has not ended then are left out
  std::vector<FitCandidate> own = {};  ///< Tenon's own, which are told apart from the candidates
};

/// Replays everything in child processes; a capacity of 0 is unlimited. Candidates that equal `current` in policy and
/// options are left out.
TENON_API FitReport what_would_fit(const Trace& trace, const FitCandidate& current,
                                   const std::vector<FitCandidate>& candidates, std::uint64_t capacity_bytes,
                                   const FitOptions& options = {});

/// Every allocator that is loaded, and settings of the caching one on top of what `current` sets.
TENON_API std::vector<FitCandidate> other_allocators(const StackConfig& current, std::uint64_t max_request_bytes);

/// PyTorch's settings on top of the string that was set. Ones that are on already are left out.
TENON_API std::vector<FitCandidate> other_pytorch_settings(const std::string& conf, std::uint64_t max_request_bytes);

/// What the device had to give when the recording ran out of memory, where the file says so: the largest.
TENON_API std::optional<std::uint64_t> capacity_at_failure(const Trace& trace);

}  // namespace tenon::replay
