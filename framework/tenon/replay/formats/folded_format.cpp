// Folded stacks, the input of flame graphs: written, never read.
#include <tenon/replay/formats/folded_format.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/io/utf8.h>
#include <tenon/replay/formats/pytorch/snapshot_image.h>

#include <algorithm>
#include <map>

namespace tenon::replay {

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

namespace {

void write_folded(const Trace& trace, const std::string& path) {
  if (trace.stack_of_allocation.empty()) {
    throw Error(
        trace.path +
        ": the history has no call stacks; record with torch.cuda.memory._record_memory_history(stacks=\"python\")");
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
