// Pictures of a running device for other people's viewers: Chrome counters and folded stacks.
// Declared in snapshot_image.h.
#include <tenon/replay/formats/folded_format.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/pytorch/chrome_writer.h>
#include <tenon/replay/formats/pytorch/snapshot_image.h>
#include <tenon/replay/trace/long_work.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon::replay {

namespace {

/// What lived and what was reserved before the first entry: the end, walked back.
struct Before {
  std::uint64_t live = 0;
  std::uint64_t reserved = 0;
};
Before before_history(const SnapshotImage& image) {
  Before before;
  for (const Segment& segment : image.segments) {
    before.reserved += segment.bytes;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kActive) before.live += block.requested_bytes;
    }
  }
  for (std::size_t i = image.events.size(); i-- > 0;) {
    const HistoryEvent& event = image.events[i];
    switch (event.action) {
      case HistoryAction::kAlloc:
        before.live -= std::min(before.live, event.bytes);
        break;
      case HistoryAction::kFreeRequested:
        before.live += event.bytes;
        break;
      case HistoryAction::kSegmentAlloc:
      case HistoryAction::kSegmentMap:
        before.reserved -= std::min(before.reserved, event.bytes);
        break;
      case HistoryAction::kSegmentFree:
      case HistoryAction::kSegmentUnmap:
        before.reserved += event.bytes;
        break;
      default:
        break;
    }
  }
  return before;
}

/// Moves the sums by one event; true when they changed.
bool apply(const HistoryEvent& event, Before& now) {
  switch (event.action) {
    case HistoryAction::kAlloc:
      now.live += event.bytes;
      return true;
    case HistoryAction::kFreeRequested:
      now.live -= std::min(now.live, event.bytes);
      return true;
    case HistoryAction::kSegmentAlloc:
    case HistoryAction::kSegmentMap:
      now.reserved += event.bytes;
      return true;
    case HistoryAction::kSegmentFree:
    case HistoryAction::kSegmentUnmap:
      now.reserved -= std::min(now.reserved, event.bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace

void write_chrome_counters(const SnapshotImage& image, const std::string& path) {
  OutputFile out(path);
  out.write("{\"traceEvents\":[\n");
  const char* separator = "";
  const auto instant = [&](std::string_view name, std::int64_t time_us) {
    out.write(separator + chrome_instant(name, static_cast<std::uint64_t>(time_us)));
    separator = ",\n";
  };
  Before now = before_history(image);
  std::size_t next_mark = 0;
  WorkMeter meter("writing " + path, image.events.size());
  for (const HistoryEvent& event : image.events) {
    meter.step();
    for (; next_mark < image.marks.size() && image.marks[next_mark].first <= event.time_us; ++next_mark)
      instant(image.marks[next_mark].second, image.marks[next_mark].first);
    if (event.action == HistoryAction::kOom) instant("out of memory", event.time_us);
    if (!apply(event, now)) continue;
    out.write(separator);
    separator = ",\n";
    out.write(R"({"ph":"C","pid":1,"name":"memory","ts":)");
    out.number(static_cast<std::uint64_t>(event.time_us));
    out.write(R"(,"args":{"live bytes":)");
    out.number(now.live);
    out.write(R"(,"reserved bytes":)");
    out.number(now.reserved);
    out.write("}}");
  }
  for (; next_mark < image.marks.size(); ++next_mark)
    instant(image.marks[next_mark].second, image.marks[next_mark].first);
  out.write("\n],\"displayTimeUnit\":\"ms\"}\n");
  out.close();
}

void write_folded(const SnapshotImage& image, const std::string& path) {
  struct Live {
    std::uint64_t bytes = 0;
    std::uint32_t stack = 0;
  };
  // Once to find the peak, once to stop there.
  Before now = before_history(image);
  std::uint64_t peak = now.live;
  std::size_t peak_entry = 0;
  for (std::size_t i = 0; i < image.events.size(); ++i) {
    apply(image.events[i], now);
    if (now.live > peak) {
      peak = now.live;
      peak_entry = i + 1;
    }
  }
  std::unordered_map<std::uint64_t, Live> live;
  // What lived before the history: at the end still there, or freed in it before any allocation of its address.
  for (const Segment& segment : image.segments) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kActive) live[block.address] = {block.requested_bytes, block.stack};
    }
  }
  for (std::size_t i = image.events.size(); i-- > 0;) {
    const HistoryEvent& event = image.events[i];
    if (event.action == HistoryAction::kAlloc) live.erase(event.address);
    if (event.action == HistoryAction::kFreeRequested) live[event.address] = {event.bytes, 0};
  }
  for (std::size_t i = 0; i < peak_entry; ++i) {
    const HistoryEvent& event = image.events[i];
    if (event.action == HistoryAction::kAlloc) live[event.address] = {event.bytes, event.stack};
    if (event.action == HistoryAction::kFreeRequested) live.erase(event.address);
  }
  std::map<std::string, std::uint64_t> by_stack;
  for (const auto& [address, block] : live) by_stack[folded_stack(image.stacks.frames_of(block.stack))] += block.bytes;
  OutputFile out(path);
  for (const auto& [line, bytes] : by_stack) {
    out.write(line + " ");
    out.number(bytes);
    out.write("\n");
  }
  out.close();
}

}  // namespace tenon::replay
