// From a snapshot to a Trace: the history walked backwards from the final blocks gives what lived before it began
// (snapshot_beginning.h), then forwards it gives the events.
//
//   device_traces:   [lost by the ring]  alloc free_requested free_completed … segment_alloc …
//   segments:                                                                    what lives at the end
#include <tenon/core/spec_names.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/replay/formats/pytorch/snapshot_beginning.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>
#include <tenon/replay/formats/pytorch/snapshot_reader.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace tenon::replay {

namespace {

constexpr double kFileShare = 0.9;  // of the time to read a snapshot; the rest is to rebuild its history

/// Reserved at the end in segments that the policy did not show. Where the file does not say so, and began with nothing
/// reserved, what was taken and not given back.
std::uint64_t unlisted_bytes_of(const SnapshotDevice& device, const SnapshotFile& file) {
  if (file.unlisted_bytes != 0 || !device.segments.empty() || file.allocator.empty()) return file.unlisted_bytes;
  std::uint64_t reserved = 0;
  for (const MemoryEvent& event : device.events) {
    if (takes_memory(event.action)) reserved += event.bytes;
    if (gives_memory(event.action)) reserved -= std::min(reserved, event.bytes);
  }
  return reserved;
}

class Rebuilder {
 public:
  Rebuilder(const InputFile& input, const SnapshotDevice& device, bool is_one_of_many, const SnapshotFile& file,
            const ReadOptions& options)
      : device_(device),
        beginning_(beginning_of(device, unlisted_bytes_of(device, file))),
        file_(file),
        with_stacks_(options.with_stacks),
        as_replayed_(options.as_replayed),
        builder_(input.path()) {
    Trace& trace = builder_.trace();
    trace.format = "snapshot";
    trace.device = static_cast<int>(device.index);
    is_pytorchs_ = file.allocator.empty() || file.is_pytorchs;
    if (!is_pytorchs_ && !file.is_replay) {
      trace.header["allocator"] = file.allocator;
      trace.header["allocator_options"] = file.allocator_options;
      if (!file.allocator_plugin.empty()) trace.header["allocator_plugin"] = file.allocator_plugin;
    }
    if (is_one_of_many) trace.name += "@" + std::to_string(device.index);
  }

  Trace rebuild() {
    describe_recording();
    seed();
    forward();
    return finish();
  }

 private:
  void seed() {
    for (const auto& [block, stream] : beginning_.blocks) {
      check_size(block.requested_bytes);
      const std::uint32_t slot = allocate(block.address, block.requested_bytes, stream.id, block.stack);
      if (block.state == BlockState::kAwaitingStream) pending_at_start_.push_back({block.address, slot});
      recorded_.seed_addresses.push_back(block.address);
    }
    starts_later_ = file_.is_replay && beginning_.blocks.empty() && file_.seeded_blocks != 0;
    if (!starts_later_) builder_.recording_starts();
    for (const auto& [address, slot] : pending_at_start_) {
      builder_.free(slot, true);
      slots_.erase(address);
      pending_.insert(address, slot);
    }
  }

  void describe_recording() {
    recorded_ = file_.settings;
    if (!is_pytorchs_) recorded_.has_settings = false;  // those of PyTorch's allocator, which was not in use
    if (is_pytorchs_) believe_the_segments();
    recorded_.reserved_bytes = beginning_.reserved_at_end_bytes;
    recorded_.peak_reserved_bytes = beginning_.peak_reserved_bytes;
    recorded_.initial_segments = beginning_.segments;
    for (const SegmentInfo& segment : beginning_.segments) {
      recorded_.reserved_at_start_bytes += segment.bytes;
      recorded_.acquired.push_back({segment.bytes, segment.address});
    }
    reserved_ = beginning_.reserved_bytes;
  }

  /// Settings that were made in the program, and those of other devices' allocators, are not always in the file; a
  /// later string takes the place of the one that switched expandable segments on, and leaves them on.
  void believe_the_segments() {
    const bool is_expandable = std::ranges::any_of(device_.segments, &Segment::is_expandable) ||
                               std::ranges::any_of(device_.events, [](const MemoryEvent& event) {
                                 return event.action == HistoryAction::kSegmentMap;
                               });
    std::string& conf = recorded_.pytorch_conf;
    if (!is_expandable || conf.find("expandable_segments:") != conf.npos) return;
    recorded_.expandable_segments = true;
    conf += conf.empty() ? "expandable_segments:True" : ",expandable_segments:True";
    if (!file_.is_replay)
      builder_.trace().notes.emplace_back(
          "its segments are expandable, and its settings do not say so: taken as expandable_segments:True");
  }

  void forward() {
    std::size_t next_mark = 0;
    const auto& entries = device_.events;
    const bool has_times = !device_.times_us.empty() && !file_.is_replay;  // a replay numbers its events
    WorkMeter meter("reading", entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      meter.step();
      while (next_mark < device_.marks.size() && device_.marks[next_mark].first <= i)
        builder_.mark(device_.marks[next_mark++].second);
      if (has_times) builder_.at(device_.times_us[i]);
      const MemoryEvent& event = entries[i];
      const bool is_emptied = empty_caches(i);
      switch (event.action) {
        case HistoryAction::kAlloc: {
          const std::uint64_t bytes = std::max<std::uint64_t>(event.bytes, 1);
          check_size(bytes);
          if (const std::uint32_t* slot = slots_.find(event.address)) {  // the recording lost the free
            builder_.free(*slot);
            slots_.erase(event.address);
            ++overwritten_;
          } else if (const std::uint32_t* pending = pending_.find(event.address)) {
            builder_.free_completed(*pending);
            pending_.erase(event.address);
            ++overwritten_;
          }
          allocate(event.address, bytes, event.stream.id, event.stack);
          break;
        }
        case HistoryAction::kFreeRequested: {
          const bool completes_now =
              !beginning_.never_completed.contains(i) &&
              (!beginning_.has_free_completed ||
               (i + 1 < entries.size() && entries[i + 1].action == HistoryAction::kFreeCompleted &&
                entries[i + 1].address == event.address));
          free(i, !completes_now);
          if (completes_now && beginning_.has_free_completed) ++i;
          break;
        }
        case HistoryAction::kFreeCompleted:
          if (const std::uint32_t* slot = pending_.find(event.address)) {
            builder_.free_completed(*slot);
            pending_.erase(event.address);
          } else {
            free(i, false);
          }
          break;
        case HistoryAction::kSegmentAlloc:
          act(event);
          break;
        case HistoryAction::kSegmentMap:
          act(event);
          break;
        case HistoryAction::kOom:
          act(event);
          fail(event);
          break;
        case HistoryAction::kSegmentFree:
        case HistoryAction::kSegmentUnmap:
          i = give_back(i, is_emptied);
          break;
        case HistoryAction::kSnapshot:
        case HistoryAction::kOther:
          break;
      }
    }
    empty_caches(entries.size());
    while (next_mark < device_.marks.size()) builder_.mark(device_.marks[next_mark++].second);
  }

  /// What a file of Tenon's says besides: whether the program emptied the cache before this event.
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
    if (next >= device_.events.size()) return false;
    const MemoryEvent& event = device_.events[next];
    if (event.action == HistoryAction::kOom) return true;
    if (!takes_memory(event.action)) return false;
    if (file_.empty_caches) return true;                          // the program's own are all told
    if (recorded_.garbage_collection_threshold > 0) return true;  // collected, not pressed: the allocator all the same
    const std::uint64_t room =
        beginning_.capacity_bytes != 0 ? beginning_.capacity_bytes : std::max(recorded_.peak_reserved_bytes, GiB);
    return reserved_ + event.bytes > room;
  }

  // A run of segment_free is empty_cache() unless the allocator needed the memory for what follows.
  std::size_t give_back(std::size_t i, bool is_emptied) {
    const auto& entries = device_.events;
    std::size_t end = i;
    while (end < entries.size() && gives_memory(entries[end].action)) ++end;
    const bool is_told = file_.empty_caches.has_value() || !is_pytorchs_;
    if (is_pytorchs_ && !is_emptied && is_under_pressure(end)) {
      ++pressed_;
    } else if (!is_told) {
      builder_.empty_cache();
      is_emptied = true;
    }
    const std::uint64_t event = builder_.counted() - (is_emptied ? 1 : 0);
    for (; i < end; ++i) {
      act(entries[i], event);
    }
    return end - 1;
  }

  std::uint32_t allocate(std::uint64_t address, std::uint64_t bytes, std::uint64_t stream, std::uint32_t stack) {
    const std::uint32_t slot = builder_.allocate(bytes, stream);
    slots_.insert(address, slot);
    if (with_stacks_) builder_.trace().stack_of_allocation.push_back(stack);
    if (starts_later_ && builder_.trace().facts.allocations == file_.seeded_blocks) {
      if (builder_.trace().facts.frees == 0) builder_.recording_starts();
      starts_later_ = false;
    }
    return slot;
  }
  void free(std::size_t index, bool deferred) {
    const std::uint64_t address = device_.events[index].address;
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
  void fail(const MemoryEvent& event) {
    FailedRequest failure{.bytes = std::max<std::uint64_t>(event.bytes, 1),
                          .stream = event.stream.id,
                          .reserved_bytes = reserved_,
                          .device_free_bytes = std::min(event.address, kMaxDeviceBytes)};
    if (failed_ < file_.failures.size())
      std::tie(failure.reserved_bytes, failure.device_free_bytes) = file_.failures[failed_];
    ++failed_;
    if (builder_.would_overflow(failure.bytes)) return;  // a size that is nonsense fails everywhere
    builder_.fail(failure);
    if (with_stacks_) builder_.trace().stack_of_allocation.push_back(event.stack);
  }
  void act(const MemoryEvent& event) { act(event, builder_.counted()); }
  void act(const MemoryEvent& event, std::uint64_t counted) {
    if (takes_memory(event.action)) reserved_ += event.bytes;
    if (gives_memory(event.action)) reserved_ -= std::min(reserved_, event.bytes);
    recorded_.actions.push_back({event.action, event.bytes, counted});
    if (event.action == HistoryAction::kSegmentAlloc) recorded_.acquired.push_back({event.bytes, event.address});
  }
  void check_size(std::uint64_t bytes) const {
    if (builder_.would_overflow(bytes)) throw TraceError("the live bytes exceed 2^62");
  }

  Trace finish() {
    Trace& trace = builder_.trace();
    const TraceFacts& facts = trace.facts;
    recorded_.is_whole = beginning_.reserved_bytes == 0 && facts.seeded_blocks == 0;
    const auto note = [&](std::string text) { trace.notes.push_back(std::move(text)); };
    const bool is_state_only = std::ranges::all_of(device_.events, [](const MemoryEvent& event) {
      return event.action == HistoryAction::kSnapshot || event.action == HistoryAction::kOther ||
             event.action == HistoryAction::kOom;
    });
    if (is_state_only) {
      note("the snapshot holds the state only, no history: replaying it allocates what lived at that moment");
    } else if (facts.seeded_blocks != 0) {
      const double share =
          100.0 * static_cast<double>(facts.seeded_bytes) / static_cast<double>(facts.total_requested_bytes);
      char text[200];
      std::snprintf(text, sizeof text,
                    "%llu blocks of %s (%.1f %% of all bytes allocated) lived before the recording began; the replay "
                    "allocates them first",
                    static_cast<unsigned long long>(facts.seeded_blocks), format_bytes(facts.seeded_bytes).c_str(),
                    share);
      note(text);
    }
    if (beginning_.reserved_bytes != 0 && !is_state_only) {
      note(recorded_.actions.empty()
               ? format_bytes(beginning_.reserved_bytes) +
                     " are reserved, and no entry says since when: they were reserved before the recording began, or "
                     "skip_actions left the entries of segments out"
               : format_bytes(beginning_.reserved_bytes) + " were reserved already when the recording began");
    }
    if (!is_state_only && device_.segments.empty() && beginning_.reserved_at_end_bytes != 0)
      note("the policy '" + file_.allocator +
           "' does not show its segments (Allocator::walk), so none are listed; its events are whole, and a replay "
           "needs no more");
    if (facts.deferred_frees != 0)
      note(counted(facts.deferred_frees, "free") +
           " waited for another stream; the replay completes them where the recording did");
    if (failed_ != 0)
      note(counted(failed_, "request") + " ran out of memory in the " +
           (file_.is_replay && file_.failures.empty() ? "replay that wrote this" : "recording"));
    if (pressed_ != 0) note(counted(pressed_, "time") + " the recorded allocator gave segments back to go on");
    if (overwritten_ != 0)
      note(counted(overwritten_, "block was", "blocks were") +
           " allocated over one whose free is missing: the history has gaps");
    if (const auto pooled =
            std::ranges::count_if(device_.segments, [](const Segment& segment) { return segment.pool != 0; });
        pooled != 0)
      note(std::to_string(pooled) + " of " + std::to_string(device_.segments.size()) +
           " segments belong to private pools (CUDA graphs, MemPool); the replay serves every request from one pool");
    if (with_stacks_) {
      trace.stacks = file_.stacks;
      recorded_.final_segments = tiled_segments(device_);
    }
    recorded_.pressed = pressed_;
    if (file_.is_replay) {
      behind_the_replay(trace);
      if (as_replayed_) trace.recorded = std::move(recorded_);
    } else {
      trace.recorded = std::move(recorded_);
    }
    return std::move(builder_).finish();
  }

  /// What is known of the recording that the replay was one of; segments and settings of the file are the replay's.
  void behind_the_replay(Trace& trace) {
    trace.replayed_under = spec_with(file_.allocator, file_.allocator_options);
    for (const auto& [key, value] : file_.recording) trace.header.insert_or_assign(key, value);
    take_recorded_lines(trace);
    add_note(trace, "written by a replay of Tenon under '" + trace.replayed_under +
                        "': segments and settings in it are that replay's, not a recording's");
  }

  const SnapshotDevice& device_;
  const SnapshotBeginning beginning_;
  const SnapshotFile& file_;
  bool with_stacks_;
  bool as_replayed_;
  TraceBuilder builder_;
  RecordedAllocator recorded_;
  IdMap slots_;
  IdMap pending_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> pending_at_start_;
  std::uint64_t reserved_ = 0;  ///< on the way forward
  std::uint64_t overwritten_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t pressed_ = 0;
  std::size_t next_empty_ = 0;
  bool is_pytorchs_ = true;
  bool starts_later_ = false;  ///< the first allocations of the history lived before the recording
};

}  // namespace

std::vector<Trace> read_snapshot(InputFile& input, const ReadOptions& options) {
  const std::string work = "reading " + input.path();
  std::optional<WorkPart> part(std::in_place, work, 0, kFileShare);
  SnapshotFile file = read_snapshot_file(input, options);
  std::erase_if(file.devices,
                [](const SnapshotDevice& device) { return device.events.empty() && device.segments.empty(); });
  std::vector<Trace> traces;
  for (SnapshotDevice& device : file.devices) {
    const double devices = static_cast<double>(file.devices.size());
    const double step = (1 - kFileShare) / devices, from = kFileShare + step * static_cast<double>(traces.size());
    part.emplace(work, from, from + step);
    traces.push_back(Rebuilder(input, device, file.devices.size() > 1, file, options).rebuild());
    device = {};
  }
  if (traces.empty())
    throw TraceError(input.path() + ": the snapshot holds no segments and no history: nothing was allocated");
  return traces;
}

}  // namespace tenon::replay
