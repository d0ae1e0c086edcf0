// The two CSV forms. Neither has a place for marks, uses on other streams or emptied caches: those are left out.
#include <tenon/replay/formats/output_file.h>
#include <tenon/replay/formats/writers.h>

#include <fmt/format.h>

namespace tenon::replay {

namespace {

/// An address for each slot that no other slot shares: pointers come back once their block is gone, as RMM's do.
std::uint64_t pointer_of(std::uint32_t slot) { return 0x7f0000000000 + std::uint64_t{slot} * 256; }

}  // namespace

void write_rmm(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  out.write("Thread,Time,Action,Pointer,Size,Stream\n");
  std::vector<std::uint64_t> stream_of_slot(trace.slot_count);
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  std::uint64_t failed_event = kNoEvent - 1;
  for (const TraceEvent& entry : trace.events) {
    const bool has_failed = is_counted(entry.kind) && trace.failure_at(event, next_failure) != nullptr;
    if (has_failed) failed_event = event;
    const bool is_allocation = entry.kind == EventKind::kAllocate;
    if (is_allocation) stream_of_slot[entry.slot] = trace.streams[entry.stream];
    const bool is_its_free = entry.kind == EventKind::kFree && event == failed_event + 1;
    if ((is_allocation || entry.kind == EventKind::kFree) && !is_its_free) {
      // One microsecond is one event.
      out.write(fmt::format("1,{:02}:{:02}:{:02}.{:06},{},{:#x},{},{:#x}\n", event / 3600000000 % 24,
                            event / 60000000 % 60, event / 1000000 % 60, event % 1000000,
                            has_failed      ? "allocate failure"
                            : is_allocation ? "allocate"
                                            : "free",
                            has_failed ? 0 : pointer_of(entry.slot), entry.bytes, stream_of_slot[entry.slot]));
    }
    if (is_counted(entry.kind)) ++event;
  }
  out.close();
}

void write_minimalloc(const Trace& trace, const std::string& path) {
  struct Buffer {
    std::uint64_t id = 0;
    std::uint64_t lower = 0;
    std::uint64_t bytes = 0;
  };
  OutputFile out(path);
  out.write("id,lower,upper,size\n");
  std::vector<Buffer> live(trace.slot_count);
  std::uint64_t event = 0;
  std::uint64_t next_id = 0;
  const auto end = [&](Buffer& buffer, std::uint64_t upper) {
    out.write(fmt::format("{},{},{},{}\n", buffer.id, buffer.lower, upper, buffer.bytes));
    buffer.bytes = 0;
  };
  for (const TraceEvent& entry : trace.events) {
    if (entry.kind == EventKind::kAllocate) live[entry.slot] = {next_id++, event, entry.bytes};
    if (entry.kind == EventKind::kFree) end(live[entry.slot], event);
    if (is_counted(entry.kind)) ++event;
  }
  for (Buffer& buffer : live) {
    if (buffer.bytes != 0) end(buffer, event);
  }
  out.close();
}

}  // namespace tenon::replay
