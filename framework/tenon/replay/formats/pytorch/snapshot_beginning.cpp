// Two walks from the last event to the first: one over blocks, one over segments.
#include <tenon/memory/pytorch/sizes.h>
#include <tenon/replay/formats/pytorch/snapshot_beginning.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon::replay {

namespace {

std::uint64_t not_zero(std::uint64_t bytes) { return std::max<std::uint64_t>(bytes, 1); }

// Blocks that the end shows as pending: their last free is not over, whether or not the file records completions.
void find_pending(const SnapshotDevice& device, SnapshotBeginning& beginning) {
  std::unordered_set<std::uint64_t> waiting;
  for (const Segment& segment : device.segments) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kAwaitingStream) waiting.insert(block.address);
    }
  }
  for (std::size_t i = device.events.size(); i-- > 0 && !waiting.empty();) {
    const MemoryEvent& event = device.events[i];
    if (event.action == HistoryAction::kAlloc || event.action == HistoryAction::kFreeCompleted)
      waiting.erase(event.address);
    if (event.action == HistoryAction::kFreeRequested && waiting.erase(event.address) != 0)
      beginning.never_completed.insert(i);
  }
}

void walk_blocks_back(const SnapshotDevice& device, SnapshotBeginning& beginning) {
  std::unordered_map<std::uint64_t, SeedBlock> live;
  for (const Segment& segment : device.segments) {
    for (BlockInfo block : segment.blocks) {
      block.requested_bytes = not_zero(block.requested_bytes);
      live.insert_or_assign(block.address, SeedBlock{block, segment.stream});
    }
  }
  for (std::size_t i = device.events.size(); i-- > 0;) {
    const MemoryEvent& event = device.events[i];
    if (event.action == HistoryAction::kAlloc) live.erase(event.address);
    if (event.action != HistoryAction::kFreeRequested && event.action != HistoryAction::kFreeCompleted) continue;
    // A free's stack says who freed; who allocated is known only from a block that the end still shows.
    const auto after = live.find(event.address);
    SeedBlock seed{{.address = event.address,
                    .bytes = not_zero(event.bytes),
                    .requested_bytes = not_zero(event.bytes),
                    .state = BlockState::kActive,
                    .stack = after == live.end() ? 0 : after->second.block.stack},
                   event.stream};
    if (event.action == HistoryAction::kFreeCompleted && beginning.has_free_requested)
      seed.block.state = BlockState::kAwaitingStream;
    live.insert_or_assign(event.address, seed);
  }
  beginning.blocks.reserve(live.size());
  for (const auto& [address, seed] : live) beginning.blocks.push_back(seed);
  std::ranges::sort(beginning.blocks, {}, [](const SeedBlock& seed) -> std::uint64_t { return seed.block.address; });
}

void walk_segments_back(const SnapshotDevice& device, std::uint64_t unlisted_bytes, SnapshotBeginning& beginning) {
  std::map<std::uint64_t, SegmentInfo> ordinary;
  std::uint64_t reserved = unlisted_bytes;
  for (const Segment& segment : device.segments) {
    reserved += segment.bytes;
    if (!segment.is_expandable) ordinary[segment.address] = segment;
  }
  beginning.reserved_at_end_bytes = beginning.peak_reserved_bytes = reserved;
  for (std::size_t i = device.events.size(); i-- > 0;) {
    const MemoryEvent& event = device.events[i];
    if (event.action == HistoryAction::kOom) {
      const std::uint64_t capacity = reserved + std::min(event.address, kMaxDeviceBytes);
      beginning.capacity_bytes = std::max(beginning.capacity_bytes, capacity);
    } else if (takes_memory(event.action)) {
      if (event.action == HistoryAction::kSegmentAlloc) ordinary.erase(event.address);
      reserved -= std::min(reserved, event.bytes);
    } else if (gives_memory(event.action)) {
      if (event.action == HistoryAction::kSegmentFree) {
        ordinary[event.address] = {.address = event.address,
                                   .bytes = event.bytes,
                                   .stream = event.stream,
                                   .is_large = event.bytes > pytorch::kSmallSegmentBytes};
      }
      reserved += event.bytes;
    }
    beginning.peak_reserved_bytes = std::max(beginning.peak_reserved_bytes, reserved);
  }
  beginning.reserved_bytes = reserved;
  for (const auto& [address, segment] : ordinary) beginning.segments.push_back(segment);
}

}  // namespace

SnapshotBeginning beginning_of(const SnapshotDevice& device, std::uint64_t unlisted_bytes) {
  SnapshotBeginning beginning;
  for (const MemoryEvent& event : device.events) {
    beginning.has_free_requested |= event.action == HistoryAction::kFreeRequested;
    beginning.has_free_completed |= event.action == HistoryAction::kFreeCompleted;
  }
  find_pending(device, beginning);
  walk_blocks_back(device, beginning);
  walk_segments_back(device, unlisted_bytes, beginning);
  return beginning;
}

}  // namespace tenon::replay
