// Events become requests with lives.
#include <tenon/replay/planning/history_recording.h>

#include <tenon/kernel/kernel.h>
#include <tenon/memory/allocator.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace tenon::replay {

namespace {

/// Recordings do not have it: a place that suits this one suits the run that is recorded.
std::size_t alignment_of(std::optional<Purpose> purpose) {
  return purpose == Purpose::kWorkspace ? kScratchAlignment : kDefaultAlignment;
}

}  // namespace

std::vector<packing::RecordedRequest> recording_of(const Trace& trace) {
  constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();
  std::vector<packing::RecordedRequest> recording;
  recording.reserve(trace.facts.allocations);
  std::vector<std::uint32_t> number_of_stream(trace.streams.size(), kUnknown);
  std::uint32_t streams = 0;
  std::vector<std::size_t> request_of_slot(trace.slot_count);
  for (const TraceEvent& event : trace.events) {
    if (event.kind == EventKind::kAllocate) {
      std::uint32_t& stream = number_of_stream[event.stream];
      if (stream == kUnknown) stream = streams++;
      request_of_slot[event.slot] = recording.size();
      packing::RecordedRequest& request = recording.emplace_back();
      request.bytes = event.bytes;
      request.stream = stream;
      if (recording.size() <= trace.columns.purposes.size())
        request.purpose = trace.columns.purposes[recording.size() - 1];
      request.alignment = alignment_of(request.purpose);
    } else if ((event.kind == EventKind::kFree && !event.deferred) || event.kind == EventKind::kFreeCompleted) {
      recording[request_of_slot[event.slot]].until = recording.size();
    }
  }
  for (packing::RecordedRequest& request : recording)
    if (request.until == 0) request.until = recording.size();
  return recording;
}

}  // namespace tenon::replay
