// Text, binary, Chrome counters and folded stacks.
#include <tenon/replay/formats/binary_format.h>
#include <tenon/replay/formats/output_file.h>
#include <tenon/replay/formats/utf8.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <algorithm>
#include <map>

namespace tenon::replay {

namespace {

/// Number of the allocation that holds each slot: what text and binary files call a block.
class Names {
 public:
  explicit Names(const Trace& trace) : of_slot_(trace.slot_count) {}
  std::uint64_t allocate(std::uint32_t slot) { return of_slot_[slot] = next_++; }
  std::uint64_t operator[](std::uint32_t slot) const { return of_slot_[slot]; }

 private:
  std::vector<std::uint64_t> of_slot_;
  std::uint64_t next_ = 0;
};

std::string header_value(const Trace& trace, const std::string& key) {
  const auto it = trace.header.find(key);
  return it == trace.header.end() ? std::string() : it->second;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

constexpr char kStarts[] = "recording starts";

/// Tells the mark that ends the seeds from others of its name.
class StartMark {
 public:
  explicit StartMark(const Trace& trace) : trace_(trace), is_open_(trace.facts.seeded_blocks != 0) {}
  bool is(const TraceEvent& event, std::uint64_t allocations) {
    const bool is_it = is_open_ && allocations == trace_.facts.seeded_blocks && trace_.marks[event.bytes] == kStarts;
    if (is_it) is_open_ = false;
    return is_it;
  }

 private:
  const Trace& trace_;
  bool is_open_;
};

}  // namespace

std::string text_mark(std::string_view name) {
  const bool has_meaning = name.starts_with("tenon:") || name == kStarts;
  return (has_meaning ? "m tenon:mark " : "m ") + one_line(std::string(name));
}

void write_text(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  const auto header = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) out.write("# " + key + ": " + one_line(value) + "\n");
  };
  const TraceFacts& facts = trace.facts;
  header("name", header_value(trace, "name").empty() ? trace.name : header_value(trace, "name"));
  for (const auto& [key, value] : trace.header) {
    static constexpr std::string_view kOurs[] = {"name",
                                                 "events",
                                                 "allocs",
                                                 "frees",
                                                 "peak_live_bytes",
                                                 "end_live_bytes",
                                                 "total_alloc_bytes",
                                                 "max_size",
                                                 "pre_existing",
                                                 "stream_ids",
                                                 "source_format"};
    if (std::ranges::find(kOurs, key) == std::end(kOurs)) header(one_line(key), value);
  }
  header("source_format", trace.format);
  header("pre_existing", std::to_string(facts.seeded_blocks));
  header("events", std::to_string(facts.allocations + facts.frees));
  header("allocs", std::to_string(facts.allocations));
  header("frees", std::to_string(facts.frees));
  header("peak_live_bytes", std::to_string(facts.peak_requested_bytes));
  header("end_live_bytes", std::to_string(facts.end_live_bytes));
  header("total_alloc_bytes", std::to_string(facts.total_requested_bytes));
  header("max_size", std::to_string(facts.max_request_bytes));
  for (const auto& [key, value] : recorded_lines(trace)) header(key, value);
  // Handles are pointers as a rule: numbered in order of appearance then.
  const bool are_small = std::ranges::all_of(trace.streams, [](std::uint64_t stream) { return stream < 65536; });
  if (!are_small) {
    std::string ids;
    for (const std::uint64_t stream : trace.streams) ids += (ids.empty() ? "" : " ") + std::to_string(stream);
    header("stream_ids", ids);
  }
  const auto stream = [&](std::uint16_t index) { return are_small ? trace.streams[index] : std::uint64_t{index}; };

  Names names(trace);
  StartMark start(trace);
  std::uint64_t allocations = 0;
  std::uint64_t number = 0;
  std::size_t next_failure = 0;
  for (const TraceEvent& event : trace.events) {
    const RecordedOom* failure = nullptr;
    if (is_counted(event.kind)) failure = trace.failure_at(number++, next_failure);
    switch (event.kind) {
      case EventKind::kAllocate:
        ++allocations;
        names.allocate(event.slot);
        if (failure != nullptr) {  // a mark for others, who see a block that is freed at once
          out.write("m tenon:failed ");
          out.number(names[event.slot]);
          out.put(' ');
          out.number(failure->reserved_bytes);
          out.put(' ');
          out.number(failure->device_free_bytes);
          out.put('\n');
        }
        out.write("a ");
        out.number(names[event.slot]);
        out.put(' ');
        out.number(event.bytes);
        out.put(' ');
        out.number(stream(event.stream));
        break;
      case EventKind::kFree:
        if (event.deferred) {
          out.write("m tenon:deferred ");
          out.number(names[event.slot]);
          out.put('\n');
        }
        out.write("f ");
        out.number(names[event.slot]);
        break;
      case EventKind::kUse:
        out.write("u ");
        out.number(names[event.slot]);
        out.put(' ');
        out.number(stream(event.stream));
        break;
      case EventKind::kEmptyCache:
        out.write("e");
        break;
      case EventKind::kMark:
        out.write(start.is(event, allocations) ? std::string("m ") + kStarts : text_mark(trace.marks[event.bytes]));
        break;
      case EventKind::kFreeCompleted:
        out.write("m tenon:completed ");
        out.number(names[event.slot]);
        break;
    }
    out.write("\n");
  }
  out.close();
}

void write_binary(const Trace& trace, const std::string& path) {
  OutputFile file(path);
  BinaryTraceWriter out(file);
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
  Names names(trace);
  std::uint64_t allocation = 0;
  std::uint64_t number = 0;
  std::size_t next_failure = 0;
  std::vector<StackFrame> stack;
  for (const TraceEvent& event : trace.events) {
    if (is_counted(event.kind)) {
      write_actions(number);
      if (const RecordedOom* const failure = trace.failure_at(number++, next_failure))
        out.next_fails(failure->reserved_bytes, failure->device_free_bytes);
    }
    switch (event.kind) {
      case EventKind::kAllocate: {
        stack.clear();
        if (allocation < trace.stacks.of_allocation.size()) {
          for (const std::uint32_t frame : trace.stacks.stacks[trace.stacks.of_allocation[allocation]])
            stack.push_back(trace.stacks.frames[frame]);
        }
        ++allocation;
        names.allocate(event.slot);
        out.allocate(event.bytes, trace.streams[event.stream], stack);
        break;
      }
      case EventKind::kFree:
        out.free(names[event.slot], event.deferred);
        break;
      case EventKind::kUse:
        out.use(names[event.slot], trace.streams[event.stream]);
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
        out.free_completed(names[event.slot]);
        break;
    }
  }
  write_actions(number, true);
  out.close();
  file.close();
}

std::string chrome_instant(std::string_view name, std::uint64_t time_us) {
  return R"({"ph":"i","s":"p","pid":1,"tid":1,"name":)" + quoted_json(name) + ",\"ts\":" + std::to_string(time_us) +
         "}";
}

void write_chrome_counters(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  out.write("{\"traceEvents\":[\n");
  std::uint64_t live = 0;
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  const char* separator = "";
  for (const TraceEvent& entry : trace.events) {
    if (entry.kind == EventKind::kMark) {
      out.write(separator + chrome_instant(trace.marks[entry.bytes], event));
      separator = ",\n";
      continue;
    }
    if (!is_counted(entry.kind)) continue;
    if (trace.failure_at(event, next_failure) != nullptr) {
      out.write(separator);
      out.write(chrome_instant("out of memory", event));
      separator = ",\n";
    }
    const std::uint64_t before = live;
    if (entry.kind == EventKind::kAllocate) live += entry.bytes;
    if (entry.kind == EventKind::kFree) live -= entry.bytes;
    if (live != before || event == 0) {
      out.write(std::string(separator) + R"({"ph":"C","pid":1,"name":"live memory","ts":)");
      out.number(event);
      out.write(",\"args\":{\"bytes\":");
      out.number(live);
      out.write("}}");
      separator = ",\n";
    }
    ++event;
  }
  out.write("\n],\"displayTimeUnit\":\"ms\"}\n");
  out.close();
}

std::string folded_stack(const std::vector<StackFrame>& frames) {
  std::string line;
  for (std::size_t i = frames.size(); i-- > 0;) {
    const StackFrame& frame = frames[i];
    std::string name = frame.name + " (" + frame.file.substr(frame.file.find_last_of('/') + 1) + ":" +
                       std::to_string(frame.line) + ")";
    std::ranges::replace(name, ';', ',');
    name = valid_utf8(name);
    line += (line.empty() ? "" : ";") + one_line(name);
  }
  return line.empty() ? "[no stack]" : line;
}

void write_folded(const Trace& trace, const std::string& path) {
  if (trace.stacks.of_allocation.empty()) {
    throw Error(
        trace.path +
        ": the trace has no call stacks; record with torch.cuda.memory._record_memory_history(stacks=\"python\")");
  }
  std::vector<std::uint32_t> stack_of_slot(trace.slot_count);
  std::map<std::uint32_t, std::uint64_t> live;
  std::uint64_t event = 0;
  std::uint64_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == EventKind::kAllocate) {
      const std::uint32_t stack = trace.stacks.of_allocation[allocation++];
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
    std::vector<StackFrame> frames;
    for (const std::uint32_t frame : trace.stacks.stacks[stack]) frames.push_back(trace.stacks.frames[frame]);
    out.write(folded_stack(frames) + " ");
    out.number(bytes);
    out.write("\n");
  }
  out.close();
}

}  // namespace tenon::replay
