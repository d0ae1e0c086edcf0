// Slices and differences.
#include <tenon/core/options.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/results/trust.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::string describe(const Trace& trace, const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::kAllocate:
      return fmt::format("a of {} bytes on stream {}", event.bytes, trace.streams[event.stream]);
    case EventKind::kFree:
      return fmt::format("f of {} bytes{}", event.bytes, event.deferred ? ", which waits for a stream" : "");
    case EventKind::kUse:
      return fmt::format("u on stream {}", trace.streams[event.stream]);
    case EventKind::kEmptyCache:
      return "e";
    default:
      return "a mark";
  }
}

}  // namespace

namespace {

/// The recording that a part was cut from: its settings, and what was reserved over the part as far as that is known.
RecordedAllocator recorded_part(const Trace& trace, std::uint64_t from, std::uint64_t to) {
  const bool is_start = from <= trace.facts.seeded_blocks;
  RecordedAllocator part = *trace.recorded;
  if (is_start && to >= trace.facts.events) return part;
  if (!part.has_device_calls) {
    part.peak_reserved_bytes = part.reserved_bytes = 0;
    if (!is_start) part.reserved_at_start_bytes = 0;
    part.is_whole &= is_start;
    return part;
  }
  std::uint64_t reserved = part.reserved_bytes;
  for (auto action = part.actions.rbegin(); action != part.actions.rend(); ++action) {
    if (takes_memory(action->action)) reserved -= std::min(reserved, action->bytes);
    if (gives_memory(action->action)) reserved += action->bytes;
  }
  std::vector<DeviceCall> kept;
  std::uint64_t at_cut = reserved;
  part.peak_reserved_bytes = 0;
  for (const DeviceCall& action : part.actions) {
    if (action.event >= to) break;
    if (takes_memory(action.action)) reserved += action.bytes;
    if (gives_memory(action.action)) reserved -= std::min(reserved, action.bytes);
    if (action.event < from && !is_start) {
      at_cut = reserved;
    } else {
      part.peak_reserved_bytes = std::max(part.peak_reserved_bytes, reserved);
      kept.push_back(action);
    }
  }
  part.reserved_bytes = reserved;
  part.peak_reserved_bytes = std::max(part.peak_reserved_bytes, at_cut);
  part.actions = std::move(kept);
  if (is_start) return part;
  // Where the blocks lay at the cut is not known: nothing to hold device calls against.
  part.has_device_calls = part.is_whole = false;
  part.actions.clear();
  part.initial_segments.clear();
  part.seed_addresses.clear();
  part.reserved_at_start_bytes = at_cut;
  return part;
}

void keep_purpose(const Trace& trace, std::uint64_t allocation, TraceBuilder& builder) {
  if (allocation < trace.columns.purposes.size()) builder.meant_for(trace.columns.purposes[allocation]);
}

/// What is there at a cut: blocks that live, and those whose free still waits.
class AtTheCut {
 public:
  explicit AtTheCut(const Trace& trace) : trace_(trace), blocks_(std::max<std::uint32_t>(1, trace.slot_count)) {}

  void pass(const TraceEvent& entry, std::uint64_t event) {
    Held& block = blocks_[entry.slot];
    switch (entry.kind) {
      case EventKind::kAllocate:
        block = {.bytes = entry.bytes,
                 .stream = trace_.streams[entry.stream],
                 .allocated = event,
                 .allocation = allocations_++,
                 .is_held = true};
        break;
      case EventKind::kFree:
        block.is_held = block.is_pending = entry.deferred;
        block.freed = event;
        break;
      case EventKind::kFreeCompleted:
        block.is_held = false;
        break;
      case EventKind::kUse:
        uses_.push_back({event, entry.slot, trace_.streams[entry.stream]});
        break;
      default:
        break;
    }
  }
  std::uint64_t allocations() const { return allocations_; }
  /// As blocks from before the recording; `slot_of` receives their slots in the new trace.
  void put(TraceBuilder& builder, std::vector<std::uint32_t>& slot_of) const {
    std::vector<std::uint32_t> held, pending;
    for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
      if (blocks_[slot].is_held) held.push_back(slot);
      if (blocks_[slot].is_held && blocks_[slot].is_pending) pending.push_back(slot);
    }
    std::ranges::sort(held, {}, [&](std::uint32_t slot) { return blocks_[slot].allocated; });
    std::ranges::sort(pending, {}, [&](std::uint32_t slot) { return blocks_[slot].freed; });
    for (const std::uint32_t slot : held) {
      keep_purpose(trace_, blocks_[slot].allocation, builder);
      slot_of[slot] = builder.allocate(blocks_[slot].bytes, blocks_[slot].stream);
    }
    builder.recording_starts();
    for (const Use& use : uses_) {
      const Held& block = blocks_[use.slot];
      if (block.is_held && block.allocated < use.event) builder.use(slot_of[use.slot], use.stream);
    }
    for (const std::uint32_t slot : pending) builder.free(slot_of[slot], true);
  }

 private:
  struct Held {
    std::uint64_t bytes = 0;
    std::uint64_t stream = 0;
    std::uint64_t allocated = 0, freed = 0;  ///< events
    std::uint64_t allocation = 0;
    bool is_held = false;
    bool is_pending = false;
  };
  struct Use {
    std::uint64_t event = 0;
    std::uint32_t slot = 0;
    std::uint64_t stream = 0;
  };
  const Trace& trace_;
  std::vector<Held> blocks_;
  std::vector<Use> uses_;
  std::uint64_t allocations_ = 0;
};

}  // namespace

std::uint64_t outside_requests(const Trace& trace, std::uint64_t event) {
  const auto failed =
      std::ranges::lower_bound(trace.ooms, event, {}, [](const RecordedOom& oom) { return oom.event + 1; });
  return failed != trace.ooms.end() && failed->event + 1 == event ? failed->event : event;
}

Trace slice(const Trace& trace, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint32_t kNone = 0xffffffff;
  TraceBuilder builder(trace.path);
  from = outside_requests(trace, from);
  to = outside_requests(trace, to);
  // What lived before the recording did so before every part of it.
  const std::uint64_t seeds = trace.facts.seeded_blocks;
  const std::uint64_t cut = std::min(std::max(from, seeds), to);
  AtTheCut state(trace);
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  std::size_t i = 0;
  for (; i < trace.events.size() && event < cut; ++i) {
    const TraceEvent& entry = trace.events[i];
    state.pass(entry, event);
    if (!is_counted(entry.kind)) continue;
    static_cast<void>(trace.failure_at(event, next_failure));
    ++event;
  }
  std::uint64_t allocation = state.allocations();
  std::vector<std::uint32_t> slot_of(trace.slot_count, kNone);
  state.put(builder, slot_of);
  for (; i < trace.events.size() && event < to; ++i) {
    const TraceEvent& entry = trace.events[i];
    const bool is_at_seeds = event == seeds && seeds != 0;
    if (is_counted(entry.kind)) {
      if (event < trace.columns.times_us.size()) builder.at(trace.columns.times_us[event]);
      if (const RecordedOom* const failure = trace.failure_at(event, next_failure)) builder.next_fails(*failure);
      ++event;
    }
    if (entry.kind == EventKind::kAllocate) keep_purpose(trace, allocation++, builder);
    const bool has_begun = is_at_seeds && entry.kind == EventKind::kMark &&  // put() has said so
                           trace.marks[entry.bytes] == text_marks::kRecordingStarts;
    const bool has_completed = entry.kind == EventKind::kFreeCompleted && slot_of[entry.slot] == kNone;
    if (!has_begun && !has_completed) builder.repeat(trace, entry, slot_of);
    if (entry.kind == EventKind::kFreeCompleted || (entry.kind == EventKind::kFree && !entry.deferred))
      slot_of[entry.slot] = kNone;
  }
  Trace part = std::move(builder).finish();
  part.format = trace.format;
  part.sizes_are_rounded = trace.sizes_are_rounded;
  part.replayed_under = trace.replayed_under;
  part.facts.unplaced_bytes = std::min(trace.facts.unplaced_bytes, part.facts.seeded_bytes);
  for (const char* key : {"allocator", "allocator_options"}) {
    if (const auto found = trace.header.find(key); found != trace.header.end()) part.header.insert(*found);
  }
  if (trace.recorded) part.recorded = recorded_part(trace, cut, to);
  // The figures that speak against the whole need not show in a part of it.
  part.distrust = trace.distrust.empty() ? judge(trace).why_refused : trace.distrust;
  return part;
}

std::uint64_t event_of_mark(const Trace& trace, const std::string& name) {
  std::uint64_t event = 0;
  for (const TraceEvent& entry : trace.events) {
    if (entry.kind == EventKind::kMark && trace.marks[entry.bytes] == name) return event;
    if (is_counted(entry.kind)) ++event;
  }
  const std::string near = nearest_name(name, trace.marks);
  std::string known = "; it has none";
  if (!trace.marks.empty()) known = fmt::format("; it has {}", fmt::join(trace.marks, ", "));
  if (!near.empty()) known = "; did you mean \"" + near + "\"?";
  throw ConfigError(fmt::format("{} has no mark \"{}\"{}", trace.path, name, known));
}

TraceDifference difference(const Trace& a, const Trace& b) {
  TraceDifference result;
  const auto skip = [](const Trace& trace, std::size_t& i) {
    while (i < trace.events.size() && !is_counted(trace.events[i].kind)) ++i;
    return i < trace.events.size();
  };
  std::size_t i = 0, j = 0;
  for (std::uint64_t event = 0;; ++event, ++i, ++j) {
    const bool has_a = skip(a, i);
    const bool has_b = skip(b, j);
    if (!has_a && !has_b) break;
    if (has_a != has_b) {
      result.first_event = event;
      result.what = fmt::format("{} ends, {} goes on with {}", has_a ? b.name : a.name, has_a ? a.name : b.name,
                                has_a ? describe(a, a.events[i]) : describe(b, b.events[j]));
      return result;
    }
    const TraceEvent& x = a.events[i];
    const TraceEvent& y = b.events[j];
    const bool has_stream = x.kind == EventKind::kAllocate || x.kind == EventKind::kUse;
    const bool same = x.kind == y.kind && x.bytes == y.bytes && x.slot == y.slot && x.deferred == y.deferred &&
                      (!has_stream || a.streams[x.stream] == b.streams[y.stream]);
    if (!same) {
      result.first_event = event;
      result.what = fmt::format("{} against {}{}", describe(a, x), describe(b, y),
                                x.kind == y.kind && x.bytes == y.bytes && x.slot != y.slot ? " (another block)" : "");
      return result;
    }
  }
  result.are_equal = true;
  return result;
}

}  // namespace tenon::replay
