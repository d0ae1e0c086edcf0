// The page of `tenon view`.
#include <tenon/core/units.h>
#include <tenon/report/replay_html.h>
#include <tenon/report/svg.h>
#include <tenon/report/trace_html.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon {

namespace {

constexpr std::size_t kMaxCells = 4000;  // rectangles of a flame graph
constexpr double kWidth = 960;
constexpr double kRow = 17;

/// Bytes that live at the peak, by call stack from the outermost frame in.
struct Flame {
  std::uint64_t bytes = 0;
  std::map<std::uint32_t, Flame> children;
};

Flame flame_at_peak(const replay::Trace& trace) {
  Flame root;
  std::vector<std::uint32_t> stack_of_slot(trace.slot_count);
  std::map<std::uint32_t, std::uint64_t> live;
  std::uint64_t event = 0;
  std::uint64_t allocation = 0;
  for (const replay::TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == replay::EventKind::kAllocate) {
      const std::uint32_t stack = trace.stacks.of_allocation[allocation++];
      stack_of_slot[entry.slot] = stack;
      live[stack] += entry.bytes;
    } else if (entry.kind == replay::EventKind::kFree) {
      live[stack_of_slot[entry.slot]] -= entry.bytes;
    }
    if (event++ == trace.facts.peak_event) break;
  }
  for (const auto& [stack, bytes] : live) {
    if (bytes == 0) continue;
    const auto& frames = trace.stacks.stacks[stack];
    Flame* node = &root;
    node->bytes += bytes;
    for (std::size_t i = frames.size(); i-- > 0;) {
      node = &node->children[frames[i]];
      node->bytes += bytes;
    }
  }
  return root;
}

class FlameWriter {
 public:
  FlameWriter(const replay::Trace& trace, const Flame& root) : trace_(trace), root_(root) {}
  std::string write() {
    children(root_, 0, 0);
    return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"flame graph\">\n{}</svg>\n", kWidth,
                       kRow * static_cast<double>(depth_ + 1), out_);
  }

 private:
  void children(const Flame& node, double left, std::size_t depth) {
    std::vector<std::pair<std::uint32_t, const Flame*>> order;
    for (const auto& [frame, child] : node.children) order.emplace_back(frame, &child);
    std::ranges::stable_sort(order, std::ranges::greater(), [](const auto& pair) { return pair.second->bytes; });
    for (const auto& [frame, child] : order) {
      const double width = static_cast<double>(child->bytes) / static_cast<double>(root_.bytes) * kWidth;
      if (width < 0.6 || cells_ >= kMaxCells || depth > 200) continue;
      cell(trace_.stacks.frames[frame], child->bytes, left, width, depth);
      children(*child, left, depth + 1);
      left += width;
    }
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

std::string line(const std::string& text) { return "<p class=\"note\">" + html_escape(text) + "</p>\n"; }

}  // namespace

void write_trace_html(const std::string& path, const replay::Trace& trace, const std::vector<replay::ReplayRow>& rows) {
  const replay::TraceFacts& facts = trace.facts;
  std::string body =
      line(fmt::format("{}: {} events, {} blocks, {} stream{}; peak {} at event {}, {} alive at the end.", trace.format,
                       facts.events, facts.allocations, trace.stream_count(), trace.stream_count() == 1 ? "" : "s",
                       format_bytes(facts.peak_requested_bytes), facts.peak_event, format_bytes(facts.end_live_bytes)));
  for (const std::string& note : trace.notes) body += line(note);

  SvgChart chart{.title = "live memory over events", .x_label = "event"};
  chart.lines.push_back({"live, as requested", live_curve(trace, 1500), true, false});
  for (const replay::ReplayRow& row : rows) {
    SvgLine curve{.name = row.label + ", reserved"};
    for (const replay::CurvePoint& point : row.curve)
      curve.points.emplace_back(static_cast<double>(point.event), static_cast<double>(point.reserved_bytes));
    chart.lines.push_back(std::move(curve));
  }
  body += "<h2>Live memory</h2>\n" + svg_chart(chart);

  if (!trace.stacks.of_allocation.empty()) {
    const Flame root = flame_at_peak(trace);
    if (root.bytes != 0 && !root.children.empty()) {
      body += "<h2>Who holds it at the peak</h2>\n" + line("outermost call first; as wide as the bytes that it holds") +
              FlameWriter(trace, root).write();
    }
  }
  for (const replay::ReplayRow& row : rows) {
    if (row.layout.empty()) continue;
    body += fmt::format("<h2>Segments under {} at its peak</h2>\n", html_escape(row.label));
    body +=
        "<p class=\"note key\"><span style=\"background:#0072b2\"></span>in use<span "
        "style=\"background:#d55e00\"></span>lost to rounding"
        "<span style=\"background:#e69f00\"></span>waiting for a stream<span "
        "style=\"background:#ddd\"></span>free</p>\n" +
        html_layout(row);
  }
  body += "<h2>Settings of the recording</h2>\n";
  if (trace.recorded && trace.recorded->has_settings) {
    body += line(trace.recorded->pytorch_conf.empty() ? "PyTorch's defaults" : trace.recorded->pytorch_conf);
    body += line(fmt::format("{} reserved at the end", format_bytes(trace.recorded->reserved_bytes)));
  } else {
    body += line("the file does not state them");
  }
  write_file(path, html_page(trace.name, body));
}

}  // namespace tenon
