// From an allocator's walk to a snapshot.
#include <tenon/device/snapshot.h>

#include <algorithm>

namespace tenon {

namespace {

class Collect final : public SegmentVisitor {
 public:
  explicit Collect(const History* history) : history_(history) {}

  void segment(const SegmentInfo& info) override {
    close();
    info_ = info;
  }

  void block(const BlockInfo& info) override {
    if (info.state == BlockState::kUnmapped) return close();  // a hole: what follows is a range of its own
    if (!open_) {
      segments_.push_back({.address = number(info.address),
                           .stream = info_.stream,
                           .is_large = info_.is_large,
                           .is_expandable = info_.is_expandable,
                           .pool = info_.pool});
      open_ = true;
    }
    SnapshotSegment& segment = segments_.back();
    const bool allocated = info.state == BlockState::kActive;
    const bool active = allocated || info.state == BlockState::kAwaitingStream;
    segment.total_bytes += info.bytes;
    if (allocated) segment.allocated_bytes += info.bytes;
    if (active) segment.active_bytes += info.bytes;
    if (active) segment.requested_bytes += info.requested_bytes;
    segment.blocks.push_back({.address = number(info.address),
                              .bytes = info.bytes,
                              .requested_bytes = info.requested_bytes,
                              .state = info.state,
                              .stack = history_ != nullptr && active ? history_->live_stack(number(info.address)) : 0});
  }

  std::vector<SnapshotSegment> take() {
    std::sort(segments_.begin(), segments_.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
    return std::move(segments_);
  }

 private:
  static std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }
  void close() { open_ = false; }

  const History* history_;
  SegmentInfo info_;
  bool open_ = false;
  std::vector<SnapshotSegment> segments_;
};

}  // namespace

std::size_t MemorySnapshot::reserved_bytes() const {
  std::size_t sum = 0;
  for (const SnapshotSegment& segment : segments) sum += segment.total_bytes;
  return sum;
}

std::size_t MemorySnapshot::active_bytes() const {
  std::size_t sum = 0;
  for (const SnapshotSegment& segment : segments) sum += segment.active_bytes;
  return sum;
}

MemorySnapshot take_snapshot(Device device, const AllocatorStack& allocator, const History* history) {
  const bool recorded = history != nullptr && history->recording();
  Collect collect(recorded ? history : nullptr);
  allocator.walk(collect);
  MemorySnapshot snapshot{.device = device,
                          .allocator = allocator.config().policy.name,
                          .options = allocator.config().options.entries(false),
                          .segments = collect.take()};
  snapshot.stacks.emplace_back();
  if (!recorded) return snapshot;
  snapshot.events = history->events();
  snapshot.events_lost = history->recorded() - std::min<std::uint64_t>(history->recorded(), snapshot.events.size());
  StackId last = 0;
  for (const HistoryEvent& event : snapshot.events) last = std::max(last, event.stack);
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) last = std::max(last, block.stack);
  }
  for (StackId stack = 1; stack <= last; ++stack) snapshot.stacks.push_back(history->frames(stack));
  return snapshot;
}

}  // namespace tenon
