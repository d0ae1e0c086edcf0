// Names of actions, sums over blocks, and a walk cut where no memory is mapped.
#include <tenon/memory/snapshot.h>

#include <algorithm>
#include <array>

namespace tenon {

namespace {

constexpr std::array<std::string_view, kHistoryActions> kNames = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom",   "snapshot",       "other"};

}  // namespace

SegmentVisitor::~SegmentVisitor() = default;

std::string_view name_of(HistoryAction action) { return kNames[static_cast<std::size_t>(action)]; }

HistoryAction action_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end() - 1, name);
  return static_cast<HistoryAction>(found - kNames.begin());
}

std::size_t Segment::allocated_bytes() const {
  std::size_t sum = 0;
  for (const BlockInfo& block : blocks) sum += block.state == BlockState::kActive ? block.bytes : 0;
  return sum;
}

std::size_t Segment::active_bytes() const {
  std::size_t sum = 0;
  for (const BlockInfo& block : blocks) sum += block.is_in_use() ? block.bytes : 0;
  return sum;
}

std::size_t Segment::requested_bytes() const {
  std::size_t sum = 0;
  for (const BlockInfo& block : blocks) sum += block.is_in_use() ? block.requested_bytes : 0;
  return sum;
}

SegmentCollector::SegmentCollector() = default;
SegmentCollector::~SegmentCollector() = default;

void SegmentCollector::segment(const SegmentInfo& info) { segments_.push_back({info, {}}); }

void SegmentCollector::block(const BlockInfo& info) {
  if (!segments_.empty()) segments_.back().blocks.push_back(info);
}

std::vector<Segment> mapped_segments(const std::vector<Segment>& shown) {
  std::vector<Segment> mapped;
  for (const Segment& segment : shown) {
    bool is_open = false;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kUnmapped) {
        is_open = false;  // what follows is a range of its own
        continue;
      }
      if (!is_open) {
        mapped.push_back({segment, {}});
        mapped.back().address = block.address;
        mapped.back().bytes = 0;
        is_open = true;
      }
      mapped.back().bytes += block.bytes;
      mapped.back().blocks.push_back(block);
    }
  }
  std::ranges::sort(mapped, {}, [](const Segment& segment) -> std::uint64_t { return segment.address; });
  return mapped;
}

std::size_t Snapshot::reserved_bytes() const {
  std::size_t sum = 0;
  for (const Segment& segment : segments) sum += segment.bytes;
  return sum;
}

std::size_t Snapshot::active_bytes() const {
  std::size_t sum = 0;
  for (const Segment& segment : segments) sum += segment.active_bytes();
  return sum;
}

}  // namespace tenon
