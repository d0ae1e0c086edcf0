// Sums over the events of an image.
#include <tenon/replay/formats/image/image_memory.h>

#include <algorithm>

namespace tenon::replay {

ImageMemory memory_before_history(const SnapshotImage& image) {
  ImageMemory before;
  for (const Segment& segment : image.segments) {
    before.reserved += segment.bytes;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kActive) before.live += block.requested_bytes;
    }
  }
  for (std::size_t i = image.events.size(); i-- > 0;) {
    const HistoryEvent& event = image.events[i];
    switch (event.action) {
      case HistoryAction::kAlloc:
        before.live -= std::min(before.live, event.bytes);
        break;
      case HistoryAction::kFreeRequested:
        before.live += event.bytes;
        break;
      case HistoryAction::kSegmentAlloc:
      case HistoryAction::kSegmentMap:
        before.reserved -= std::min(before.reserved, event.bytes);
        break;
      case HistoryAction::kSegmentFree:
      case HistoryAction::kSegmentUnmap:
        before.reserved += event.bytes;
        break;
      default:
        break;
    }
  }
  return before;
}

bool apply(const HistoryEvent& event, ImageMemory& now) {
  switch (event.action) {
    case HistoryAction::kAlloc:
      now.live += event.bytes;
      return true;
    case HistoryAction::kFreeRequested:
      now.live -= std::min(now.live, event.bytes);
      return true;
    case HistoryAction::kSegmentAlloc:
    case HistoryAction::kSegmentMap:
      now.reserved += event.bytes;
      return true;
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap:
      now.reserved -= std::min(now.reserved, event.bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace tenon::replay
