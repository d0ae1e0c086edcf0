// Replay: a trace run under an allocator on a device that has addresses only.
//
// Three passes, each over a fresh allocator: the observed one (every figure that is not a time, and the overlap check),
// the timed one (the policy alone in a tight loop), and the one that times each call.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/replay/trace/trace.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

struct Latency {
  double p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, max = 0, mean = 0;
};

/// One point of the curves in a report: after this event.
struct CurvePoint {
  std::uint64_t event = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

/// What one job (trace x allocator x capacity) gave. Names and units are those of the JSON rows.
struct ReplayRow : DeviceCounts<std::uint64_t> {
  std::string trace;
  std::string allocator;
  std::vector<std::pair<std::string, std::string>> options;  ///< those that differ from their defaults
  std::string label;                                         ///< as typed: "caching:max_split_size=128MiB"
  /// What was typed, or the allocator's name where nothing was.
  const std::string& spec() const { return label.empty() ? allocator : label; }
  std::optional<std::uint64_t> capacity_bytes;

  std::uint64_t events = 0, allocations = 0, frees = 0, streams = 0;
  std::uint64_t peak_requested_bytes = 0;
  std::uint64_t peak_allocated_bytes = 0, peak_active_bytes = 0, peak_reserved_bytes = 0;
  std::uint64_t peak_reserved_event = 0;
  double excess = 0, internal_fragmentation = 0, external_fragmentation = 0;
  std::uint64_t retries = 0, ooms = 0;
  std::optional<std::uint64_t> first_oom_event;
  std::uint64_t first_oom_bytes = 0;
  std::uint64_t reserved_changes = 0;
  std::uint64_t reserved_series_fnv1a64 = 0;
  std::uint64_t placement_hash = 0;
  std::uint64_t end_reserved_bytes = 0;
  std::uint64_t same_from_bytes = 0;  ///< from here up to the row's capacity all goes the same: ReplaySource

  std::vector<double> pass_seconds;  ///< every timed pass
  double seconds = 0;                ///< the best of them
  double events_per_second = 0;
  double harness_seconds = 0;  ///< the same loop over an allocator that does nothing, best pass
  Latency allocate_ns, free_ns;
  double clock_ns = 0;  ///< what reading the clock adds to each latency

  std::string failure;  ///< empty, or why this row is void: overlap, crash
  std::optional<std::uint64_t> failed_event;
  std::vector<std::string> crash_stack;  ///< of a policy that crashed or hung: its functions, innermost first

  std::vector<CurvePoint> curve;    ///< when asked for
  std::vector<Segment> layout;      ///< segments at the peak as the allocator shows them, when asked for
  std::vector<DeviceCall> actions;  ///< device calls in order, when asked for
};

struct JobOptions {
  std::optional<std::uint64_t> capacity_bytes;
  bool observe = true;
  int timed_passes = 3;  ///< 0: none
  double timed_budget_seconds = 0.5;
  bool time_each_call = true;
  bool keep_curve = false;
  bool keep_layout = false;
  bool keep_actions = false;
  bool check_placement = true;     ///< the overlap check and placement_hash; off in searches
  bool stop_at_first_oom = false;  ///< in searches
};

/// Where a job stands; in shared memory when it runs in a child.
struct JobProgress {
  std::atomic<std::uint64_t> event{0};
  std::atomic<std::uint32_t> phase{0};      ///< 0 setting up, 1 observed, 2 timed, 3 latencies, 4 done, 5 torn down
  std::atomic<bool> is_second_pass{false};  ///< observed again, for the layout at the peak
};

inline constexpr std::uint32_t kTearDownPhase = 5;

/// Runs one job in this process. Never throws for what the allocator does wrong: the row's failure says it.
TENON_API ReplayRow run_job(const Trace& trace, const StackConfig& policy, const JobOptions& options,
                            JobProgress* progress = nullptr);

/// Whether it is the row below, and of no allocator.
inline bool is_ideal(const ReplayRow& row) { return row.allocator == kIdealAllocator; }

/// The row of the allocator that wastes nothing: it fails what would bring the live bytes above the capacity.
TENON_API ReplayRow ideal_row(const Trace& trace, std::optional<std::uint64_t> capacity_bytes);

/// A row filled with what the trace alone tells.
ReplayRow row_for(const Trace& trace, std::optional<std::uint64_t> capacity_bytes);

}  // namespace tenon::replay
