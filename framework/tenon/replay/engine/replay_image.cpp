// The image of a replay: every event goes to the policy, and what it does with them is listed as PyTorch would.
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/formats/pytorch/snapshot_image.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tenon::replay {

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Device calls of a replay as trace entries.
class ImageListener final : public SourceListener {
 public:
  explicit ImageListener(std::vector<ImageEntry>& entries) : entries_(entries) {}
  std::int64_t time = 0;
  std::uint64_t stream = 0;
  bool is_on = true;  ///< off when the policy is taken down
  void acquired(std::uint64_t address, std::uint64_t bytes) override {
    add(HistoryAction::kSegmentAlloc, address, bytes);
  }
  void released(std::uint64_t address, std::uint64_t bytes) override {
    add(HistoryAction::kSegmentFree, address, bytes);
  }
  void address_reserved(std::uint64_t, std::uint64_t) override {}
  void address_unreserved(std::uint64_t, std::uint64_t) override {}
  void created(std::uint64_t, std::uint64_t) override {}
  void destroyed(std::uint64_t, std::uint64_t) override {}
  void mapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t, std::uint64_t) override {
    merge(HistoryAction::kSegmentMap, address, bytes);
  }
  void unmapped(std::uint64_t address, std::uint64_t bytes) override {
    merge(HistoryAction::kSegmentUnmap, address, bytes);
  }
  void synchronized() override {
    if (is_on && when_synchronized) when_synchronized();
  }
  std::function<void()> when_synchronized;

 private:
  void add(HistoryAction action, std::uint64_t address, std::uint64_t bytes) {
    if (is_on) entries_.push_back({action, address, bytes, stream, time, 0});
  }
  // Pages are mapped one by one, PyTorch lists the range.
  void merge(HistoryAction action, std::uint64_t address, std::uint64_t bytes) {
    if (!is_on) return;
    if (!entries_.empty() && entries_.back().action == action && entries_.back().time_us == time &&
        entries_.back().address + entries_.back().bytes == address) {
      entries_.back().bytes += bytes;
    } else {
      add(action, address, bytes);
    }
  }
  std::vector<ImageEntry>& entries_;
};

/// What the file is to say of the recording behind the replay.
void describe_recording(const Trace& trace, Failures failures, SnapshotImage& image) {
  image.is_replay = true;
  image.recording = recorded_lines(trace);
  const bool has_allocator = trace.header.contains("allocator");
  for (const char* key : {"allocator", "allocator_options"}) {
    if (const auto found = trace.header.find(key); found != trace.header.end()) image.recording.push_back(*found);
  }
  // Of a history that does not say what it ran under, a replay that somebody asked for does.
  if (failures == Failures::kKept || trace.recorded || has_allocator) return;
  if (image.allocator == "caching" || image.allocator == "expandable") {
    image.recording.push_back(settings_line(image.pytorch_conf));
  } else {
    image.recording.emplace_back("allocator", image.allocator);
    image.recording.emplace_back("allocator_options", image.allocator_options);
  }
}

/// Frees of blocks that another stream used: they complete when the allocator looks, which is at its next allocation.
class WaitingFrees {
 public:
  explicit WaitingFrees(SnapshotImage& image) : image_(image) {}
  void add(const ImageEntry& request) {
    entries_.push_back(request);
    entries_.back().action = HistoryAction::kFreeCompleted;
  }
  void complete(std::int64_t time) {
    for (ImageEntry& entry : entries_) {
      entry.time_us = time;
      image_.entries.push_back(entry);
    }
    entries_.clear();
  }
  /// At the end those remain that the allocator shows as waiting.
  void complete_all_but_pending(std::int64_t time) {
    std::unordered_set<std::uint64_t> pending;
    for (const ImageSegment& segment : image_.segments) {
      for (const ImageBlock& block : segment.blocks) {
        if (block.state != BlockState::kActive && block.state != BlockState::kFree) pending.insert(block.address);
      }
    }
    std::erase_if(entries_, [&](const ImageEntry& entry) { return pending.contains(entry.address); });
    complete(time);
  }

 private:
  SnapshotImage& image_;
  std::vector<ImageEntry> entries_;
};

class ReplayImage {
 public:
  ReplayImage(const Trace& trace, const StackConfig& policy, std::uint64_t capacity_bytes, Failures failures)
      : trace_(trace),
        failures_(failures),
        source_(capacity_bytes, &listener_),
        allocator_(policy.policy.create({.source = source_, .options = policy.options})),
        slots_(std::max<std::uint32_t>(1, trace.slot_count)) {
    describe_settings(policy, image_);
    describe_recording(trace, failures, image_);
    image_.empty_caches.emplace();
    listener_.when_synchronized = [this] { complete_what_waits(); };
    for (std::size_t i = 1; i < trace.stacks.stacks.size(); ++i) {  // 0 is empty
      image_.stacks.emplace_back();
      for (const std::uint32_t frame : trace.stacks.stacks[i])
        image_.stacks.back().push_back(trace.stacks.frames[frame]);
    }
  }

  SnapshotImage take() {
    std::size_t next_failure = 0;
    for (const TraceEvent& event : trace_.events) {
      const RecordedOom* failure = nullptr;
      if (is_counted(event.kind)) {
        failure = trace_.failure_at(static_cast<std::uint64_t>(listener_.time), next_failure);
        ++listener_.time;  // one microsecond is one event
      }
      replay(event, failure);
    }
    ImageVisitor visitor(image_.segments);
    allocator_->walk(visitor);
    waiting_.complete_all_but_pending(listener_.time);
    name_stacks_of_blocks();
    std::ranges::sort(image_.segments, {}, &ImageSegment::address);
    listener_.is_on = false;
    return std::move(image_);
  }

 private:
  struct Slot {
    Block block;
    std::uint32_t stack = 0;
    bool is_used_elsewhere = false;
  };

  void replay(const TraceEvent& event, const RecordedOom* failure) {
    Slot& slot = slots_[event.slot];
    switch (event.kind) {
      case EventKind::kAllocate:
        return allocate(slot, event, failure);
      case EventKind::kFree:
        return free(slot, event);
      case EventKind::kUse:
        if (slot.block.data != nullptr && trace_.streams[event.stream] != slot.block.request.stream.id) {
          allocator_->record_use(slot.block, {trace_.streams[event.stream]});
          slot.is_used_elsewhere = true;
        }
        return;
      case EventKind::kEmptyCache:
        waiting_.complete(listener_.time);
        image_.empty_caches->push_back(image_.entries.size());
        allocator_->trim(0);
        return;
      case EventKind::kFreeCompleted:
        if (slot.block.data != nullptr) {
          image_.entries.push_back(of_block(HistoryAction::kFreeCompleted, slot, slot.block.request.bytes));
        }
        source_.complete(event.slot);
        slot.block = {};
        deferred_.erase(event.slot);
        return;
      case EventKind::kMark:
        return mark(trace_.marks[event.bytes]);
    }
  }

  void allocate(Slot& slot, const TraceEvent& event, const RecordedOom* failure) {
    const std::uint64_t stream = trace_.streams[event.stream];
    listener_.stream = stream;
    waiting_.complete(listener_.time);
    const bool is_seed = allocations_ < trace_.facts.seeded_blocks;
    const auto& stacks = trace_.stacks.of_allocation;
    slot = {.stack = allocations_ < stacks.size() ? stacks[allocations_] : 0};
    ++allocations_;
    ImageEntry entry{HistoryAction::kOom, 0, event.bytes, stream, listener_.time, slot.stack};
    if (failure != nullptr && failures_ == Failures::kKept) {
      // Beside what this policy has reserved, so that the device is as large as it was.
      const std::uint64_t capacity = failure->capacity_bytes();
      entry.address = capacity - std::min(capacity, source_.reserved_bytes());
      image_.entries.push_back(entry);
      image_.failures.emplace_back(failure->reserved_bytes, failure->device_free_bytes);
      return;
    }
    try {
      // The listener's entries come first: segment_alloc, then alloc, as in PyTorch.
      slot.block = allocator_->allocate({.bytes = event.bytes, .stream = {stream}});
      entry.action = HistoryAction::kAlloc;
      entry.address = number(slot.block.data);
      if (is_seed && are_seeds_served_) ++image_.seeded_blocks;
    } catch (const OutOfMemory&) {
      if (failures_ == Failures::kKept) throw;
      are_seeds_served_ &= !is_seed;
      entry.address = source_.usage().free_bytes;
    }
    image_.entries.push_back(entry);
  }

  void free(Slot& slot, const TraceEvent& event) {
    if (slot.block.data == nullptr) return;
    if (event.deferred) allocator_->record_use(slot.block, ReplaySource::waiting_stream(event.slot));
    image_.entries.push_back(of_block(HistoryAction::kFreeRequested, slot, event.bytes));
    if (!event.deferred && slot.is_used_elsewhere) {
      waiting_.add(image_.entries.back());
    } else if (!event.deferred) {
      image_.entries.push_back(of_block(HistoryAction::kFreeCompleted, slot, event.bytes));
    }
    allocator_->deallocate(slot.block, slot.block.request.stream);
    if (event.deferred) {
      deferred_.insert(event.slot);
    } else {
      slot.block = {};
    }
  }

  /// The policy has waited for the device, as it does before it gives memory back: frees complete earlier than in the
  /// recording.
  void complete_what_waits() {
    std::erase_if(deferred_, [&](std::uint32_t index) {
      Slot& slot = slots_[index];
      if (!source_.is_complete(index)) return false;
      image_.entries.push_back(of_block(HistoryAction::kFreeCompleted, slot, slot.block.request.bytes));
      slot.block = {};
      return true;
    });
  }

  void mark(const std::string& name) {
    // A reader is told how many blocks were there at the start.
    if (allocations_ == trace_.facts.seeded_blocks && allocations_ != 0 && name == "recording starts") return;
    // Before the next event: one whose time is the same comes after it for a reader.
    image_.marks.emplace_back(listener_.time + 1, name);
  }

  ImageEntry of_block(HistoryAction action, const Slot& slot, std::uint64_t bytes) const {
    return {action, number(slot.block.data), bytes, slot.block.request.stream.id, listener_.time, slot.stack};
  }

  void name_stacks_of_blocks() {
    std::unordered_map<std::uint64_t, std::uint32_t> stacks;
    for (const Slot& slot : slots_) stacks[number(slot.block.data)] = slot.stack;
    for (ImageSegment& segment : image_.segments) {
      for (ImageBlock& block : segment.blocks) {
        if (const auto it = stacks.find(block.address); it != stacks.end() && block.state != BlockState::kFree)
          block.stack = it->second;
      }
    }
  }

  const Trace& trace_;
  Failures failures_;
  SnapshotImage image_;
  ImageListener listener_{image_.entries};
  WaitingFrees waiting_{image_};
  ReplaySource source_;
  std::unique_ptr<Allocator> allocator_;
  std::vector<Slot> slots_;
  std::set<std::uint32_t> deferred_;  ///< slots whose free waits
  std::uint64_t allocations_ = 0;
  bool are_seeds_served_ = true;
};

}  // namespace

SnapshotImage image_of_replay(const Trace& trace, const StackConfig& policy,
                              std::optional<std::uint64_t> capacity_bytes, Failures failures) {
  return ReplayImage(trace, policy, capacity_bytes.value_or(0), failures).take();
}

}  // namespace tenon::replay
