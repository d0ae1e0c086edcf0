// Pictures for offline reports: inline SVG, no script, no font or file from elsewhere.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Text for HTML and SVG: & < > " are escaped.
TENON_API std::string html_escape(std::string_view text);

/// A paragraph of plain text, of the page's class "note" or "bad".
std::string html_paragraph(std::string_view text, std::string_view style = "note");

struct SvgLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x ascending
  bool is_filled = false;                         ///< area under it
  bool is_dashed = false;
};

/// A vertical line.
struct SvgMark {
  double x = 0;
  std::string name;
  bool is_failure = false;  ///< in red, named on top
};

struct SvgChart {
  std::string title;
  std::string x_label;
  bool y_is_bytes = true;
  std::vector<SvgLine> lines;
  double y_low = 0;  ///< where the axis begins
  std::vector<SvgMark> marks;
  double y_limit = 0;  ///< a horizontal line, such as the capacity; 0 = none
  std::string y_limit_name;
};

/// A line chart with axes, grid and legend.
TENON_API std::string svg_chart(const SvgChart& chart);

struct SvgBlock {
  double bytes = 0;
  int shade = 0;            ///< 0 in use, 1 waiting, 2 free, 3 unmapped
  double wasted_bytes = 0;  ///< of a block in use: rounding
};
struct SvgBar {
  std::string title;
  std::vector<SvgBlock> blocks;
};

/// Segments one after the other, row by row like words, each as long as it is large.
TENON_API std::string svg_segments(const std::vector<SvgBar>& bars, double bytes_per_row);

/// An <svg> of ours as a file of its own.
TENON_API std::string svg_file(const std::string& svg);

}  // namespace tenon
