// Snapshots in the schema of torch.cuda.memory._dump_snapshot.
#include <tenon/memory/pytorch_conf.h>
#include <tenon/replay/pickle_writer.h>
#include <tenon/replay/placement_oracle.h>
#include <tenon/replay/replay_source.h>
#include <tenon/replay/snapshot_image.h>
#include <tenon/replay/tune_space.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tenon::replay {

namespace {

constexpr std::string_view kEndOf = "end of ";  // what a reader makes of an annotation's END

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
  void synchronized() override {}

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

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

class SnapshotWriter {
 public:
  SnapshotWriter(const SnapshotImage& image, OutputFile& out)
      : image_(image), pickle_(out), stack_ids_(image.stacks.size(), kNone) {}

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const ImageSegment& segment : image_.segments) write(segment);
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    pickle_.begin_list();
    for (const ImageEntry& entry : image_.entries) write(entry);
    pickle_.end_list();
    pickle_.end_list();
    settings();
    tenon();
    pickle_.text("external_annotations");
    pickle_.begin_list();
    std::multiset<std::string_view> open;
    for (const auto& [time_us, mark] : image_.marks) {
      std::string_view name = mark;
      const auto started = name.starts_with(kEndOf) ? open.find(name.substr(kEndOf.size())) : open.end();
      const bool is_end = started != open.end();
      if (is_end) {
        name = *started;
        open.erase(started);
      } else {
        open.insert(name);
      }
      pickle_.begin_dict();
      item("name", name);
      item("stage", is_end ? "END" : "START");
      item("device", std::uint64_t{0});
      item("time_us", static_cast<std::uint64_t>(time_us));
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
    pickle_.stop();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void item(std::string_view key, std::uint64_t value) {
    pickle_.text(key);
    pickle_.address(value);
  }
  void item(std::string_view key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void frames(std::uint32_t stack) {
    pickle_.text("frames");
    if (stack_ids_[stack] != kNone) return pickle_.recall(stack_ids_[stack]);
    pickle_.begin_list();
    for (const Frame& frame : image_.stacks[stack]) {
      pickle_.begin_dict();
      item("name", frame.function);
      item("filename", frame.file);
      item("line", std::uint64_t{frame.line});
      pickle_.end_dict();
    }
    pickle_.end_list();
    stack_ids_[stack] = pickle_.remember();
  }

  void write(const ImageSegment& segment) {
    std::uint64_t allocated = 0, active = 0, requested = 0;
    for (const ImageBlock& block : segment.blocks) {
      if (block.state == BlockState::kActive) allocated += block.bytes;
      if (block.state != BlockState::kFree) active += block.bytes, requested += block.requested_bytes;
    }
    pickle_.begin_dict();
    item("device", std::uint64_t{0});
    item("address", segment.address);
    item("total_size", segment.bytes);
    item("allocated_size", allocated);
    item("active_size", active);
    item("requested_size", requested);
    item("stream", segment.stream);
    item("segment_type", segment.is_large ? "large" : "small");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    pickle_.text("is_expandable");
    pickle_.truth(segment.is_expandable);
    frames(0);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const ImageBlock& block : segment.blocks) {
      pickle_.begin_dict();
      item("address", block.address);
      item("size", block.bytes);
      item("requested_size", block.requested_bytes);
      item("state", block.state == BlockState::kActive ? "active_allocated"
                    : block.state == BlockState::kFree ? "inactive"
                                                       : "active_pending_free");
      frames(block.stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write(const ImageEntry& entry) {
    pickle_.begin_dict();
    item("action", name_of(entry.action));
    item(entry.action == HistoryAction::kOom ? "device_free" : "addr", entry.address);
    item("size", entry.bytes);
    item("stream", entry.stream);
    item("time_us", static_cast<std::uint64_t>(entry.time_us));
    item("compile_context", "N/A");
    item("user_metadata", "");
    frames(entry.stack);
    pickle_.end_dict();
  }

  void settings() {
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    item("PYTORCH_CUDA_ALLOC_CONF", image_.pytorch_conf);
    pickle_.text("max_split_size");
    pickle_.number(image_.max_split_bytes == 0 ? -1 : static_cast<std::int64_t>(image_.max_split_bytes));
    pickle_.text("garbage_collection_threshold");
    pickle_.real(image_.garbage_collection_threshold);
    pickle_.text("expandable_segments");
    pickle_.truth(image_.pytorch_conf.find("expandable_segments:True") != std::string::npos);
    pickle_.text("pinned_num_register_threads");
    pickle_.number(1);
    pickle_.text("release_lock_on_cudamalloc");
    pickle_.truth(false);
    pickle_.text("pinned_use_cuda_host_register");
    pickle_.truth(false);
    pickle_.text("roundup_power2_divisions");
    pickle_.begin_dict();
    for (int power = 0; power < 16; ++power)
      item(std::to_string(1 << power), std::uint64_t{image_.roundup_divisions[static_cast<std::size_t>(power)]});
    pickle_.end_dict();
    pickle_.end_dict();
  }

  // Readers of snapshots skip keys that they do not know.
  void tenon() {
    if (image_.allocator.empty() && !image_.empty_caches) return;
    pickle_.text("tenon");
    pickle_.begin_dict();
    item("allocator", image_.allocator);
    item("allocator_options", image_.allocator_options);
    item("origin", image_.is_replay ? "replay" : "recording");
    if (image_.is_replay) {
      item("seeded_blocks", image_.seeded_blocks);
      pickle_.text("recording");
      pickle_.begin_list();
      for (const auto& [key, value] : image_.recording) item(key, value);
      pickle_.end_list();
    }
    if (image_.empty_caches) {
      pickle_.text("empty_caches");
      pickle_.begin_list();
      for (const std::uint64_t entry : *image_.empty_caches) pickle_.address(entry);
      pickle_.end_list();
    }
    pickle_.end_dict();
  }

  const SnapshotImage& image_;
  PickleWriter pickle_;
  std::vector<std::uint32_t> stack_ids_;
};

/// The allocator's settings in PyTorch's words, where it has them.
void describe_settings(const StackConfig& policy, SnapshotImage& image) {
  image.pytorch_conf = conf_of_policy(policy);
  image.allocator = policy.policy.name;
  image.allocator_options = policy.options.spec();
  if (policy.policy.name != "caching" && policy.policy.name != "expandable") return;
  for (const OptionSpec& option : policy.options.schema()) {
    if (option.name == "max_split_size") image.max_split_bytes = policy.options.size(option.name);
    if (option.name == "garbage_collection_threshold")
      image.garbage_collection_threshold = policy.options.real(option.name);
    if (option.name == "roundup_power2_divisions")
      image.roundup_divisions = parse_roundup_divisions(policy.options.text(option.name));
  }
}

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

}  // namespace

void ImageVisitor::segment(const SegmentInfo& info) {
  current_ = info;
  has_open_ = false;
}

void ImageVisitor::block(const BlockInfo& info) {
  if (info.state == BlockState::kUnmapped) {
    has_open_ = false;
    return;
  }
  if (!has_open_) {
    segments_.push_back({.address = number(info.address),
                         .stream = current_.stream.id,
                         .is_large = current_.is_large,
                         .is_expandable = current_.is_expandable});
    has_open_ = true;
  }
  ImageSegment& segment = segments_.back();
  segment.bytes += info.bytes;
  segment.blocks.push_back({number(info.address), info.bytes, info.requested_bytes, info.state, 0});
}

SnapshotImage image_of_replay(const Trace& trace, const StackConfig& policy,
                              std::optional<std::uint64_t> capacity_bytes, Failures failures) {
  SnapshotImage image;
  describe_settings(policy, image);
  describe_recording(trace, failures, image);
  image.empty_caches.emplace();
  ImageListener listener(image.entries);
  ReplaySource source(capacity_bytes.value_or(0), &listener);
  const std::unique_ptr<Allocator> allocator = policy.policy.create({.source = source, .options = policy.options});
  std::vector<Block> blocks(std::max<std::uint32_t>(1, trace.slot_count));
  std::vector<std::uint32_t> stack_of_slot(blocks.size(), 0);
  std::vector<bool> is_used_elsewhere(blocks.size(), false);
  WaitingFrees waiting(image);
  bool are_seeds_served = true;
  for (const auto& stack : trace.stacks.stacks) {
    if (&stack == &trace.stacks.stacks.front()) continue;
    image.stacks.emplace_back();
    for (const std::uint32_t frame : stack) image.stacks.back().push_back(trace.stacks.frames[frame]);
  }
  std::uint64_t allocation = 0;
  std::size_t next_failure = 0;
  for (const TraceEvent& event : trace.events) {
    Block& block = blocks[event.slot];
    const RecordedOom* failure = nullptr;
    if (is_counted(event.kind)) {
      failure = trace.failure_at(static_cast<std::uint64_t>(listener.time), next_failure);
      ++listener.time;  // one microsecond is one event
    }
    switch (event.kind) {
      case EventKind::kAllocate: {
        const std::uint64_t stream = trace.streams[event.stream];
        listener.stream = stream;
        waiting.complete(listener.time);
        is_used_elsewhere[event.slot] = false;
        const bool is_seed = allocation < trace.facts.seeded_blocks;
        const std::uint32_t stack =
            allocation < trace.stacks.of_allocation.size() ? trace.stacks.of_allocation[allocation] : 0;
        ++allocation;
        if (failure != nullptr && failures == Failures::kKept) {
          // Beside what this policy has reserved, so that the device is as large as it was.
          const std::uint64_t capacity = failure->capacity_bytes();
          const std::uint64_t left = capacity - std::min(capacity, source.reserved_bytes());
          image.entries.push_back({HistoryAction::kOom, left, event.bytes, stream, listener.time, stack});
          block = {};
          break;
        }
        try {
          // The listener's entries come first: segment_alloc, then alloc, as in PyTorch.
          block = allocator->allocate({.bytes = event.bytes, .stream = {stream}});
          image.entries.push_back(
              {HistoryAction::kAlloc, number(block.data), event.bytes, stream, listener.time, stack});
          stack_of_slot[event.slot] = stack;
          if (is_seed && are_seeds_served) ++image.seeded_blocks;
        } catch (const OutOfMemory&) {
          block = {};
          are_seeds_served &= !is_seed;
          image.entries.push_back(
              {HistoryAction::kOom, source.usage().free_bytes, event.bytes, stream, listener.time, stack});
        }
        break;
      }
      case EventKind::kFree:
        if (block.data == nullptr) break;
        if (event.deferred) allocator->record_use(block, ReplaySource::waiting_stream(event.slot));
        image.entries.push_back({HistoryAction::kFreeRequested, number(block.data), event.bytes,
                                 block.request.stream.id, listener.time, stack_of_slot[event.slot]});
        if (!event.deferred && is_used_elsewhere[event.slot]) {
          waiting.add(image.entries.back());
        } else if (!event.deferred) {
          image.entries.push_back({HistoryAction::kFreeCompleted, number(block.data), event.bytes,
                                   block.request.stream.id, listener.time, stack_of_slot[event.slot]});
        }
        allocator->deallocate(block, block.request.stream);
        if (!event.deferred) block = {};
        break;
      case EventKind::kUse:
        if (block.data != nullptr && trace.streams[event.stream] != block.request.stream.id) {
          allocator->record_use(block, {trace.streams[event.stream]});
          is_used_elsewhere[event.slot] = true;
        }
        break;
      case EventKind::kEmptyCache:
        waiting.complete(listener.time);
        image.empty_caches->push_back(image.entries.size());
        allocator->trim(0);
        break;
      case EventKind::kFreeCompleted:
        if (block.data != nullptr) {
          image.entries.push_back({HistoryAction::kFreeCompleted, number(block.data), block.request.bytes,
                                   block.request.stream.id, listener.time, stack_of_slot[event.slot]});
        }
        source.complete(event.slot);
        block = {};
        break;
      case EventKind::kMark:
        // A reader is told how many blocks were there at the start.
        if (allocation == trace.facts.seeded_blocks && allocation != 0 &&
            trace.marks[event.bytes] == "recording starts")
          break;
        // Before the next event: one whose time is the same comes after it for a reader.
        image.marks.emplace_back(listener.time + 1, trace.marks[event.bytes]);
        break;
    }
  }
  ImageVisitor visitor(image.segments);
  allocator->walk(visitor);
  waiting.complete_all_but_pending(listener.time);
  std::unordered_map<std::uint64_t, std::uint32_t> stacks;
  for (std::size_t slot = 0; slot < blocks.size(); ++slot) stacks[number(blocks[slot].data)] = stack_of_slot[slot];
  for (ImageSegment& segment : image.segments) {
    for (ImageBlock& block : segment.blocks) {
      if (const auto it = stacks.find(block.address); it != stacks.end() && block.state != BlockState::kFree)
        block.stack = it->second;
    }
  }
  std::ranges::sort(image.segments, {}, &ImageSegment::address);
  listener.is_on = false;
  return image;
}

SnapshotImage image_of_stack(const AllocatorStack& stack, const History& history) {
  SnapshotImage image;
  describe_settings(stack.config(), image);
  std::unordered_map<StackId, std::uint32_t> known{{0, 0}};
  const auto stack_id = [&](StackId id) {
    const auto [entry, is_new] = known.try_emplace(id, static_cast<std::uint32_t>(image.stacks.size()));
    if (is_new) {
      image.stacks.emplace_back();
      for (const StackFrame& frame : history.frames(id)) {
        image.stacks.back().push_back({frame.name, frame.file, static_cast<std::uint32_t>(std::max(0, frame.line))});
      }
    }
    return entry->second;
  };
  for (const HistoryEvent& event : history.events()) {
    image.entries.push_back(
        {event.action, event.address, event.bytes, event.stream.id, event.time_us, stack_id(event.stack)});
  }
  ImageVisitor visitor(image.segments);
  stack.walk(visitor);
  for (ImageSegment& segment : image.segments) {
    for (ImageBlock& block : segment.blocks) {
      if (block.state != BlockState::kFree) block.stack = stack_id(history.live_stack(block.address));
    }
  }
  std::ranges::sort(image.segments, {}, &ImageSegment::address);
  return image;
}

void write_snapshot(const SnapshotImage& image, const std::string& path) {
  OutputFile out(path);
  SnapshotWriter(image, out).write();
  out.close();
}

}  // namespace tenon::replay
