// What the forms of allocations and frees alone write of a history.
#pragma once

#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <string>

namespace tenon::replay {

/// Calls `write(entry, event, has_failed)` for each allocation and free, with the number of its event. A request that
/// ran out of memory comes with `has_failed`, and without the free that stands behind it. Tells how far the writing of
/// `path` is.
template <class Write>
void for_each_plain_event(const Trace& trace, const std::string& path, const Write& write) {
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  std::uint64_t free_of_failure = kNoEvent;
  WorkMeter meter("writing " + path, trace.events.size());
  for (const TraceEvent& entry : trace.events) {
    meter.step();
    const bool has_failed = is_counted(entry.kind) && trace.failure_at(event, next_failure) != nullptr;
    if (has_failed) free_of_failure = event + 1;
    const bool is_its_free = entry.kind == EventKind::kFree && event == free_of_failure;
    if ((entry.kind == EventKind::kAllocate || entry.kind == EventKind::kFree) && !is_its_free)
      write(entry, event, has_failed);
    if (is_counted(entry.kind)) ++event;
  }
}

}  // namespace tenon::replay
