// The HTML report of a replay.
#include <tenon/core/error.h>
#include <tenon/core/spec_names.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/text/utf8.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/report/svg.h>
#include <tenon/report/table.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon {

namespace {

constexpr char kStyle[] = R"(
body{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:1040px;margin:2em auto;padding:0 1em}
h1,h2,h3,p{overflow-wrap:anywhere}h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ccc}h3{font-size:1.05em;margin-bottom:.3em}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th:first-child,td:first-child,.text{text-align:left}td.text{white-space:normal;overflow-wrap:break-word;max-width:44em}
thead th{border-bottom:2px solid #999;white-space:normal;vertical-align:bottom}
.wide{overflow-x:auto}svg{width:100%;height:auto}.wide svg{min-width:760px}svg text{font:12px system-ui,sans-serif;fill:#333}
svg .end{text-anchor:end}svg .mid{text-anchor:middle}svg .oom{fill:#b00020}svg .grid{stroke:#e4e4e4}
.note{color:#555;font-size:13px}.bad{color:#b00020}.key span{display:inline-block;width:1em;height:.8em;margin:0 .3em 0 1em;border:1px solid #777}
.in-use{background:#0072b2}.rounding{background:#d55e00}.waiting{background:#e69f00}.free{background:#ddd}
details{margin:.4em 0}summary{cursor:pointer}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#e4e4e4}a{color:#7ab8f5}svg text{fill:#ccc}svg .grid{stroke:#333}th,td{border-color:#333}.note{color:#aaa}.bad{color:#ff8a80}
svg .oom{fill:#ff8a80}text[fill="#b00020"]{fill:#ff8a80}[stroke="#b00020"]{stroke:#ff8a80}[stroke="#0072b2"]{stroke:#4aa3df}[stroke="#6a3d9a"]{stroke:#c3a2f0}[stroke="#7f1d1d"],[stroke="#e31a1c"]{stroke:#ff8a80}[stroke="#444444"]{stroke:#bbb}
path[fill="#0072b2"]{fill:#4aa3df}path[fill="#dddddd"]{fill:#3c4046}path[fill="#f7f7f7"]{fill:#22252a}path[stroke="#fff"],rect[stroke="#fff"]{stroke:#16181c}.key .in-use{background:#4aa3df}.key .free{background:#3c4046}}
)";

constexpr std::size_t kShownMarks = 200;
constexpr std::size_t kShownSegments = 1500;
constexpr double kLayoutRows = 14;  ///< of the allocator that has reserved most

/// Live bytes of a trace over its events, at most `points` of them.
std::vector<std::pair<double, double>> live_curve(const replay::Trace& trace, std::size_t points) {
  std::vector<std::pair<double, double>> curve;
  const std::uint64_t stride = std::max<std::uint64_t>(1, trace.facts.events / points);
  std::uint64_t live = 0;
  std::uint64_t event = 0;
  for (const replay::TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == replay::EventKind::kAllocate) live += entry.bytes;
    if (entry.kind == replay::EventKind::kFree) live -= entry.bytes;
    if (event % stride == 0 || curve.empty()) {
      curve.emplace_back(static_cast<double>(event), static_cast<double>(live));
    } else {
      curve.back().second = std::max(curve.back().second, static_cast<double>(live));
    }
    ++event;
  }
  return curve;
}

/// Bytes of them that have memory behind them.
std::uint64_t layout_bytes(const std::vector<Segment>& segments) {
  std::uint64_t bytes = 0;
  for (const Segment& segment : segments) {
    for (const BlockInfo& block : segment.blocks) bytes += block.state == BlockState::kUnmapped ? 0 : block.bytes;
  }
  return bytes;
}

/// What each row is called where its options do not stand beside it: what was typed, with a path cut short.
std::vector<std::string> titles_of(const std::vector<const replay::ReplayRow*>& rows) {
  std::vector<std::string> specs;
  for (const replay::ReplayRow* row : rows) specs.push_back(row->spec());
  return short_specs(specs);
}

}  // namespace

SvgChart memory_chart(const replay::Trace& trace, const std::vector<const replay::ReplayRow*>& rows) {
  SvgChart chart{.title = "live and reserved memory over events", .x_label = "event"};
  chart.lines.push_back({"live, as requested", live_curve(trace, 1500), true, false});
  std::size_t event = 0;
  for (const replay::TraceEvent& entry : trace.events) {
    if (entry.kind == replay::EventKind::kMark && chart.marks.size() < kShownMarks)
      chart.marks.push_back({static_cast<double>(event), trace.marks[entry.bytes]});
    if (replay::is_counted(entry.kind)) ++event;
  }
  const std::vector<std::string> titles = titles_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const replay::ReplayRow* const row = rows[i];
    if (row->curve.empty()) continue;
    const std::string& line_name = titles[i];
    SvgLine line{.name = line_name};
    for (const replay::CurvePoint& point : row->curve)
      line.points.emplace_back(static_cast<double>(point.event), static_cast<double>(point.reserved_bytes));
    chart.lines.push_back(std::move(line));
    if (row->capacity_bytes) {
      chart.y_limit = static_cast<double>(*row->capacity_bytes);
      chart.y_limit_name = "capacity " + format_bytes(*row->capacity_bytes);
    }
    if (row->first_oom_event)
      chart.marks.push_back({static_cast<double>(*row->first_oom_event), "OOM: " + line_name, /*is_failure=*/true});
  }
  for (const replay::RecordedOom& oom : trace.ooms) {
    if (chart.marks.size() < 2 * kShownMarks)
      chart.marks.push_back({static_cast<double>(oom.event), "OOM, recorded", /*is_failure=*/true});
  }
  std::ranges::stable_sort(chart.marks, {}, &SvgMark::x);
  return chart;
}

std::string html_layout_key() {
  return "<p class=\"note key\"><span class=\"in-use\"></span>in use<span class=\"rounding\"></span>lost to "
         "rounding<span class=\"waiting\"></span>waiting for a stream<span class=\"free\"></span>free</p>\n";
}

namespace {

/// The columns of times stand in a table of their own: all of them beside each other are wider than a page.
bool is_time(const Column& column) {
  return column.key == "mevents" || column.key.starts_with("allocate_ns") || column.key.starts_with("free_ns");
}
Table part_of(const Table& table, bool times) {
  std::vector<std::size_t> kept;
  std::vector<Column> columns;
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    const Column& column = table.columns()[c];
    const bool names_row = column.key == "allocator" || column.key == "options";
    if (!names_row && is_time(column) != times) continue;
    kept.push_back(c);
    columns.push_back(column);
  }
  Table part(std::move(columns));
  for (const auto& row : table.rows()) {
    std::vector<TableCell> cells;
    for (const std::size_t c : kept) cells.push_back(row[c]);
    part.add_row(std::move(cells));
  }
  return part;
}

/// Links to the sections of a page of several histories.
std::string contents(const std::vector<replay::Trace>& traces, const std::vector<replay::ReplayRow>& rows) {
  if (traces.size() < 2) return {};
  std::string out = "<h2>Contents</h2>\n<ul>\n";
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const auto is_of_it = [&](const replay::ReplayRow& row) { return row.trace == traces[t].name; };
    const auto troubled = std::ranges::count_if(rows, [&](const replay::ReplayRow& row) {
      return is_of_it(row) && !is_ideal(row) && (row.ooms != 0 || !row.failure.empty());
    });
    out += fmt::format("<li><a href=\"#history-{}\">{}</a>: {}, peak {} requested{}</li>\n", t,
                       html_escape(traces[t].name), counted(traces[t].facts.events, "event"),
                       format_bytes(traces[t].facts.peak_requested_bytes),
                       troubled == 0 ? "" : fmt::format("; {} of the allocators ran out or failed", troubled));
  }
  return out + "</ul>\n";
}

std::string section(const replay::Trace& trace, std::size_t number,
                    const std::vector<const replay::ReplayRow*>& of_trace) {
  std::string out = fmt::format("<h2 id=\"history-{}\">{}</h2>\n", number, html_escape(trace.name));
  const replay::TraceFacts& facts = trace.facts;
  out +=
      html_paragraph(fmt::format("{}, {} allocated, peak {} requested at event {}, {}.", counted(facts.events, "event"),
                                 counted(facts.allocations, "block"), format_bytes(facts.peak_requested_bytes),
                                 facts.peak_event, counted(trace.stream_count(), "stream")));
  for (const std::string& note : trace.notes) out += html_paragraph(note);

  std::vector<replay::ReplayRow> copies;
  for (const replay::ReplayRow* row : of_trace) copies.push_back(*row);
  const Table table = replay_table(copies);
  out += "<div class=\"wide\">" + html_table(part_of(table, false), "trace") + "</div>\n";
  const bool is_timed = std::ranges::any_of(copies, [](const replay::ReplayRow& row) { return row.seconds > 0; });
  if (is_timed) {
    out += "<h3>Speed of the allocator alone: events a second, and nanoseconds a call</h3>\n<div class=\"wide\">" +
           html_table(part_of(table, true)) + "</div>\n";
  }
  for (const std::string& remark : replay_remarks(copies)) out += html_paragraph(remark, "bad");

  SvgChart chart = memory_chart(trace, of_trace);
  out += "<h3>Live memory, and what each allocator had reserved for it</h3>\n" + svg_chart(chart);
  // Allocators differ by a few percent as a rule: the same from near the top.
  chart.title += ", the upper part";
  chart.y_low = 0.85 * static_cast<double>(facts.peak_requested_bytes);
  if (facts.peak_requested_bytes > MiB) {
    out += "<h3>The upper part of the same picture (the axis does not begin at 0)</h3>\n" + svg_chart(chart);
  }
  const bool has_layout =
      std::ranges::any_of(of_trace, [](const replay::ReplayRow* row) { return !row->layout.empty(); });
  if (has_layout) {
    out += "<h3>Segments at the peak of reserved memory</h3>\n" + html_layout_key();
    std::uint64_t most = 0;
    for (const replay::ReplayRow* row : of_trace) most = std::max(most, layout_bytes(row->layout));
    const std::vector<std::string> titles = titles_of(of_trace);
    for (std::size_t i = 0; i < of_trace.size(); ++i) {
      const replay::ReplayRow* const row = of_trace[i];
      if (row->layout.empty()) continue;
      out += fmt::format("<details open><summary>{}: {}, {}</summary>\n{}</details>\n", html_escape(titles[i]),
                         counted(row->layout.size(), "segment"), format_bytes(layout_bytes(row->layout)),
                         html_layout(row->layout, static_cast<double>(most) / kLayoutRows));
    }
  }
  return out;
}

std::string environment_section(const std::string& environment_json) {
  if (environment_json.empty()) return {};
  const auto json = nlohmann::ordered_json::parse(environment_json, nullptr, false);
  if (json.is_discarded()) return {};
  return fmt::format("<h2>Made by</h2>\n<details><summary>environment</summary><pre>{}</pre></details>\n",
                     html_escape(json.dump(2)));
}

}  // namespace

std::string html_layout(const std::vector<Segment>& layout, double bytes_per_row) {
  if (bytes_per_row <= 0) bytes_per_row = static_cast<double>(layout_bytes(layout)) / kLayoutRows;
  std::vector<const Segment*> segments;
  for (const Segment& segment : layout) {
    if (segment.bytes != 0) segments.push_back(&segment);
  }
  std::ranges::stable_sort(segments, std::ranges::greater(), [](const Segment* segment) { return segment->bytes; });
  std::vector<SvgBar> bars;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (i >= kShownSegments) {
      rest += segments[i]->bytes;
      continue;
    }
    SvgBar bar;
    std::uint64_t used = 0;
    for (const BlockInfo& block : segments[i]->blocks) {
      const int shade = static_cast<int>(block.state);
      if (block.state == BlockState::kUnmapped) continue;
      const bool is_used = block.state == BlockState::kActive;
      if (is_used) used += block.bytes;
      const double waste =
          is_used && block.requested_bytes < block.bytes ? static_cast<double>(block.bytes - block.requested_bytes) : 0;
      // Neighbours of one kind that are too thin to see become one, so that a page stays small.
      if (!bar.blocks.empty() && bar.blocks.back().shade == shade &&
          static_cast<double>(block.bytes) < bytes_per_row / 1500) {
        bar.blocks.back().bytes += static_cast<double>(block.bytes);
        bar.blocks.back().wasted_bytes += waste;
      } else {
        bar.blocks.push_back({static_cast<double>(block.bytes), shade, waste});
      }
    }
    bar.title = fmt::format("{} of {} in use{}", format_bytes(used), format_bytes(segments[i]->bytes),
                            segments[i]->is_expandable ? ", expandable" : "");
    bars.push_back(std::move(bar));
  }
  std::string out = svg_segments(bars, bytes_per_row);
  if (rest != 0)
    out += html_paragraph(
        fmt::format("and {} smaller segments of {} in all", segments.size() - kShownSegments, format_bytes(rest)));
  return out;
}

std::string html_table(const Table& table, std::string_view left_out) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    const bool has_value = std::ranges::any_of(
        table.rows(), [&](const auto& row) { return !std::holds_alternative<std::monostate>(row[c]); });
    if (table.columns()[c].for_people && has_value && table.columns()[c].key != left_out) shown.push_back(c);
  }
  std::string out = "<table><thead><tr>";
  for (const std::size_t c : shown) {
    const bool has_text =
        std::ranges::any_of(table.rows(), [&](const auto& row) { return std::holds_alternative<std::string>(row[c]); });
    out += fmt::format("<th{}>{}</th>", has_text ? " class=\"text\"" : "", html_escape(table.columns()[c].title));
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows()) {
    out += "<tr>";
    for (const std::size_t c : shown) {
      const bool is_text = std::holds_alternative<std::string>(row[c]);
      out += fmt::format("<td{}>{}</td>", is_text ? " class=\"text\"" : "", html_escape(show(row[c])));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">"
      "<title>{0}</title><style>{1}</style></head>\n<body><h1>{0}</h1>\n{2}</body></html>\n",
      html_escape(title), kStyle, body);
}

void write_file(const std::string& path, const std::string& content) {
  replay::OutputFile file(path);
  file.write(valid_utf8(content));
  file.close();
}

void write_replay_svg(const std::string& path, const replay::Trace& trace, const std::vector<replay::ReplayRow>& rows) {
  std::vector<const replay::ReplayRow*> of_trace;
  for (const replay::ReplayRow& row : rows) of_trace.push_back(&row);
  write_file(path, svg_file(svg_chart(memory_chart(trace, of_trace))));
}

void write_replay_html(const std::string& path, const std::vector<replay::Trace>& traces,
                       const std::vector<replay::ReplayRow>& rows, const std::string& environment_json) {
  std::string body = html_paragraph(
      "Each allocator was given the same requests on a device that has addresses only. Excess is what was reserved "
      "beyond the peak of live bytes, the least that any allocator needs; internal and external are fragmentation by "
      "rounding and by free memory between blocks, at the moment of peak reserved.");
  body += contents(traces, rows);
  replay::WorkMeter meter("writing " + path, traces.size());
  for (std::size_t t = 0; t < traces.size(); ++t) {
    meter.step();
    std::vector<const replay::ReplayRow*> of_trace;
    for (const replay::ReplayRow& row : rows) {
      if (row.trace == traces[t].name) of_trace.push_back(&row);
    }
    body += section(traces[t], t, of_trace);
  }
  write_file(path, html_page("Tenon replay", body + environment_section(environment_json)));
}

}  // namespace tenon
