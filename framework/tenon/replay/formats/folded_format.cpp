// Folded stacks, the input of flame graphs: written, never read.
#include <tenon/core/text/utf8.h>
#include <tenon/replay/formats/folded_format.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/image/image_memory.h>
#include <tenon/replay/formats/io/output_file.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace tenon::replay {

namespace {

/// One stack in that form, outermost first; "[no stack]" for an empty one.
std::string folded_stack(const std::vector<StackFrame>& frames) {
  std::string line;
  for (std::size_t i = frames.size(); i-- > 0;) {
    const StackFrame& frame = frames[i];
    std::string name = frame.name + " (" + frame.file.substr(frame.file.find_last_of('/') + 1) + ":" +
                       std::to_string(frame.line) + ")";
    std::ranges::replace(name, ';', ',');
    name = valid_utf8(name);
    std::ranges::replace(name, '\n', ' ');
    std::ranges::replace(name, '\r', ' ');
    line += (line.empty() ? "" : ";") + name;
  }
  return line.empty() ? "[no stack]" : line;
}

void write_folded(const Trace& trace, const std::string& path) {
  // A form that has room for stacks may hold none: a recording of `tenon run` is one.
  if (std::ranges::all_of(trace.stack_of_allocation, [](std::uint32_t stack) { return stack == 0; })) {
    throw Error(trace.path +
                ": the history has no call stacks; record with "
                "torch.cuda.memory._record_memory_history(stacks=\"python\"), or with `tenon run --record folded`");
  }
  std::vector<std::uint32_t> stack_of_slot(trace.slot_count);
  std::map<std::uint32_t, std::uint64_t> live;
  std::uint64_t event = 0;
  std::uint64_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == EventKind::kAllocate) {
      const std::uint32_t stack = trace.stack_of_allocation[allocation++];
      stack_of_slot[entry.slot] = stack;
      live[stack] += entry.bytes;
    } else if (entry.kind == EventKind::kFree) {
      live[stack_of_slot[entry.slot]] -= entry.bytes;
    }
    if (event++ == trace.facts.peak_event) break;
  }
  OutputFile out(path);
  for (const auto& [stack, bytes] : live) {
    if (bytes == 0) continue;
    out.write(folded_stack(trace.stacks.frames_of(stack)) + " ");
    out.number(bytes);
    out.write("\n");
  }
  out.close();
}

}  // namespace

void write_folded(const SnapshotImage& image, const std::string& path) {
  struct Live {
    std::uint64_t bytes = 0;
    std::uint32_t stack = 0;
  };
  // Once to find the peak, once to stop there.
  ImageMemory now = memory_before_history(image);
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

const Format& folded_format() {
  static const Format format{
      .name = "folded",
      .files = "folded stacks",
      .endings = {".folded"},
      .written_as = "flame graph",
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_folded(trace, path); },
      .write_image = write_folded};
  return format;
}

}  // namespace tenon::replay
