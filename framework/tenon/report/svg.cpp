// Inline SVG. By hand: what plots in C++ needs a program (gnuplot) or Python at run time, and a report is made offline.
#include <tenon/core/units.h>
#include <tenon/report/svg.h>
#include <tenon/report/text/display_width.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon {

namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 330;
constexpr double kLeft = 76;
constexpr double kRight = 14;
constexpr double kTop = 12;
constexpr double kBottom = 40;
constexpr std::size_t kMarkLetters = 24;
constexpr std::size_t kLegendLetters = 60;
// Distinct in colour and in lightness, so that they survive a grey print; lines beyond them are dashed.
constexpr std::array<const char*, 12> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e6ab02", "#56b4e9",
                                                  "#6a3d9a", "#7f1d1d", "#66a61e", "#444444", "#00b7a8", "#a6611a"};
constexpr std::array<const char*, 3> kDashes = {"", "9 3", "2 3"};

const char* colour_of(std::size_t line) { return kColours[line % kColours.size()]; }

/// 1, 2 or 5 times a power of ten (of two for bytes), so that about five ticks fit.
double tick_step(double range, bool is_bytes) {
  const double rough = range / 5;
  if (rough <= 0) return 1;
  if (is_bytes) return std::exp2(std::ceil(std::log2(rough)));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string y_text(double value, bool is_bytes) {
  return is_bytes ? format_bytes(static_cast<std::size_t>(value)) : fmt::format("{:g}", value);
}

std::string x_text(double value) {
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", value);
}

class ChartWriter {
 public:
  explicit ChartWriter(const SvgChart& chart) : chart_(chart) {
    for (const SvgLine& line : chart.lines) {
      for (const auto& [x, y] : line.points) {
        x_low_ = std::min(x_low_, x);
        x_high_ = std::max(x_high_, x);
        y_high_ = std::max(y_high_, y);
      }
    }
    if (x_low_ > x_high_) x_low_ = 0, x_high_ = 1;
    if (x_high_ <= x_low_) x_high_ = x_low_ + 1;
    // A limit far above the curves would flatten them: it is then named in the corner.
    if (chart.y_limit > 0 && chart.y_limit <= 1.6 * y_high_) y_high_ = std::max(y_high_, chart.y_limit);
    if (y_high_ <= 0) y_high_ = 1;
    y_low_ = std::min(chart.y_low, 0.99 * y_high_);
    y_high_ += 0.04 * (y_high_ - y_low_);
  }

  std::string write() {
    const int legend_rows = chart_.lines.empty() ? 0 : legend_places().back().second + 1;
    out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"group\" aria-label=\"{}\"><title>{}</title>\n", kWidth,
                       kHeight + 20 * legend_rows, html_escape(chart_.title), html_escape(chart_.title));
    axes();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) line(i, colour_of(i));
    marks();
    limit();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  double x(double value) const { return kLeft + (value - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    const double share = (std::max(value, y_low_) - y_low_) / (y_high_ - y_low_);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  void axes() {
    const double y_step = tick_step(y_high_ - y_low_, chart_.y_is_bytes);
    for (double value = std::ceil(y_low_ / y_step) * y_step; value <= y_high_; value += y_step) {
      out_ += fmt::format(
          "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\" "
          "class=\"end\">{}</text>\n",
          kLeft, kWidth - kRight, y(value), y(value), kLeft - 6, y(value) + 4, y_text(value, chart_.y_is_bytes));
    }
    const double x_step = tick_step(x_high_ - x_low_, false);
    for (double value = std::ceil(x_low_ / x_step) * x_step; value <= x_high_; value += x_step) {
      out_ += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "class=\"mid\">{4}</text>\n",
          x(value), kTop, kHeight - kBottom, kHeight - kBottom + 16, x_text(value));
    }
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"mid\">{}</text>\n", (kLeft + kWidth - kRight) / 2, kHeight - 6,
                        html_escape(chart_.x_label));
  }

  /// Names where there is room for them, all of them as tooltips; failures in red, named on top.
  void marks() {
    double next_text[2] = {kLeft, kLeft};
    for (const auto& [at, name, is_failure] : chart_.marks) {
      const double px = x(at);
      if (px < kLeft || px > kWidth - kRight) continue;
      out_ += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"{3}\" "
          "stroke-dasharray=\"2 3\"><title>{4}</title></line>\n",
          px, kTop, kHeight - kBottom, is_failure ? "#b00020" : "#888", html_escape(name));
      if (px < next_text[is_failure ? 1 : 0] || name.size() > kMarkLetters) continue;
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\"{}>{}</text>\n", px + 3,
                          is_failure ? kTop + 22 : kHeight - kBottom - 5, is_failure ? " class=\"oom\"" : "",
                          html_escape(name));
      next_text[is_failure ? 1 : 0] = px + 8 + 7 * static_cast<double>(name.size());
    }
  }

  /// The later a line is drawn, the thinner: of lines that coincide, each is seen.
  double width_of(std::size_t index) const {
    return 1.6 + 0.9 * static_cast<double>(std::min<std::size_t>(3, chart_.lines.size() - 1 - index));
  }

  /// A figure holds until it changes. With `ends_at_floor` the line ends where it goes below the axis and begins again
  /// where it comes back: along the floor it would claim to be as high as the axis begins.
  std::string steps(const SvgLine& line, bool ends_at_floor) const {
    std::string path;
    bool is_down = false;  // the pen
    std::string height;    // that it is at
    double last = 0;       // x
    for (const auto& [px, py] : line.points) {
      const bool is_below = ends_at_floor && py < y_low_;
      const std::string next = fmt::format("{:.1f}", y(py));
      if (is_down && next != height) {  // what is as high is one stroke: pages stay small
        path += fmt::format("H{:.1f}V{}", x(px), next);
      } else if (is_down && is_below) {
        path += fmt::format("H{:.1f}", x(px));
      } else if (!is_down && !is_below) {
        path +=
            fmt::format("M{:.1f} {:.1f}", x(px), path.empty() && px == line.points.front().first ? y(py) : y(y_low_));
        path += "V" + next;
      }
      is_down = !is_below;
      height = next;
      last = px;
    }
    return is_down ? path + fmt::format("H{:.1f}", x(last)) : path;
  }

  void line(std::size_t index, const char* colour) {
    const SvgLine& line = chart_.lines[index];
    if (line.points.empty()) return;
    if (line.is_filled) {
      out_ += fmt::format("<path d=\"{}V{:.1f}H{:.1f}Z\" fill=\"{}\" fill-opacity=\"0.22\" stroke=\"none\"/>\n",
                          steps(line, false), y(y_low_), x(line.points.front().first), colour);
    }
    const std::string path = steps(line, true);
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}/>\n", path, colour,
                        line.is_filled ? 1.6 : width_of(index), dashes_of(index));
  }

  void limit() {
    if (chart_.y_limit <= 0) return;
    if (chart_.y_limit <= y_low_ || chart_.y_limit > y_high_) {
      out_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"end\">{}, {} this picture</text>\n", kWidth - kRight - 4,
                          kTop + 12, html_escape(chart_.y_limit_name), chart_.y_limit > y_high_ ? "above" : "below");
      return;
    }
    out_ += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#b00020\" stroke-dasharray=\"8 4\"/><text "
        "x=\"{3}\" y=\"{4:.1f}\" class=\"end\" fill=\"#b00020\">{5}</text>\n",
        kLeft, kWidth - kRight, y(chart_.y_limit), kWidth - kRight - 4, y(chart_.y_limit) - 4,
        html_escape(chart_.y_limit_name));
  }

  std::string dashes_of(std::size_t index) const {
    const std::string dashes =
        chart_.lines[index].is_dashed ? "5 3" : kDashes[index / kColours.size() % kDashes.size()];
    return dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
  }

  std::string legend_name(std::size_t index) const { return shortened(chart_.lines[index].name, kLegendLetters); }

  /// Where each entry begins: x, and the row. As many stand in a row as there is room for.
  std::vector<std::pair<double, int>> legend_places() const {
    constexpr double kLetter = 7.2, kSample = 28, kGap = 22;
    std::vector<std::pair<double, int>> places;
    double left = kLeft;
    int row = 0;
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      const double width = kSample + kLetter * static_cast<double>(display_width(legend_name(i)));
      if (left > kLeft && left + width > kWidth - kRight) left = kLeft, ++row;
      places.emplace_back(left, row);
      left += width + kGap;
    }
    return places;
  }

  void legend() {
    const auto places = legend_places();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      const double lx = places[i].first;
      const double ly = kHeight + 12 + places[i].second * 20;
      out_ += fmt::format(
          "<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"3\"{}/><text x=\"{}\" "
          "y=\"{}\"><title>{}</title>{}</text>\n",
          lx, lx + 22, ly - 4, ly - 4, colour_of(i), dashes_of(i), lx + 28, ly, html_escape(chart_.lines[i].name),
          html_escape(legend_name(i)));
    }
  }

  const SvgChart& chart_;
  std::string out_;
  double x_low_ = 1e300, x_high_ = -1e300, y_low_ = 0, y_high_ = 0;
};

}  // namespace

// By hand: pugixml and libxml2 escape what goes through their trees, and pages are written as text.
std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

std::string html_paragraph(std::string_view text, std::string_view style) {
  return fmt::format("<p class=\"{}\">{}</p>\n", style, html_escape(text));
}

namespace {

/// A narrow page scrolls in it, so that its text stays legible.
std::string in_frame(const std::string& svg) { return "<div class=\"wide\">" + svg + "</div>\n"; }

}  // namespace

std::string svg_chart(const SvgChart& chart) { return in_frame(ChartWriter(chart).write()); }

std::string svg_file(const std::string& svg) {
  // Colours and fonts of the page's style sheet; a white ground, since a viewer's may be dark.
  const std::size_t tag = svg.find("<svg "), at = svg.find('>', tag), end = svg.rfind("</svg>");
  if (tag == std::string::npos || at == std::string::npos || end == std::string::npos) return svg;
  const std::string head = svg.substr(tag + 5, at - tag - 5);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" {}>\n<style>text{{font:12px "
      "system-ui,sans-serif;fill:#333}}.end{{text-anchor:end}}.mid{{text-anchor:middle}}.oom{{fill:#b00020}}.grid{{"
      "stroke:#e4e4e4}}</style>"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{}",
      kWidth, head, svg.substr(at + 1, end - at - 1) + "</svg>\n");
}

namespace {

/// Lays segments out like words of a text: row after row, one that is too long goes on in the next. All rectangles of a
/// segment that look the same are one path: a rectangle each would make a page four times as large.
class SegmentText {
 public:
  explicit SegmentText(double bytes_per_row) : scale_((kWidth - 2 * kMargin) / bytes_per_row) {}

  void segment(const SvgBar& bar) {
    if (left_ > kMargin && left_ + kGap < kWidth - kMargin) left_ += kGap;
    double outline = left_;
    for (const SvgBlock& block : bar.blocks) {
      double rest = block.bytes * scale_;
      const double waste = std::min(rest, block.wasted_bytes * scale_);
      const auto shade = static_cast<std::size_t>(std::clamp(block.shade, 0, 3));
      while (rest > 0) {
        const double room = kWidth - kMargin - left_;
        const double width = std::min(rest, room);
        add(width > 3 ? wide_[shade] : thin_[shade], left_, width);
        rest -= width;
        if (rest <= 0 && waste > 0.3) add(waste_, left_ + width - std::min(waste, width), std::min(waste, width));
        left_ += width;
        if (rest > 0 || left_ >= kWidth - kMargin) {
          end_outline(outline);
          left_ = kMargin;
          top_ += kRow + kGap;
          outline = left_;
        }
      }
    }
    end_outline(outline);
    write(bar.title);
  }

  std::string finish() const {
    const double height = left_ > kMargin ? top_ + kRow + 2 : top_;
    return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"group\" aria-label=\"segments\">\n{}</svg>\n", kWidth,
                       height, out_);
  }

 private:
  static constexpr double kMargin = 2, kRow = 14, kGap = 4;
  static constexpr std::array<const char*, 4> kFills = {"#0072b2", "#e69f00", "#dddddd", "#f7f7f7"};

  void add(std::string& path, double left, double width) const {
    path += fmt::format("M{:.2f} {:.0f}h{:.2f}v{}h-{:.2f}z", left, top_, width, kRow, width);
  }
  void end_outline(double from) {
    if (left_ - from >= 0.01) add(outline_, from, left_ - from);
  }

  /// The segment, and nothing is left of it.
  void write(const std::string& title) {
    out_ += fmt::format("<g><title>{}</title>", html_escape(title));
    for (std::size_t shade = 0; shade < kFills.size(); ++shade)
      path(wide_[shade], fmt::format("fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"", kFills[shade]));
    for (std::size_t shade = 0; shade < kFills.size(); ++shade)
      path(thin_[shade], fmt::format("fill=\"{}\"", kFills[shade]));
    path(waste_, "fill=\"#d55e00\"");
    path(outline_, "fill=\"none\" stroke=\"#555\" stroke-width=\"0.7\"");
    out_ += "</g>\n";
  }
  void path(std::string& rectangles, const std::string& look) {
    if (!rectangles.empty()) out_ += fmt::format("<path d=\"{}\" {}/>", rectangles, look);
    rectangles.clear();
  }

  const double scale_;
  double left_ = kMargin, top_ = 2;
  std::array<std::string, 4> wide_, thin_;  ///< by shade; between wide blocks a line is seen
  std::string waste_, outline_;
  std::string out_;
};

}  // namespace

std::string svg_segments(const std::vector<SvgBar>& bars, double bytes_per_row) {
  SegmentText text(std::max(1.0, bytes_per_row));
  for (const SvgBar& bar : bars) text.segment(bar);
  return in_frame(text.finish());
}

}  // namespace tenon
