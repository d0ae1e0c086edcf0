// Static problems of minimalloc and its like: id,lower,upper,size, time in events. What is never freed ends with the
// history.
#include <tenon/core/text/counted.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/csv_table.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/minimalloc_problem.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

Likeness likeness_to_minimalloc(std::string_view head) {
  const std::string header = csv_header(head);
  const auto has = [&](const char* word) { return header.find(word) != std::string::npos; };
  const bool has_bounds = has("lower") || has("start") || has("begin");
  return has_bounds && has("size") && has(",") ? Likeness::kCertain : Likeness::kNone;
}

Trace read_minimalloc(InputFile& input) {
  const std::vector<packing::Buffer> buffers = read_minimalloc_problem(input).buffers;
  struct Moment {
    std::int64_t time;
    std::uint32_t buffer;
    bool is_free;
  };
  std::vector<Moment> moments;
  std::uint64_t empty = 0;
  std::uint64_t with_gaps = 0;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].gaps.empty()) ++with_gaps;
    if (buffers[i].size == 0) {
      ++empty;
      continue;
    }
    moments.push_back({buffers[i].lower, i, false});
    moments.push_back({buffers[i].upper, i, true});
  }
  // Lives are half open: what ends at t is gone before what starts at t.
  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.is_free != b.is_free) return a.is_free;
    return a.buffer < b.buffer;
  });
  TraceBuilder builder(input.path());
  builder.trace().format = "minimalloc";
  std::vector<std::uint32_t> slots(buffers.size());
  for (const Moment& moment : moments) {
    const std::uint64_t bytes = buffers[moment.buffer].size;
    if (moment.is_free) {
      builder.free(slots[moment.buffer]);
    } else {
      if (builder.would_overflow(bytes)) throw TraceError(input.path() + ": the live bytes exceed 2^62");
      slots[moment.buffer] = builder.allocate(bytes, 0);
    }
  }
  builder.trace().notes.push_back(
      "a static problem: buffers with the times they live, replayed as allocations and frees in time order");
  if (empty != 0)
    builder.trace().notes.push_back(counted(empty, "buffer of 0 bytes is left out", "buffers of 0 bytes are left out"));
  if (with_gaps != 0) {
    builder.trace().notes.push_back(counted(with_gaps, "buffer has", "buffers have") +
                                    " gaps, which are replayed as alive: an allocator cannot take "
                                    "part of a block back");
  }
  return std::move(builder).finish();
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

std::vector<std::string> left_out(const Trace& trace) {
  std::vector<std::string> parts = left_out_without_streams(trace);
  if (!trace.ooms.empty())
    parts.push_back(fmt::format("which requests ran out of memory ({}; they are buffers there)", trace.ooms.size()));
  return parts;
}

}  // namespace

const Format& minimalloc_format() {
  static const Format format{
      .name = "minimalloc",
      .files = "minimalloc problems",
      .likeness = likeness_to_minimalloc,
      .read = [](InputFile& input, const ReadOptions&) { return only(read_minimalloc(input)); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_minimalloc(trace, path); },
      .left_out = left_out};
  return format;
}

}  // namespace tenon::replay
