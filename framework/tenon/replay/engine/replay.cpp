// How the passes of a replay follow each other, and the rows that need none.
#include <tenon/replay/engine/observed_pass.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/engine/timing.h>

namespace tenon::replay {

namespace {

void enter(JobProgress* progress, std::uint32_t phase) {
  if (progress != nullptr) progress->phase.store(phase, std::memory_order_relaxed);
}

}  // namespace

ReplayRow row_for(const Trace& trace, std::optional<std::uint64_t> capacity_bytes) {
  ReplayRow row;
  row.trace = trace.name;
  row.capacity_bytes = capacity_bytes;
  row.events = trace.facts.events;
  row.allocations = trace.facts.allocations;
  row.frees = trace.facts.frees;
  row.streams = trace.stream_count();
  row.peak_requested_bytes = trace.facts.peak_requested_bytes;
  return row;
}

/// Requests that no policy could serve on top of what lives, each left out where it came.
static void count_what_cannot_fit(const Trace& trace, std::uint64_t capacity_bytes, ReplayRow& row) {
  std::vector<std::uint64_t> live(trace.slot_count);
  std::uint64_t sum = 0, event = 0;
  for (const TraceEvent& entry : trace.events) {
    if (entry.kind == EventKind::kAllocate) {
      const bool fits = entry.bytes <= capacity_bytes - sum;
      if (!fits && row.ooms++ == 0) {
        row.first_oom_event = event;
        row.first_oom_bytes = entry.bytes;
      }
      live[entry.slot] = fits ? entry.bytes : 0;
      sum += live[entry.slot];
    } else if (entry.kind == EventKind::kFree) {
      sum -= live[entry.slot];
      live[entry.slot] = 0;
    }
    if (is_counted(entry.kind)) ++event;
  }
}

ReplayRow ideal_row(const Trace& trace, std::optional<std::uint64_t> capacity_bytes) {
  ReplayRow row = row_for(trace, capacity_bytes);
  row.allocator = row.label = kIdealAllocator;
  row.peak_allocated_bytes = row.peak_active_bytes = row.peak_reserved_bytes = row.peak_requested_bytes;
  row.peak_reserved_event = trace.facts.peak_event;
  if (capacity_bytes && row.peak_requested_bytes > *capacity_bytes) count_what_cannot_fit(trace, *capacity_bytes, row);
  return row;
}

/// See Note [Last use] in observed_pass.cpp.
static void check_last_uses(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row,
                            JobProgress* progress) {
  JobOptions quiet = options;
  quiet.keep_curve = quiet.keep_actions = false;
  ReplayRow scratch = row_for(trace, options.capacity_bytes);
  ObservedPass again(trace, policy, quiet, scratch, progress);
  again.tell_last_uses();
  again.run();
  if (scratch.failure.empty()) return;
  row.failure = scratch.failure + " (the last use told at the free)";
  row.failed_event = scratch.failed_event;
}

ReplayRow run_job(const Trace& trace, const StackConfig& policy, const JobOptions& options, JobProgress* progress) {
  ReplayRow row = row_for(trace, options.capacity_bytes);
  row.allocator = policy.policy.name;
  row.options = policy.options.entries(true);
  try {
    if (options.observe) {
      ObservedPass pass(trace, policy, options, row, progress);
      enter(progress, 1);
      pass.run();
      if (row.failure.empty() && options.check_placement && has_last_uses(trace))
        check_last_uses(trace, policy, options, row, progress);
      if (!row.failure.empty()) return row;
      if (options.keep_layout) {
        JobOptions quiet = options;
        quiet.keep_curve = quiet.keep_actions = false;
        ReplayRow scratch = row_for(trace, options.capacity_bytes);
        if (progress != nullptr) progress->is_second_pass.store(true, std::memory_order_relaxed);
        ObservedPass again(trace, policy, quiet, scratch, progress);
        again.run(row.peak_reserved_event);
        row.layout = again.layout();
      }
    }
    enter(progress, 2);
    if (options.timed_passes > 0) time_passes(trace, policy, options, row);
    enter(progress, 3);
    if (options.time_each_call) time_calls(trace, policy, options, row);
    enter(progress, 4);
  } catch (const std::exception& error) {
    row.failure = error.what();
  }
  return row;
}

}  // namespace tenon::replay
