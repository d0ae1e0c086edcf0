// Slices and differences.
#include <tenon/core/options.h>
#include <tenon/replay/trace_builder.h>
#include <tenon/replay/trace_tools.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::string describe(const Trace& trace, const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::kAllocate:
      return fmt::format("a of {} bytes on stream {}", event.bytes, trace.streams[event.stream]);
    case EventKind::kFree:
      return fmt::format("f of {} bytes", event.bytes);
    case EventKind::kUse:
      return fmt::format("u on stream {}", trace.streams[event.stream]);
    case EventKind::kEmptyCache:
      return "e";
    default:
      return "a mark";
  }
}

}  // namespace

Trace slice(const Trace& trace, std::uint64_t from, std::uint64_t to) {
  TraceBuilder builder(trace.path);
  builder.trace().format = trace.format;
  constexpr std::uint32_t kNone = 0xffffffff;
  struct Live {
    std::uint64_t bytes = 0;
    std::uint64_t stream = 0;
    std::uint64_t order = 0;
    bool is_live = false;
  };
  std::vector<Live> live(trace.slot_count);
  std::vector<std::uint32_t> slot_of(trace.slot_count, kNone);
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  std::size_t i = 0;
  for (; i < trace.events.size() && event < from; ++i) {
    const TraceEvent& entry = trace.events[i];
    if (is_counted(entry.kind)) static_cast<void>(trace.failure_at(event, next_failure));
    if (entry.kind == EventKind::kAllocate) live[entry.slot] = {entry.bytes, trace.streams[entry.stream], event, true};
    if (entry.kind == EventKind::kFree) live[entry.slot].is_live = false;
    if (is_counted(entry.kind)) ++event;
  }
  std::vector<std::uint32_t> seeds;
  for (std::uint32_t slot = 0; slot < trace.slot_count; ++slot) {
    if (live[slot].is_live) seeds.push_back(slot);
  }
  std::ranges::sort(seeds, {}, [&](std::uint32_t slot) { return live[slot].order; });
  for (const std::uint32_t slot : seeds) slot_of[slot] = builder.allocate(live[slot].bytes, live[slot].stream);
  builder.recording_starts();
  for (; i < trace.events.size() && event < to; ++i) {
    const TraceEvent& entry = trace.events[i];
    if (is_counted(entry.kind)) {
      if (const RecordedOom* const failure = trace.failure_at(event, next_failure)) builder.next_fails(*failure);
      ++event;
    }
    switch (entry.kind) {
      case EventKind::kAllocate:
        slot_of[entry.slot] = builder.allocate(entry.bytes, trace.streams[entry.stream]);
        break;
      case EventKind::kFree:
        builder.free(slot_of[entry.slot], entry.deferred);
        break;
      case EventKind::kUse:
        builder.use(slot_of[entry.slot], trace.streams[entry.stream]);
        break;
      case EventKind::kEmptyCache:
        builder.empty_cache();
        break;
      case EventKind::kMark:
        builder.mark(trace.marks[entry.bytes]);
        break;
      case EventKind::kFreeCompleted:  // of a block that was freed before the cut: it is not here
        if (slot_of[entry.slot] != kNone) builder.free_completed(slot_of[entry.slot]);
        break;
    }
    if (entry.kind == EventKind::kFreeCompleted || (entry.kind == EventKind::kFree && !entry.deferred))
      slot_of[entry.slot] = kNone;
  }
  return std::move(builder).finish();
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

std::string format_of_name(const std::string& path) {
  std::string name = path;
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const auto& [ending, format] : {std::pair<std::string_view, const char*>{".trace", "text"},
                                       {".txt", "text"},
                                       {".tenon", "binary"},
                                       {".bin", "binary"},
                                       {".pickle", "snapshot"},
                                       {".pkl", "snapshot"},
                                       {".json", "chrome"},
                                       {".folded", "folded"},
                                       {".csv", "rmm"}}) {
    if (name.ends_with(ending)) return format;
  }
  throw ConfigError(
      fmt::format("{}: the ending says no format; .trace (text), .tenon (binary), .pickle (PyTorch snapshot), .json "
                  "(Chrome counters), .folded "
                  "(flame graph) and .csv (RMM log) do, each also with .gz; or use --to",
                  path));
}

}  // namespace tenon::replay
