// From a snapshot to a Trace: the history walked backwards from the final blocks gives what lived before it began, then
// forwards it gives the events.
//
//   device_traces:   [lost by the ring]  alloc free_requested free_completed … segment_alloc …
//   segments:                                                                    what lives at the end
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>
#include <tenon/replay/formats/pytorch/snapshot_reader.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kMaxDeviceBytes = std::uint64_t{1} << 60;

struct Seed {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint32_t stack = 0;
  bool is_pending = false;  ///< its free was requested before the recording
};

/// What lives at some moment, by address.
class LiveBlocks {
 public:
  Seed* find(std::uint64_t address) {
    const auto it = blocks_.find(address);
    return it == blocks_.end() ? nullptr : &it->second;
  }
  void put(const Seed& seed) { blocks_.insert_or_assign(seed.address, seed); }
  void erase(std::uint64_t address) { blocks_.erase(address); }
  std::vector<Seed> sorted() const {
    std::vector<Seed> seeds;
    seeds.reserve(blocks_.size());
    for (const auto& [address, seed] : blocks_) seeds.push_back(seed);
    std::ranges::sort(seeds, {}, &Seed::address);
    return seeds;
  }

 private:
  std::unordered_map<std::uint64_t, Seed> blocks_;
};

class Rebuilder {
 public:
  Rebuilder(const InputFile& input, SnapshotDevice& device, bool is_one_of_many, const SnapshotFile& file,
            bool with_stacks)
      : device_(device), file_(file), with_stacks_(with_stacks), builder_(input.path()) {
    Trace& trace = builder_.trace();
    trace.format = "snapshot";
    trace.device = static_cast<int>(device.index);
    is_pytorchs_ = file.allocator.empty() || file.allocator == "caching" || file.allocator == "expandable";
    if (!is_pytorchs_ && !file.is_replay) {
      trace.header["allocator"] = file.allocator;
      trace.header["allocator_options"] = file.allocator_options;
    }
    if (is_one_of_many) trace.name += "@" + std::to_string(device.index);
    for (const SnapshotEntry& entry : device.entries) {
      has_free_requested_ |= entry.action == SnapshotAction::kFreeRequested;
      has_free_completed_ |= entry.action == SnapshotAction::kFreeCompleted;
    }
    find_pending();
  }

  Trace rebuild() {
    seed(walk_back());
    walk_segments_back();
    forward();
    return finish();
  }

 private:
  // Blocks that the end shows as pending: their last free is not over, whether or not the file records completions.
  void find_pending() {
    std::unordered_set<std::uint64_t> waiting;
    for (const SnapshotBlock& block : device_.live) {
      if (block.is_pending_free) waiting.insert(block.address);
    }
    for (std::size_t i = device_.entries.size(); i-- > 0 && !waiting.empty();) {
      const SnapshotEntry& entry = device_.entries[i];
      if (entry.action == SnapshotAction::kAlloc || entry.action == SnapshotAction::kFreeCompleted)
        waiting.erase(entry.address);
      if (entry.action == SnapshotAction::kFreeRequested && waiting.erase(entry.address) != 0)
        never_completed_.insert(i);
    }
  }

  std::vector<Seed> walk_back() {
    LiveBlocks live;
    for (const SnapshotBlock& block : device_.live) {
      live.put({block.address, std::max<std::uint64_t>(block.requested_bytes, 1), block.stream, block.stack,
                block.is_pending_free});
    }
    for (std::size_t i = device_.entries.size(); i-- > 0;) {
      const SnapshotEntry& entry = device_.entries[i];
      // A free's stack says who freed; who allocated is known only from a block that the end still shows.
      const Seed* const after = live.find(entry.address);
      const std::uint32_t stack = after == nullptr ? 0 : after->stack;
      const Seed seed{entry.address, std::max<std::uint64_t>(entry.bytes, 1), entry.stream, stack, false};
      switch (entry.action) {
        case SnapshotAction::kAlloc:
          live.erase(entry.address);
          break;
        case SnapshotAction::kFreeRequested:
          live.put(seed);
          break;
        case SnapshotAction::kFreeCompleted: {
          Seed pending = seed;
          pending.is_pending = has_free_requested_;  // some writers record the completion only
          live.put(pending);
          break;
        }
        default:
          break;
      }
    }
    return live.sorted();
  }

  void seed(const std::vector<Seed>& seeds) {
    for (const Seed& seed : seeds) {
      check_size(seed.bytes);
      const std::uint32_t slot = allocate(seed.address, seed.bytes, seed.stream, seed.stack);
      if (seed.is_pending) pending_at_start_.push_back({seed.address, slot});
      recorded_.seed_addresses.push_back(seed.address);
    }
    starts_later_ = file_.is_replay && seeds.empty() && file_.seeded_blocks != 0;
    if (!starts_later_) builder_.recording_starts();
    for (const auto& [address, slot] : pending_at_start_) {
      builder_.free(slot, true);
      slots_.erase(address);
      pending_.insert(address, slot);
    }
  }

  // The same walk over the segments: what was reserved before, and the peak on the way.
  void walk_segments_back() {
    recorded_ = [&] {
      RecordedAllocator settings = file_.settings;
      settings.seed_addresses = std::move(recorded_.seed_addresses);
      return settings;
    }();
    std::map<std::uint64_t, InitialSegment> ranges;  // ordinary segments by address
    for (const SnapshotSegment& segment : device_.segments) {
      recorded_.reserved_bytes += segment.bytes;
      if (!segment.is_expandable)
        ranges[segment.address] = {segment.address, segment.bytes, segment.stream, false, segment.is_large};
    }
    if (!is_pytorchs_) recorded_.has_settings = false;  // those of PyTorch's allocator, which was not in use
    std::uint64_t reserved = recorded_.reserved_bytes;
    recorded_.peak_reserved_bytes = reserved;
    for (std::size_t i = device_.entries.size(); i-- > 0;) {
      const SnapshotEntry& entry = device_.entries[i];
      switch (entry.action) {
        case SnapshotAction::kSegmentAlloc:
          ranges.erase(entry.address);
          reserved -= std::min(reserved, entry.bytes);
          break;
        case SnapshotAction::kSegmentFree:
          ranges[entry.address] = {entry.address, entry.bytes, entry.stream, false, entry.bytes > 2 * MiB};
          reserved += entry.bytes;
          break;
        case SnapshotAction::kSegmentMap:
          reserved -= std::min(reserved, entry.bytes);
          break;
        case SnapshotAction::kSegmentUnmap:
          reserved += entry.bytes;
          break;
        case SnapshotAction::kOom:
          capacity_ = std::max(capacity_, reserved + std::min(entry.address, kMaxDeviceBytes));
          continue;
        default:
          continue;
      }
      recorded_.peak_reserved_bytes = std::max(recorded_.peak_reserved_bytes, reserved);
    }
    initial_reserved_ = reserved_ = reserved;
    for (const auto& [address, segment] : ranges) {
      recorded_.initial_segments.push_back(segment);
      recorded_.reserved_at_start_bytes += segment.bytes;
    }
  }

  void forward() {
    std::size_t next_mark = 0;
    const auto& entries = device_.entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      while (next_mark < device_.marks.size() && device_.marks[next_mark].first <= i)
        builder_.mark(device_.marks[next_mark++].second);
      const SnapshotEntry& entry = entries[i];
      const bool is_emptied = empty_caches(i);
      switch (entry.action) {
        case SnapshotAction::kAlloc: {
          const std::uint64_t bytes = std::max<std::uint64_t>(entry.bytes, 1);
          check_size(bytes);
          if (const std::uint32_t* slot = slots_.find(entry.address)) {  // the recording lost the free
            builder_.free(*slot);
            slots_.erase(entry.address);
            ++overwritten_;
          } else if (const std::uint32_t* pending = pending_.find(entry.address)) {
            builder_.free_completed(*pending);
            pending_.erase(entry.address);
            ++overwritten_;
          }
          allocate(entry.address, bytes, entry.stream, entry.stack);
          break;
        }
        case SnapshotAction::kFreeRequested: {
          const bool completes_now =
              !never_completed_.contains(i) &&
              (!has_free_completed_ ||
               (i + 1 < entries.size() && entries[i + 1].action == SnapshotAction::kFreeCompleted &&
                entries[i + 1].address == entry.address));
          free(i, !completes_now);
          if (completes_now && has_free_completed_) ++i;
          break;
        }
        case SnapshotAction::kFreeCompleted:
          if (const std::uint32_t* slot = pending_.find(entry.address)) {
            builder_.free_completed(*slot);
            pending_.erase(entry.address);
          } else {
            free(i, false);
          }
          break;
        case SnapshotAction::kSegmentAlloc:
          act(SegmentAction::Kind::kAlloc, entry);
          break;
        case SnapshotAction::kSegmentMap:
          act(SegmentAction::Kind::kMap, entry);
          break;
        case SnapshotAction::kOom:
          act(SegmentAction::Kind::kOom, entry);
          fail(entry);
          break;
        case SnapshotAction::kSegmentFree:
        case SnapshotAction::kSegmentUnmap:
          i = give_back(i, is_emptied);
          break;
        case SnapshotAction::kOther:
          break;
      }
    }
    empty_caches(entries.size());
    while (next_mark < device_.marks.size()) builder_.mark(device_.marks[next_mark++].second);
  }

  /// What a file of Tenon's says besides: whether the program emptied the cache before this entry.
  bool empty_caches(std::size_t entry) {
    bool is_emptied = false;
    for (; file_.empty_caches && next_empty_ < file_.empty_caches->size(); ++next_empty_, is_emptied = true) {
      if ((*file_.empty_caches)[next_empty_] > entry) break;
      builder_.empty_cache();
    }
    return is_emptied;
  }

  /// Whether the allocator gave back what is before `next` because it needed memory for that. With a capacity known
  /// from a failure or a peak, figures decide; no device that PyTorch runs on is smaller than a gibibyte.
  bool is_under_pressure(std::size_t next) const {
    if (next >= device_.entries.size()) return false;
    const SnapshotEntry& entry = device_.entries[next];
    if (entry.action == SnapshotAction::kOom) return true;
    if (entry.action != SnapshotAction::kSegmentAlloc && entry.action != SnapshotAction::kSegmentMap) return false;
    if (file_.empty_caches) return true;                          // the program's own are all told
    if (recorded_.garbage_collection_threshold > 0) return true;  // collected, not pressed: the allocator all the same
    const std::uint64_t room = capacity_ != 0 ? capacity_ : std::max(recorded_.peak_reserved_bytes, GiB);
    return reserved_ + entry.bytes > room;
  }

  // A run of segment_free is empty_cache() unless the allocator needed the memory for what follows.
  std::size_t give_back(std::size_t i, bool is_emptied) {
    const auto& entries = device_.entries;
    std::size_t end = i;
    while (end < entries.size() && (entries[end].action == SnapshotAction::kSegmentFree ||
                                    entries[end].action == SnapshotAction::kSegmentUnmap)) {
      ++end;
    }
    const bool is_told = file_.empty_caches.has_value() || !is_pytorchs_;
    if (is_pytorchs_ && !is_emptied && is_under_pressure(end)) {
      ++pressed_;
    } else if (!is_told) {
      builder_.empty_cache();
      is_emptied = true;
    }
    const std::uint64_t event = builder_.counted() - (is_emptied ? 1 : 0);
    for (; i < end; ++i) {
      act(entries[i].action == SnapshotAction::kSegmentFree ? SegmentAction::Kind::kFree : SegmentAction::Kind::kUnmap,
          entries[i], event);
    }
    return end - 1;
  }

  std::uint32_t allocate(std::uint64_t address, std::uint64_t bytes, std::uint64_t stream, std::uint32_t stack) {
    const std::uint32_t slot = builder_.allocate(bytes, stream);
    slots_.insert(address, slot);
    if (with_stacks_) builder_.trace().stacks.of_allocation.push_back(stack);
    if (starts_later_ && builder_.trace().facts.allocations == file_.seeded_blocks) {
      if (builder_.trace().facts.frees == 0) builder_.recording_starts();
      starts_later_ = false;
    }
    return slot;
  }
  void free(std::size_t index, bool deferred) {
    const std::uint64_t address = device_.entries[index].address;
    const std::uint32_t* const found = slots_.find(address);
    if (found == nullptr) {  // freed twice: everything else the walk back has seeded
      throw TraceError(builder_.trace().path + ": device_traces[" + std::to_string(device_.index) + "][" +
                       std::to_string(index) + "]: frees address " + std::to_string(address) +
                       ", which was freed before");
    }
    const std::uint32_t slot = *found;
    slots_.erase(address);
    builder_.free(slot, deferred);
    if (deferred) pending_.insert(address, slot);
  }
  void fail(const SnapshotEntry& entry) {
    RecordedOom failure{.bytes = std::max<std::uint64_t>(entry.bytes, 1),
                        .stream = entry.stream,
                        .reserved_bytes = reserved_,
                        .device_free_bytes = std::min(entry.address, kMaxDeviceBytes)};
    if (failed_ < file_.failures.size())
      std::tie(failure.reserved_bytes, failure.device_free_bytes) = file_.failures[failed_];
    ++failed_;
    if (builder_.would_overflow(failure.bytes)) return;  // a size that is nonsense fails everywhere
    builder_.fail(failure);
    if (with_stacks_) builder_.trace().stacks.of_allocation.push_back(entry.stack);
  }
  void act(SegmentAction::Kind kind, const SnapshotEntry& entry) { act(kind, entry, builder_.counted()); }
  void act(SegmentAction::Kind kind, const SnapshotEntry& entry, std::uint64_t event) {
    using Kind = SegmentAction::Kind;
    if (kind == Kind::kAlloc || kind == Kind::kMap) reserved_ += entry.bytes;
    if (kind == Kind::kFree || kind == Kind::kUnmap) reserved_ -= std::min(reserved_, entry.bytes);
    recorded_.actions.push_back({kind, entry.bytes, event});
  }
  void check_size(std::uint64_t bytes) const {
    if (builder_.would_overflow(bytes)) throw TraceError("the live bytes exceed 2^62");
  }

  Trace finish() {
    Trace& trace = builder_.trace();
    const TraceFacts& facts = trace.facts;
    recorded_.is_whole = initial_reserved_ == 0 && facts.seeded_blocks == 0;
    const auto note = [&](std::string text) { trace.notes.push_back(std::move(text)); };
    const bool is_state_only = std::ranges::all_of(device_.entries, [](const SnapshotEntry& entry) {
      return entry.action == SnapshotAction::kOther || entry.action == SnapshotAction::kOom;
    });
    if (is_state_only) {
      note("the snapshot holds the state only, no history: replaying it allocates what lived at that moment");
    } else if (facts.seeded_blocks != 0) {
      const double share =
          100.0 * static_cast<double>(facts.seeded_bytes) / static_cast<double>(facts.total_requested_bytes);
      char text[200];
      std::snprintf(
          text, sizeof text,
          "%llu blocks of %s (%.1f %% of all bytes allocated) lived before the recording began: put at the start",
          static_cast<unsigned long long>(facts.seeded_blocks), format_bytes(facts.seeded_bytes).c_str(), share);
      note(text);
    }
    if (initial_reserved_ != 0 && !is_state_only) {
      note(recorded_.actions.empty()
               ? format_bytes(initial_reserved_) +
                     " are reserved and no entry says since when: before the recording began, or the entries of "
                     "segments were left out of it (skip_actions)"
               : format_bytes(initial_reserved_) + " were reserved already when the recording began");
    }
    if (facts.deferred_frees != 0)
      note(std::to_string(facts.deferred_frees) +
           " frees waited for another stream; the replay completes them where the recording did");
    if (failed_ != 0)
      note(std::to_string(failed_) + (failed_ == 1 ? " request" : " requests") + " ran out of memory in the " +
           (file_.is_replay && file_.failures.empty() ? "replay that wrote this" : "recording"));
    if (pressed_ != 0) note(std::to_string(pressed_) + " times the recorded allocator gave segments back to go on");
    if (overwritten_ != 0)
      note(std::to_string(overwritten_) +
           " blocks were allocated over one whose free is missing: the history has gaps");
    if (const auto pooled = std::ranges::count(device_.segments, true, &SnapshotSegment::is_private); pooled != 0)
      note(std::to_string(pooled) + " of " + std::to_string(device_.segments.size()) +
           " segments belong to private pools (CUDA graphs, MemPool); the replay serves every request from one pool");
    if (with_stacks_) {
      trace.stacks.frames = file_.frames;
      trace.stacks.stacks = file_.stacks;
    }
    recorded_.pressed = pressed_;
    if (file_.is_replay) {
      behind_the_replay(trace);
    } else {
      trace.recorded = std::move(recorded_);
    }
    return std::move(builder_).finish();
  }

  /// What is known of the recording that the replay was one of; segments and settings of the file are the replay's.
  void behind_the_replay(Trace& trace) {
    const std::string& options = file_.allocator_options;
    trace.replayed_under = file_.allocator + (options.empty() ? "" : ":" + options);
    for (const auto& [key, value] : file_.recording) trace.header.insert_or_assign(key, value);
    take_recorded_lines(trace);
    add_note(trace, "written by a replay of Tenon under '" + trace.replayed_under +
                        "': segments and settings in it are that replay's, not a recording's");
  }

  SnapshotDevice& device_;
  const SnapshotFile& file_;
  bool with_stacks_;
  TraceBuilder builder_;
  RecordedAllocator recorded_;
  IdMap slots_;
  IdMap pending_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> pending_at_start_;
  std::unordered_set<std::size_t> never_completed_;  ///< entries whose free was pending at the end
  bool has_free_requested_ = false;
  bool has_free_completed_ = false;
  std::uint64_t initial_reserved_ = 0;
  std::uint64_t reserved_ = 0;  ///< on the way forward
  std::uint64_t overwritten_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t pressed_ = 0;
  std::uint64_t capacity_ = 0;  ///< the largest that a failure tells; 0: none does
  std::size_t next_empty_ = 0;
  bool is_pytorchs_ = true;
  bool starts_later_ = false;  ///< the first allocations of the history lived before the recording
};

}  // namespace

std::vector<Trace> read_snapshot(InputFile& input, const ReadOptions& options) {
  SnapshotFile file = read_snapshot_file(input, options.with_stacks);
  std::erase_if(file.devices,
                [](const SnapshotDevice& device) { return device.entries.empty() && device.segments.empty(); });
  std::vector<Trace> traces;
  for (SnapshotDevice& device : file.devices) {
    traces.push_back(Rebuilder(input, device, file.devices.size() > 1, file, options.with_stacks).rebuild());
    device = {};
  }
  if (traces.empty())
    throw TraceError(input.path() + ": the snapshot holds no segments and no history: nothing was allocated");
  return traces;
}

}  // namespace tenon::replay
