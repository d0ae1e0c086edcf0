// The image of a replay: every event goes to the policy, and what it does with them is listed as PyTorch would.
// Declared in snapshot_image.h.
#include <tenon/memory/history/text_lines.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/replay/engine/event_driver.h>
#include <tenon/replay/engine/observed_pass.h>
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tenon::replay {

namespace {

/// Device calls of a replay as events of its history.
class SegmentEvents final : public SourceListener {
 public:
  explicit SegmentEvents(std::vector<HistoryEvent>& events) : events_(events) {}
  std::int64_t time = 0;
  StreamRef stream;  ///< of the request that is being served
  void acquired(const void* address, std::size_t bytes) noexcept override {
    add(HistoryAction::kSegmentAlloc, address, bytes);
  }
  void releasing(const void* address, std::size_t bytes) noexcept override {
    add(HistoryAction::kSegmentFree, address, bytes);
  }
  void mapped(const void* address, std::size_t bytes, Physical, std::size_t) noexcept override {
    merge(HistoryAction::kSegmentMap, address, bytes);
  }
  void unmapped(const void* address, std::size_t bytes) noexcept override {
    merge(HistoryAction::kSegmentUnmap, address, bytes);
  }

 private:
  void add(HistoryAction action, const void* address, std::size_t bytes) {
    events_.push_back({{.action = action, .address = Address(address), .bytes = bytes, .stream = stream}, time});
  }
  // Pages are mapped one by one, PyTorch lists the range.
  void merge(HistoryAction action, const void* address, std::size_t bytes) {
    if (!events_.empty() && events_.back().action == action && events_.back().time_us == time &&
        events_.back().address + events_.back().bytes == Address(address)) {
      events_.back().bytes += bytes;
    } else {
      add(action, address, bytes);
    }
  }
  std::vector<HistoryEvent>& events_;
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
  if (image.is_pytorchs) {
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
  void add(const HistoryEvent& request) {
    events_.push_back(request);
    events_.back().action = HistoryAction::kFreeCompleted;
  }
  void complete(std::int64_t time) {
    for (HistoryEvent& event : events_) {
      event.time_us = time;
      image_.events.push_back(event);
    }
    events_.clear();
  }
  /// At the end those remain that the allocator shows as waiting.
  void complete_all_but_pending(std::int64_t time) {
    std::unordered_set<std::uint64_t> pending;
    for (const Segment& segment : image_.segments) {
      for (const BlockInfo& block : segment.blocks) {
        if (block.state == BlockState::kAwaitingStream) pending.insert(block.address);
      }
    }
    std::erase_if(events_, [&](const HistoryEvent& event) { return pending.contains(event.address); });
    complete(time);
  }

 private:
  SnapshotImage& image_;
  std::vector<HistoryEvent> events_;
};

class ReplayImage : private NoHooks {
  friend class EventDriver<AllocatorStack, ReplayImage>;

 public:
  ReplayImage(const Trace& trace, const StackConfig& policy, std::uint64_t capacity_bytes, Failures failures)
      : trace_(trace),
        failures_(failures),
        source_(capacity_bytes, segments_for(trace, policy)),
        stack_(trial_of(policy, source_, &segment_events_)),
        slots_(std::max<std::uint32_t>(1, trace.slot_count)) {
    describe_settings(policy, image_);
    describe_recording(trace, failures, image_);
    image_.empty_caches.emplace();
    source_.when_waited([this] { complete_what_waits(); });
    image_.stacks = trace.stacks;
  }

  SnapshotImage take() {
    EventDriver driver(trace_, *stack_, source_, *this);
    std::size_t next_failure = 0;
    WorkMeter meter("replaying", trace_.events.size());
    for (const TraceEvent& event : trace_.events) {
      meter.step();
      failure_ = nullptr;
      if (is_counted(event.kind)) {
        failure_ = trace_.failure_at(static_cast<std::uint64_t>(segment_events_.time), next_failure);
        ++segment_events_.time;  // one microsecond is one event
      }
      driver.play(event, slots_[event.slot].block);
    }
    image_.segments = mapped_segments_of(*stack_);
    if (image_.segments.empty()) image_.unlisted_bytes = stack_->usage().reserved_bytes;
    waiting_.complete_all_but_pending(segment_events_.time);
    name_stacks_of_blocks();
    source_.when_waited({});
    return std::move(image_);
  }

 private:
  struct Slot {
    Block block;
    std::uint32_t stack = 0;
    bool is_used_elsewhere = false;
  };

  // Hooks of the driver.
  bool requesting(const TraceEvent& event) {
    const StreamRef stream{trace_.streams[event.stream]};
    segment_events_.stream = stream;
    waiting_.complete(segment_events_.time);
    const auto& stacks = trace_.stack_of_allocation;
    slots_[event.slot] = {.stack = allocations_ < stacks.size() ? stacks[allocations_] : 0};
    ++allocations_;
    if (failure_ == nullptr || failures_ == Failures::kAttempted) return true;
    // Beside what this policy has reserved, so that the device is as large as it was.
    const std::uint64_t capacity = failure_->capacity_bytes();
    const std::uint64_t left = capacity - std::min<std::uint64_t>(capacity, stack_->usage().reserved_bytes);
    image_.events.push_back(of_request(HistoryAction::kOom, event, left));
    image_.failures.emplace_back(failure_->reserved_bytes, failure_->device_free_bytes);
    return false;
  }

  // The device's events come first: segment_alloc, then alloc, as in PyTorch.
  void served(const TraceEvent& event, Block& block) {
    image_.events.push_back(of_request(HistoryAction::kAlloc, event, Address(block.data)));
    if (is_seed() && are_seeds_served_) ++image_.seeded_blocks;
  }

  void refused(const TraceEvent& event) {
    if (failures_ == Failures::kKept) throw;
    are_seeds_served_ &= !is_seed();
    image_.events.push_back(of_request(HistoryAction::kOom, event, source_.usage().free_bytes));
  }

  bool using_elsewhere(const TraceEvent& event, Block&) {
    slots_[event.slot].is_used_elsewhere = true;
    return true;
  }

  StreamRef freeing(const TraceEvent& event, Block& block) {
    const Slot& slot = slots_[event.slot];
    image_.events.push_back(of_block(HistoryAction::kFreeRequested, slot, event.bytes));
    if (!event.deferred && slot.is_used_elsewhere) {
      waiting_.add(image_.events.back());
    } else if (!event.deferred) {
      image_.events.push_back(of_block(HistoryAction::kFreeCompleted, slot, event.bytes));
    }
    return block.request.stream;
  }

  void freed(const TraceEvent& event, Block& block) {
    if (event.deferred) {
      deferred_.insert(event.slot);
    } else {
      block = {};
    }
  }

  void trimming() {
    waiting_.complete(segment_events_.time);
    image_.empty_caches->push_back(image_.events.size());
  }

  void completed(const TraceEvent& event, Block& block) {
    if (block.data != nullptr)
      image_.events.push_back(of_block(HistoryAction::kFreeCompleted, slots_[event.slot], block.request.bytes));
    block = {};
    deferred_.erase(event.slot);
  }

  void marked(const TraceEvent& event) {
    const std::string& name = trace_.marks[event.bytes];
    // A reader is told how many blocks were there at the start.
    if (allocations_ == trace_.facts.seeded_blocks && allocations_ != 0 && name == text_marks::kRecordingStarts) return;
    // Before the next event: one whose time is the same comes after it for a reader.
    image_.marks.emplace_back(segment_events_.time + 1, name);
  }

  /// Of the request that is being served.
  bool is_seed() const { return allocations_ <= trace_.facts.seeded_blocks; }

  /// The policy has waited for the device, as it does before it gives memory back: frees complete earlier than in the
  /// recording.
  void complete_what_waits() {
    std::erase_if(deferred_, [&](std::uint32_t index) {
      Slot& slot = slots_[index];
      if (!source_.is_complete(index)) return false;
      image_.events.push_back(of_block(HistoryAction::kFreeCompleted, slot, slot.block.request.bytes));
      slot.block = {};
      return true;
    });
  }

  /// `address`: of a request that failed, what the device had left.
  HistoryEvent of_request(HistoryAction action, const TraceEvent& event, std::uint64_t address) const {
    return {{.action = action,
             .stack = slots_[event.slot].stack,
             .address = address,
             .bytes = event.bytes,
             .stream = {trace_.streams[event.stream]}},
            segment_events_.time};
  }

  HistoryEvent of_block(HistoryAction action, const Slot& slot, std::uint64_t bytes) const {
    return {{.action = action,
             .stack = slot.stack,
             .address = Address(slot.block.data),
             .bytes = bytes,
             .stream = slot.block.request.stream},
            segment_events_.time};
  }

  void name_stacks_of_blocks() {
    std::unordered_map<std::uint64_t, std::uint32_t> stacks;
    for (const Slot& slot : slots_) stacks[Address(slot.block.data)] = slot.stack;
    for (Segment& segment : image_.segments) {
      for (BlockInfo& block : segment.blocks) {
        if (const auto it = stacks.find(block.address); it != stacks.end() && block.state != BlockState::kFree)
          block.stack = it->second;
      }
    }
  }

  const Trace& trace_;
  Failures failures_;
  SnapshotImage image_;
  SegmentEvents segment_events_{image_.events};
  WaitingFrees waiting_{image_};
  ReplaySource source_;
  std::unique_ptr<AllocatorStack> stack_;
  std::vector<Slot> slots_;
  std::set<std::uint32_t> deferred_;      ///< slots whose free waits
  const RecordedOom* failure_ = nullptr;  ///< that the event is, in the recording
  std::uint64_t allocations_ = 0;
  bool are_seeds_served_ = true;
};

}  // namespace

SnapshotImage image_of_replay(const Trace& trace, const StackConfig& policy,
                              std::optional<std::uint64_t> capacity_bytes, Failures failures) {
  return ReplayImage(trace, policy, capacity_bytes.value_or(0), failures).take();
}

}  // namespace tenon::replay
