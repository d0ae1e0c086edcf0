// From an allocator's walk to a snapshot.
#include <tenon/device/snapshot.h>
#include <tenon/memory/frame_table.h>
#include <tenon/memory/history/history.h>

#include <algorithm>
#include <utility>

namespace tenon {

MemorySnapshot take_snapshot(Device device, const AllocatorStack& allocator, const History* history) {
  MemorySnapshot snapshot;
  snapshot.device = device;
  snapshot.allocator = allocator.config().policy.name;
  snapshot.options = allocator.config().options.entries(false);
  snapshot.segments = mapped_segments_of(allocator);
  if (history == nullptr || !history->recording()) return snapshot;
  // Before the events: what others record meanwhile is not lost.
  const std::uint64_t recorded = history->recorded();
  snapshot.events = history->events();
  snapshot.events_lost = recorded - std::min<std::uint64_t>(recorded, snapshot.events.size());
  StackId last = 0;
  for (const HistoryEvent& event : snapshot.events) last = std::max(last, event.stack);
  for (Segment& segment : snapshot.segments) {
    for (BlockInfo& block : segment.blocks) {
      if (block.is_in_use()) block.stack = history->live_stack(block.address);
      last = std::max(last, block.stack);
    }
  }
  FrameTable frames(snapshot.stacks);
  for (StackId stack = 1; stack <= last; ++stack) {
    std::vector<std::uint32_t> numbers;
    for (StackFrame& frame : history->frames(stack)) numbers.push_back(frames.number_of(std::move(frame)));
    snapshot.stacks.stacks.push_back(std::move(numbers));
  }
  return snapshot;
}

}  // namespace tenon
