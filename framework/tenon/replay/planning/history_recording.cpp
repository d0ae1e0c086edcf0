// Events become requests with lives.
#include <tenon/memory/allocator.h>
#include <tenon/replay/planning/history_recording.h>

#include <algorithm>
#include <limits>

namespace tenon::replay {

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
      request.alignment = kDefaultAlignment;
      if (recording.size() <= trace.columns.purposes.size())
        request.purpose = trace.columns.purposes[recording.size() - 1];
    } else if ((event.kind == EventKind::kFree && !event.deferred) || event.kind == EventKind::kFreeCompleted) {
      recording[request_of_slot[event.slot]].until = recording.size();
    }
  }
  for (packing::RecordedRequest& request : recording)
    if (request.until == 0) request.until = recording.size();
  return recording;
}

}  // namespace tenon::replay
