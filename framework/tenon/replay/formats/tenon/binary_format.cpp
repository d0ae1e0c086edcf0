// Tenon's own binary histories, as binary_format.h draws them.
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/formats/tenon/event_names.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace tenon::replay {

namespace {

void write_binary(const Trace& trace, const std::string& path) {
  OutputFile file(path);
  const auto& [times, purposes] = trace.columns;
  BinaryTraceWriter out(file, !times.empty() || !purposes.empty());
  for (const auto& [key, value] : trace.header) out.header(key, value);
  if (trace.header.find("name") == trace.header.end()) out.header("name", trace.name);
  for (const auto& [key, value] : recorded_lines(trace)) out.header(key, value);
  const bool has_device_calls = trace.recorded && trace.recorded->has_device_calls;
  const std::vector<DeviceCall> no_actions;
  const std::vector<DeviceCall>& actions = has_device_calls ? trace.recorded->actions : no_actions;
  if (has_device_calls) out.start_of(*trace.recorded);
  std::size_t next_action = 0;
  const auto write_actions = [&](std::uint64_t counted, bool is_end = false) {
    for (; next_action < actions.size() && (is_end || actions[next_action].event <= counted); ++next_action)
      out.device_call(actions[next_action], counted - std::min(counted, actions[next_action].event));
  };
  StartMark start(trace);
  BlockNumbers blocks(trace);
  std::uint64_t allocation = 0;
  std::uint64_t number = 0;
  std::size_t next_failure = 0;
  WorkMeter meter("writing " + path, trace.events.size());
  for (const TraceEvent& event : trace.events) {
    meter.step();
    if (is_counted(event.kind)) {
      write_actions(number);
      if (number < times.size()) out.at(times[number]);
      if (const RecordedOom* const failure = trace.failure_at(number++, next_failure))
        out.next_fails(failure->reserved_bytes, failure->device_free_bytes);
    }
    switch (event.kind) {
      case EventKind::kAllocate: {
        const bool has_stack = allocation < trace.stack_of_allocation.size();
        const StackId stack = has_stack ? trace.stack_of_allocation[allocation] : 0;
        if (allocation < purposes.size()) out.meant_for(purposes[allocation]);
        ++allocation;
        blocks.allocate(event.slot);
        out.allocate(event.bytes, trace.streams[event.stream], trace.stacks.frames_of(stack));
        break;
      }
      case EventKind::kFree:
        out.free(blocks[event.slot], event.deferred);
        break;
      case EventKind::kUse:
        out.use(blocks[event.slot], trace.streams[event.stream]);
        break;
      case EventKind::kEmptyCache:
        out.empty_cache();
        break;
      case EventKind::kMark:
        if (start.is(event, allocation)) {
          out.recording_starts();
        } else {
          out.mark(trace.marks[event.bytes]);
        }
        break;
      case EventKind::kFreeCompleted:
        out.free_completed(blocks[event.slot]);
        break;
    }
  }
  write_actions(number, true);
  out.close();
  file.close();
}

/// Head and checksums.
void mend(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t kHead = sizeof kBinaryMagic;
  if (bytes.size() < kHead) return;
  std::memcpy(bytes.data(), kBinaryMagic, kHead - 1);
  bytes[kHead - 1] = 1;
  for (std::size_t at = kHead; at + 8 <= bytes.size();) {
    std::uint32_t count = 0;
    std::memcpy(&count, &bytes[at], 4);
    if (count > bytes.size() - at - 8) return;
    const auto sum = static_cast<std::uint32_t>(::crc32(0, &bytes[at] + 8, count));
    std::memcpy(&bytes[at + 4], &sum, 4);
    at += 8 + count;
  }
}

}  // namespace

const Format& binary_format() {
  static const Format format{
      .name = "binary",
      .files = "Tenon's binary histories",
      .endings = {".tenon", ".bin"},
      .written_as = "binary",
      .likeness =
          [](std::string_view head) { return head.starts_with(kBinaryMagic) ? Likeness::kCertain : Likeness::kNone; },
      .read = [](InputFile& input, const ReadOptions& options) { return only(read_binary(input, options)); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_binary(trace, path); },
      .mend = mend};
  return format;
}

}  // namespace tenon::replay
