// The page of `tenon view`.
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/report/replay/trace_html.h>
#include <tenon/report/svg.h>
#include <tenon/report/table.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon {

namespace {

constexpr std::size_t kMaxCells = 4000;  // rectangles of a flame graph
constexpr double kFlameWidth = 960;
constexpr double kRow = 17;

/// Bytes that live at the peak, by call stack from the outermost frame in.
struct Flame {
  std::uint64_t bytes = 0;
  std::map<std::uint32_t, Flame> children;
};

Flame flame_at_peak(const replay::Trace& trace) {
  Flame root;
  for (const replay::Holder& holder : replay::holders_at_peak(trace)) {
    const std::vector<std::uint32_t> frames = replay::own_frames(trace, holder.stack);
    Flame* node = &root;
    node->bytes += holder.bytes;
    for (std::size_t i = frames.size(); i-- > 0;) {
      node = &node->children[frames[i]];
      node->bytes += holder.bytes;
    }
  }
  return root;
}

class FlameWriter {
 public:
  FlameWriter(const replay::Trace& trace, const Flame& root) : trace_(trace), root_(root) {}
  std::string write() {
    children(root_, 0, 0);
    without_stack();
    return fmt::format(
        "<div class=\"wide\"><svg viewBox=\"0 0 {} {:.0f}\" role=\"group\" aria-label=\"bytes at the peak by call "
        "stack\">\n{}</svg></div>\n",
        kFlameWidth, kRow * static_cast<double>(depth_ + 1), out_);
  }

 private:
  void children(const Flame& node, double left, std::size_t depth) {
    std::vector<std::pair<std::uint32_t, const Flame*>> order;
    for (const auto& [frame, child] : node.children) order.emplace_back(frame, &child);
    std::ranges::stable_sort(order, std::ranges::greater(), [](const auto& pair) { return pair.second->bytes; });
    for (const auto& [frame, child] : order) {
      const double width = static_cast<double>(child->bytes) / static_cast<double>(root_.bytes) * kFlameWidth;
      if (width < 0.6 || cells_ >= kMaxCells || depth > 200) continue;
      cell(trace_.stacks.frames[frame], child->bytes, left, width, depth);
      children(*child, left, depth + 1);
      left += width;
    }
  }
  /// What is left of the width: blocks whose allocation is not in the history.
  void without_stack() {
    std::uint64_t known = 0;
    for (const auto& [frame, child] : root_.children) known += child.bytes;
    const double width = static_cast<double>(root_.bytes - known) / static_cast<double>(root_.bytes) * kFlameWidth;
    if (width < 0.6) return;
    out_ += fmt::format(
        "<g><title>no stack is known: {}</title><rect x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{}\" "
        "fill=\"#bbb\" stroke=\"#fff\"/>",
        format_bytes(root_.bytes - known), kFlameWidth - width, width, kRow - 1);
    if (width > 70)
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"12\" style=\"fill:#111\">[no stack]</text>", kFlameWidth - width + 3);
    out_ += "</g>\n";
  }
  void cell(const StackFrame& frame, std::uint64_t bytes, double left, double width, std::size_t depth) {
    ++cells_;
    depth_ = std::max(depth_, depth);
    const double top = kRow * static_cast<double>(depth);
    std::size_t hue = 0;
    for (const char c : frame.file) hue = hue * 31 + static_cast<unsigned char>(c);
    const std::string title = fmt::format("{} ({}:{}) {}", frame.name, frame.file, frame.line, format_bytes(bytes));
    out_ += fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{}\" fill=\"hsl({} 55% 72%)\" "
        "stroke=\"#fff\"/>",
        html_escape(title), left, top, width, kRow - 1, hue % 360);
    const auto letters = static_cast<std::size_t>(width / 6.6);
    if (letters > 3) {
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" style=\"fill:#111\">{}</text>", left + 3, top + 12,
                          html_escape(std::string_view(frame.name).substr(0, letters - 1)));
    }
    out_ += "</g>\n";
  }

  const replay::Trace& trace_;
  const Flame& root_;
  std::string out_;
  std::size_t cells_ = 0;
  std::size_t depth_ = 0;
};

/// A state without a history: its blocks were allocated before, in an unknown order.
bool is_state_only(const replay::Trace& trace) {
  return trace.facts.frees <= trace.ooms.size() && trace.recorded && trace.recorded->actions.empty() &&
         !trace.recorded->final_segments.empty();
}

/// "as recorded", or by whom the file was written instead.
std::string as_in_the_file(const replay::Trace& trace) {
  return trace.replayed_under.empty() ? "as recorded" : "in the replay under " + trace.replayed_under;
}

/// What the recorded allocator had reserved, from its device calls backwards from the end.
SvgLine reserved_as_recorded(const replay::Trace& trace) {
  SvgLine line{.name = "reserved, " + as_in_the_file(trace)};
  const replay::RecordedAllocator& recorded = *trace.recorded;
  std::int64_t change = 0;
  for (const replay::DeviceCall& call : recorded.actions)
    change += (takes_memory(call.action)   ? 1
               : gives_memory(call.action) ? -1
                                           : 0) *
              static_cast<std::int64_t>(call.bytes);
  auto reserved = static_cast<double>(static_cast<std::int64_t>(recorded.reserved_bytes) - change);
  const auto add = [&](std::uint64_t event) { line.points.emplace_back(static_cast<double>(event), reserved); };
  add(trace.facts.seeded_blocks);
  for (const replay::DeviceCall& call : recorded.actions) {
    if (takes_memory(call.action)) reserved += static_cast<double>(call.bytes);
    if (gives_memory(call.action)) reserved -= static_cast<double>(call.bytes);
    add(call.event);
  }
  add(trace.facts.events);
  return line;
}

/// The same chart with the time of each event in its place; empty where the file does not say when its events were.
std::string over_time(SvgChart chart, const replay::Trace& trace) {
  std::vector<double> seconds;  // a clock that goes back stands still
  const std::vector<std::int64_t>& times = trace.columns.times_us;
  seconds.reserve(times.size());
  for (const std::int64_t time : times)
    seconds.push_back(std::max(static_cast<double>(time - times.front()) / 1e6, seconds.empty() ? 0 : seconds.back()));
  if (seconds.empty() || seconds.back() == 0) return {};
  const auto moment = [&](double event) {
    return seconds[std::min(static_cast<std::size_t>(event), seconds.size() - 1)];
  };
  for (SvgLine& line : chart.lines) {
    for (auto& [x, y] : line.points) x = moment(x);
  }
  for (SvgMark& mark : chart.marks) mark.x = moment(mark.x);
  chart.title = "live and reserved memory over time";
  chart.x_label = "seconds";
  return "<h2>Live memory over time</h2>\n" + html_paragraph("The same by the clock of the recording.") +
         svg_chart(chart);
}

std::string what_it_is_for(const replay::Trace& trace) {
  const std::vector<std::uint64_t> live = replay::purposes_at_peak(trace);
  if (live.empty()) return {};
  const std::uint64_t all = std::accumulate(live.begin(), live.end(), std::uint64_t{0});
  Table table({{"purpose", "purpose"}, {"bytes", "live at the peak"}, {"share", "share"}});
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] == 0) continue;
    std::string name(name_of(static_cast<Purpose>(i)));
    std::ranges::replace(name, '_', ' ');
    table.add_row({name, Bytes{static_cast<std::int64_t>(live[i])},
                   Ratio{static_cast<double>(live[i]) / static_cast<double>(all)}});
  }
  return "<h2>What it is for, at the peak</h2>\n" + html_table(table);
}

std::string memory_over_events(const replay::Trace& trace, const std::vector<replay::ReplayRow>& rows) {
  std::string body = "<h2>Live memory</h2>\n";
  if (is_state_only(trace) && rows.empty())
    return body + html_paragraph("The file holds a state and no history: what lived at that moment is below.");
  std::vector<const replay::ReplayRow*> shown;
  for (const replay::ReplayRow& row : rows) shown.push_back(&row);
  SvgChart chart = memory_chart(trace, shown);
  if (trace.recorded && trace.recorded->has_device_calls && !trace.recorded->actions.empty())
    chart.lines.push_back(reserved_as_recorded(trace));
  body += svg_chart(chart) + over_time(chart, trace);
  if (!trace.ooms.empty())
    body += html_paragraph(fmt::format("{} ran out of memory in the recording, the first at event {}.",
                                       counted(trace.ooms.size(), "request"), trace.ooms.front().event),
                           "bad");
  for (const std::string& remark : replay_remarks(rows)) body += html_paragraph(remark, "bad");
  if (std::ranges::any_of(rows, [](const replay::ReplayRow& row) { return row.ooms != 0; }))
    body += html_paragraph("Live memory is what the program asked for, requests that were refused included.");
  return body;
}

std::string who_holds_it(const replay::Trace& trace) {
  std::string body = "<h2>Who holds it at the peak</h2>\n";
  const Flame root = flame_at_peak(trace);
  if (root.bytes == 0 || root.children.empty()) {
    return body + html_paragraph(
                      "The file holds no call stacks. PyTorch records them with "
                      "torch.cuda.memory._record_memory_history(stacks=\"python\"), tenon run with --record snapshot.");
  }
  return body +
         html_paragraph(
             "The outermost call is on top; a call is as wide as the bytes that it holds. Calls inside Python, PyTorch "
             "and the C library are left out.") +
         FlameWriter(trace, root).write();
}

/// The segments of the file as they lay at the end.
std::string recorded_layout(const replay::Trace& trace) {
  const std::vector<Segment>& segments = trace.recorded->final_segments;
  std::uint64_t reserved = 0, active = 0, largest = 0;
  for (const Segment& segment : segments) {
    reserved += segment.bytes;
    active += segment.active_bytes();
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kFree) largest = std::max<std::uint64_t>(largest, block.bytes);
    }
  }
  return fmt::format("<h2>Segments {}, at the end</h2>\n", html_escape(as_in_the_file(trace))) +
         html_paragraph(fmt::format("{}, {} reserved; {} in use, {} idle, of which {} in one piece.",
                                    counted(segments.size(), "segment"), format_bytes(reserved), format_bytes(active),
                                    format_bytes(reserved - active), format_bytes(largest))) +
         html_layout_key() + html_layout(segments);
}

}  // namespace

void write_trace_html(const std::string& path, const replay::Trace& trace, const std::vector<replay::ReplayRow>& rows) {
  replay::tell_work("writing " + path, 0);
  const replay::TraceFacts& facts = trace.facts;
  std::string body = html_paragraph(fmt::format(
      "{}: {}, {}, {}; peak {} at event {}, {} alive at the end.", trace.format, counted(facts.events, "event"),
      counted(facts.allocations, "block"), counted(trace.stream_count(), "stream"),
      format_bytes(facts.peak_requested_bytes), facts.peak_event, format_bytes(facts.end_live_bytes)));
  for (const std::string& note : trace.notes) body += html_paragraph(note);
  body += memory_over_events(trace, rows) + what_it_is_for(trace) + who_holds_it(trace);
  if (trace.recorded && !trace.recorded->final_segments.empty()) body += recorded_layout(trace);
  for (const replay::ReplayRow& row : rows) {
    if (row.layout.empty()) continue;
    body += fmt::format("<h2>Segments in a replay under {}, at its peak</h2>\n", html_escape(row.label)) +
            html_layout_key() + html_layout(row.layout);
  }
  body += trace.replayed_under.empty() ? "<h2>Settings of the recording</h2>\n" : "<h2>Settings of the replay</h2>\n";
  if (!trace.replayed_under.empty()) {
    body += html_paragraph(trace.replayed_under);
  } else if (trace.recorded && trace.recorded->has_settings) {
    body += html_paragraph(trace.recorded->pytorch_conf.empty() ? "PyTorch's defaults" : trace.recorded->pytorch_conf);
    body += html_paragraph(fmt::format("{} reserved at the end", format_bytes(trace.recorded->reserved_bytes)));
  } else {
    body += html_paragraph("the file does not state them");
  }
  write_file(path, html_page(trace.name, body));
}

}  // namespace tenon
