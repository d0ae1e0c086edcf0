// Static problems of minimalloc and its like: id,lower,upper,size, time in events. What is never freed ends with the
// history.
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/csv_table.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace tenon::replay {

namespace {

Likeness likeness(std::string_view head) {
  const std::string header = csv_header(head);
  const auto has = [&](const char* word) { return header.find(word) != std::string::npos; };
  const bool has_bounds = has("lower") || has("start") || has("begin");
  return has_bounds && has("size") && has(",") ? Likeness::kCertain : Likeness::kNone;
}

/// "a-b" or "a-b@lo:hi", separated by spaces: from a to b only the bytes from lo to hi are in use, or none.
void check_gaps(const InputFile& input, std::string_view text) {
  const std::string_view whole = text.substr(0, 40);
  const auto number = [&] {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
      input.fail_line("expected gaps as 'a-b' or 'a-b@lo:hi', not '" + std::string(whole) + "'");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  const auto pair = [&](char between) {
    const std::uint64_t first = number();
    const bool is_pair = text.starts_with(between);
    if (is_pair) text.remove_prefix(1);
    if (!is_pair || number() <= first)
      input.fail_line("a gap that does not end after its start in '" + std::string(whole) + "'");
  };
  while (!text.empty()) {
    pair('-');
    if (text.starts_with('@')) {
      text.remove_prefix(1);
      pair(':');
    }
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
}

Trace read_minimalloc(InputFile& input) {
  CsvTable table(input);
  const int lower_column = table.need({"lower", "start", "begin"});
  int upper_column = table.column({"upper"});
  std::uint64_t inclusive = 0;
  if (upper_column < 0) {
    upper_column = table.need({"end", "upper"});
    inclusive = 1;  // minimalloc: `upper` is exclusive, `end` inclusive
  }
  const int size_column = table.need({"size"});
  const int id_column = table.column({"id", "buffer", "buffer_id"});
  const int gaps_column = table.column({"gaps"});

  struct Moment {
    std::uint64_t time;
    std::uint32_t buffer;
    bool is_free;
  };
  std::vector<Moment> moments;
  std::vector<std::uint64_t> sizes;
  std::unordered_set<std::string> ids;
  std::uint64_t empty = 0;
  std::uint64_t with_gaps = 0;
  while (table.next()) {
    if (id_column >= 0) {
      const std::string id(table.field(id_column));
      if (id.empty()) input.fail_line("a buffer without an id");
      if (!ids.insert(id).second) input.fail_line("the id '" + id.substr(0, 40) + "' comes twice");
    }
    const std::uint64_t lower = table.number(lower_column, "a lower bound");
    const std::uint64_t upper = table.number(upper_column, "an upper bound") + inclusive;
    const std::uint64_t bytes = table.number(size_column, "a size");
    if (upper <= lower)
      input.fail_line("a buffer whose life ends at " + std::to_string(upper) + ", not after its start " +
                      std::to_string(lower));
    if (gaps_column >= 0 && !table.field(gaps_column).empty()) {
      check_gaps(input, table.field(gaps_column));
      ++with_gaps;
    }
    if (bytes == 0) {
      ++empty;
      continue;
    }
    const auto buffer = static_cast<std::uint32_t>(sizes.size());
    sizes.push_back(bytes);
    moments.push_back({lower, buffer, false});
    moments.push_back({upper, buffer, true});
  }
  // Lives are half open: what ends at t is gone before what starts at t.
  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.is_free != b.is_free) return a.is_free;
    return a.buffer < b.buffer;
  });
  TraceBuilder builder(input.path());
  builder.trace().format = "minimalloc";
  std::vector<std::uint32_t> slots(sizes.size());
  for (const Moment& moment : moments) {
    if (moment.is_free) {
      builder.free(slots[moment.buffer]);
    } else {
      if (builder.would_overflow(sizes[moment.buffer])) throw TraceError(input.path() + ": the live bytes exceed 2^62");
      slots[moment.buffer] = builder.allocate(sizes[moment.buffer], 0);
    }
  }
  builder.trace().notes.push_back(
      "a static problem: buffers with the times they live, replayed as allocations and frees in time order");
  if (empty != 0) builder.trace().notes.push_back(std::to_string(empty) + " buffers of 0 bytes are left out");
  if (with_gaps != 0) {
    builder.trace().notes.push_back(std::to_string(with_gaps) +
                                    " buffers have gaps: an allocator cannot take part of a block back, so they are "
                                    "replayed as alive all the time");
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
      .likeness = likeness,
      .read = [](InputFile& input, const ReadOptions&) { return only(read_minimalloc(input)); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_minimalloc(trace, path); },
      .left_out = left_out};
  return format;
}

}  // namespace tenon::replay
