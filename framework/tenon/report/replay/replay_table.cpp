// Rows of a replay as a table.
#include <tenon/core/spec_names.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/watch/crash_text.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/results/row_fields.h>
#include <tenon/report/kit_advice.h>
#include <tenon/report/replay/replay_table.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon {

namespace {

using replay::ReplayRow;

TableCell count(std::uint64_t value) { return static_cast<std::int64_t>(value); }
TableCell optional_count(const std::optional<std::uint64_t>& value) {
  return value ? TableCell(static_cast<std::int64_t>(*value)) : TableCell();
}

std::string options_text(const ReplayRow& row) {
  std::string text;
  for (const auto& [name, value] : row.options) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

struct ColumnSource {
  Column column;
  TableCell (*cell)(const ReplayRow&);
};

bool was_observed(const ReplayRow& row) { return row.failure.empty(); }
bool ran_out(const ReplayRow& row) {
  return row.ooms != 0 || (is_ideal(row) && row.capacity_bytes && row.peak_requested_bytes > *row.capacity_bytes);
}

/// What people see in place of shares that flatter: with part of the history refused, less was reserved.
TableCell out_of_memory(const ReplayRow& row) {
  if (is_ideal(row)) return "does not fit";
  return row.first_oom_event ? fmt::format("OOM at event {}", *row.first_oom_event) : std::string("OOM");
}
TableCell unless_ideal(const ReplayRow& row, TableCell cell) {
  return is_ideal(row) || !was_observed(row) ? TableCell() : cell;
}

/// What a narrow screen shows last: the figures that decide, then how they come about, speed first of all left out.
int importance_of(const std::string& key) {
  static const std::map<std::string, int> kImportance = {{"peak_reserved_bytes", 5},
                                                         {"ooms", 5},
                                                         {"first_oom_event", 5},
                                                         {"excess", 4},
                                                         {"trace", 3},
                                                         {"options", 3},
                                                         {"retries", 2},
                                                         {"capacity_bytes", 1},
                                                         {"external_fragmentation", 1},
                                                         {"device_frees", -1},
                                                         {"internal_fragmentation", -1},
                                                         {"mevents", -2},
                                                         {"allocate_ns_p50", -3},
                                                         {"allocate_ns_p99", -3},
                                                         {"free_ns_p50", -3},
                                                         {"free_ns_p99", -3}};
  const auto found = kImportance.find(key);
  return found == kImportance.end() ? 0 : found->second;
}

// Long: a table, one entry a column.
const std::vector<ColumnSource>& sources() {
  static const std::vector<ColumnSource> kSources = {
      {{"trace", "trace"}, [](const ReplayRow& row) -> TableCell { return row.trace; }},
      {{"allocator", "allocator"}, [](const ReplayRow& row) -> TableCell { return row.allocator; }},
      {{"spec", "spec", false}, [](const ReplayRow& row) -> TableCell { return row.spec(); }},
      {{"options", "options"},
       [](const ReplayRow& row) -> TableCell {
         return row.options.empty() ? TableCell() : TableCell(options_text(row));
       }},
      {{"capacity_bytes", "capacity"},
       [](const ReplayRow& row) { return row.capacity_bytes ? bytes_cell(*row.capacity_bytes) : TableCell(); }},
      {{"events", "events", false}, [](const ReplayRow& row) { return count(row.events); }},
      {{"allocations", "allocations", false}, [](const ReplayRow& row) { return count(row.allocations); }},
      {{"frees", "frees", false}, [](const ReplayRow& row) { return count(row.frees); }},
      {{"streams", "streams", false}, [](const ReplayRow& row) { return count(row.streams); }},
      {{"peak_requested_bytes", "peak requested", false},
       [](const ReplayRow& row) { return bytes_cell(row.peak_requested_bytes); }},
      {{"peak_allocated_bytes", "peak allocated", false},
       [](const ReplayRow& row) { return bytes_cell(row.peak_allocated_bytes); }},
      {{"peak_active_bytes", "peak active", false},
       [](const ReplayRow& row) { return bytes_cell(row.peak_active_bytes); }},
      {{"peak_reserved_bytes", "peak reserved"},
       [](const ReplayRow& row) { return was_observed(row) ? bytes_cell(row.peak_reserved_bytes) : TableCell(); }},
      {{"excess", "excess"},
       [](const ReplayRow& row) { return was_observed(row) ? TableCell(Ratio{row.excess}) : TableCell(); }},
      {{"internal_fragmentation", "internal"},
       [](const ReplayRow& row) { return unless_ideal(row, Ratio{row.internal_fragmentation}); }},
      {{"external_fragmentation", "external"},
       [](const ReplayRow& row) { return unless_ideal(row, Ratio{row.external_fragmentation}); }},
      {{"device_allocations", "device allocs"},
       [](const ReplayRow& row) { return unless_ideal(row, count(row.device_allocations)); }},
      {{"device_frees", "frees"}, [](const ReplayRow& row) { return unless_ideal(row, count(row.device_frees)); }},
      {{"device_maps", "maps", false}, [](const ReplayRow& row) { return unless_ideal(row, count(row.device_maps)); }},
      {{"device_unmaps", "unmaps", false},
       [](const ReplayRow& row) { return unless_ideal(row, count(row.device_unmaps)); }},
      {{"device_synchronizations", "syncs", false},
       [](const ReplayRow& row) { return unless_ideal(row, count(row.device_synchronizations)); }},
      {{"device_waits", "waits", false},
       [](const ReplayRow& row) { return unless_ideal(row, count(row.device_waits)); }},
      {{"retries", "retries"}, [](const ReplayRow& row) { return unless_ideal(row, count(row.retries)); }},
      {{"ooms", "OOMs"}, [](const ReplayRow& row) { return unless_ideal(row, count(row.ooms)); }},
      {{"first_oom_event", "first OOM at", false},
       [](const ReplayRow& row) { return optional_count(row.first_oom_event); }},
      {{"reserved_series_fnv1a64", "series", false},
       [](const ReplayRow& row) -> TableCell {
         return row.reserved_series_fnv1a64 == 0 ? TableCell() : TableCell(replay::hex64(row.reserved_series_fnv1a64));
       }},
      {{"placement_hash", "placement", false},
       [](const ReplayRow& row) -> TableCell {
         return row.placement_hash == 0 ? TableCell() : TableCell(replay::hex64(row.placement_hash));
       }},
      {{"seconds", "seconds", false},
       [](const ReplayRow& row) {
         return row.seconds > 0 ? TableCell(Real{row.seconds, 4}) : TableCell();
       }},
      {{"events_per_second", "events/s", false},
       [](const ReplayRow& row) {
         return row.seconds > 0 ? TableCell(Real{row.events_per_second, 0}) : TableCell();
       }},
      {{"mevents", "M events/s"},
       [](const ReplayRow& row) {
         return row.seconds > 0 ? TableCell(Real{row.events_per_second / 1e6, 1}) : TableCell();
       }},
      {{"harness_seconds", "harness", false},
       [](const ReplayRow& row) {
         return row.seconds > 0 ? TableCell(Real{row.harness_seconds, 4}) : TableCell();
       }},
      {{"allocate_ns_p50", "alloc p50 ns"},
       [](const ReplayRow& row) {
         return row.allocate_ns.p50 > 0 ? TableCell(Real{row.allocate_ns.p50, 0}) : TableCell();
       }},
      {{"allocate_ns_p99", "alloc p99 ns"},
       [](const ReplayRow& row) {
         return row.allocate_ns.p50 > 0 ? TableCell(Real{row.allocate_ns.p99, 0}) : TableCell();
       }},
      {{"free_ns_p50", "free p50 ns"},
       [](const ReplayRow& row) {
         return row.free_ns.p50 > 0 ? TableCell(Real{row.free_ns.p50, 0}) : TableCell();
       }},
      {{"free_ns_p99", "free p99 ns"},
       [](const ReplayRow& row) {
         return row.free_ns.p50 > 0 ? TableCell(Real{row.free_ns.p99, 0}) : TableCell();
       }},
      {{"failure", "failure", false},
       [](const ReplayRow& row) -> TableCell { return row.failure.empty() ? TableCell() : TableCell(row.failure); }},
  };
  return kSources;
}

}  // namespace

Table replay_table(const std::vector<ReplayRow>& rows, TableFormat format) {
  const bool for_people = format == TableFormat::kTable || format == TableFormat::kMarkdown;
  const bool has_one_trace =
      std::ranges::all_of(rows, [&](const ReplayRow& row) { return row.trace == rows.front().trace; });
  std::vector<Column> columns;
  for (const ColumnSource& source : sources()) {
    columns.push_back(source.column);
    columns.back().importance = importance_of(source.column.key);
    columns.back().is_name = source.column.key == "trace" || source.column.key == "allocator";
    if (source.column.key == "trace" && has_one_trace) columns.back().for_people = false;
  }
  Table table(std::move(columns));
  std::vector<std::string> names, specs;
  for (const ReplayRow& row : rows) {
    names.push_back(row.allocator);
    specs.push_back(row.spec());
  }
  const std::vector<std::string> titles = allocator_titles(names, specs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ReplayRow& row = rows[i];
    std::vector<TableCell> cells;
    for (const ColumnSource& source : sources()) {
      TableCell cell = source.cell(row);
      if (for_people && source.column.key == "allocator") cell = titles[i];
      if (for_people && was_observed(row) && ran_out(row)) {
        if (source.column.key == "excess") cell = out_of_memory(row);
        if (source.column.key.ends_with("_fragmentation")) cell = {};
      }
      cells.push_back(std::move(cell));
    }
    table.add_row(std::move(cells));
    if (!row.failure.empty()) table.tone("allocator", Tone::kBad);
    if (row.ooms != 0) table.tone("ooms", Tone::kBad);
  }
  return table;
}

std::string replay_legend() {
  return "excess: peak reserved over the peak of live memory, minus 1. internal, external: fragmentation by rounding "
         "and "
         "by free memory between blocks, at the moment of peak reserved.\n";
}

std::vector<std::string> replay_remarks(const std::vector<ReplayRow>& rows) {
  std::vector<std::string> remarks;
  for (const ReplayRow& row : rows) {
    const std::string& name = row.spec();
    if (row.failure == replay::kNotMeasured) {
      remarks.push_back(fmt::format("{} on {} was {}", name, row.trace, row.failure));
    } else if (!row.failure.empty()) {
      const std::string where = row.failed_event ? fmt::format(" (at event {})", *row.failed_event) : "";
      remarks.push_back(fmt::format("{} on {} is disqualified: {}{}{}", name, row.trace, row.failure, where,
                                    crash_stack_text(row.crash_stack)));
    } else if (row.first_oom_event) {
      remarks.push_back(fmt::format("{} on {} ran out of memory {}, first at event {} (a request of {})", name,
                                    row.trace, counted(row.ooms, "time"), *row.first_oom_event,
                                    format_bytes(row.first_oom_bytes)));
    }
  }
  return remarks;
}

std::string replay_advice(const std::vector<ReplayRow>& rows) {
  std::vector<std::string> broken;
  for (const ReplayRow& row : rows)
    if (!row.failure.empty() && row.failure != replay::kNotMeasured) broken.push_back(row.spec());
  return kit_advice(broken);
}

}  // namespace tenon
