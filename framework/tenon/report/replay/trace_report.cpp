// Histories in tables.
#include <tenon/report/replay/trace_report.h>

#include <tenon/core/text/counted.h>

#include <fmt/format.h>

namespace tenon {

namespace {

TableCell whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }
/// The settings of the recording: PyTorch's, or the allocator that `tenon run` wrote down.
TableCell settings_of(const replay::Trace& trace) {
  if (trace.recorded && trace.recorded->has_settings)
    return trace.recorded->pytorch_conf.empty() ? "(defaults)" : trace.recorded->pytorch_conf;
  const auto allocator = trace.header.find("allocator");
  return allocator == trace.header.end() ? TableCell() : TableCell("tenon " + allocator->second);
}

}  // namespace

Table trace_facts_table() {
  return Table({{"trace", "trace"},
                {"format", "format", true, -1},
                {"events", "events", true, 2},
                {"allocations", "allocs", true, -2},
                {"frees", "frees", true, -2},
                {"streams", "streams"},
                {"peak_requested_bytes", "peak requested", true, 3},
                {"peak_event", "at event"},
                {"end_live_bytes", "live at end", true, 1},
                {"total_requested_bytes", "all requested", false},
                {"max_request_bytes", "largest", false},
                {"marks", "marks", false},
                {"deferred_frees", "waiting frees", false},
                {"unrecorded_bytes", "not recorded"},
                {"unrecorded_share", "not recorded, share"},
                {"recorded_reserved_bytes", "recorded reserved", true, 2},
                {"pytorch_conf", "recorded conf", true, 1}});
}

void add_trace_facts(Table& table, const replay::Trace& trace) {
  const replay::TraceFacts& facts = trace.facts;
  const double share = facts.total_requested_bytes == 0
                           ? 0
                           : static_cast<double>(facts.seeded_bytes) / static_cast<double>(facts.total_requested_bytes);
  const std::uint64_t reserved = trace.recorded ? trace.recorded->peak_reserved_bytes : 0;
  table.add_row({trace.name, trace.format, whole(facts.events), whole(facts.allocations), whole(facts.frees),
                 whole(trace.stream_count()), bytes_cell(facts.peak_requested_bytes), whole(facts.peak_event),
                 bytes_cell(facts.end_live_bytes), bytes_cell(facts.total_requested_bytes),
                 bytes_cell(facts.max_request_bytes), whole(facts.marks), whole(facts.deferred_frees),
                 bytes_cell(facts.seeded_bytes), Ratio{share}, reserved != 0 ? bytes_cell(reserved) : TableCell(),
                 settings_of(trace)});
}

Table trace_difference_table(const replay::Trace& a, const replay::Trace& b,
                             const replay::TraceDifference& difference) {
  Table table({{"trace", "trace"},
               {"equal", "equal"},
               {"first_difference", "first difference at event"},
               {"difference", "difference"},
               {"events", "events"},
               {"peak_requested_bytes", "peak requested"},
               {"total_requested_bytes", "allocated in all"}});
  for (const replay::Trace* trace : {&a, &b}) {
    table.add_row({trace->path, difference.are_equal,
                   difference.first_event ? whole(*difference.first_event) : TableCell(),
                   difference.what.empty() ? TableCell() : TableCell(difference.what), whole(trace->facts.events),
                   bytes_cell(trace->facts.peak_requested_bytes), bytes_cell(trace->facts.total_requested_bytes)});
  }
  return table;
}

std::string trace_difference_text(const replay::Trace& a, const replay::Trace& b,
                                  const replay::TraceDifference& difference) {
  if (difference.are_equal) return fmt::format("equal: {}\n", counted(a.facts.events, "event"));
  return fmt::format(
      "first difference at event {}: {}\n"
      "{} and {}, peak requested {} bytes and {}, allocated in all {} bytes and {}\n",
      *difference.first_event, difference.what, counted(a.facts.events, "event"), b.facts.events,
      a.facts.peak_requested_bytes, b.facts.peak_requested_bytes, a.facts.total_requested_bytes,
      b.facts.total_requested_bytes);
}

}  // namespace tenon
