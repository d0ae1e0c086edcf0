// How wide the columns of a table are on a screen, and which of them are left out of a narrow one.
//
//   wide enough   title and cells in one line each
//   narrower      1. titles are broken into several lines
//                 2. a table of one row is turned: a line for each column
//                 3. long texts are broken into several lines
//                 4. columns are left out, the least important first, of equal ones the rightmost; never the first,
//                    nor another one that tells the rows apart
//                 5. where those alone are left, rows are turned
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tenon {

/// What the layout has to know of a column.
struct ColumnNeed {
  std::string_view title;
  std::size_t cell_width = 0;  ///< of the widest cell
  bool is_text = false;        ///< its cells may be broken
  int importance = 0;
  bool is_name = false;  ///< tells the rows apart, as the first one does
};

struct TableLayout {
  std::vector<std::size_t> widths;  ///< of every column; 0: left out
  bool is_turned = false;           ///< a line for each column of each row
};

inline constexpr std::size_t kColumnGap = 2;

/// For a screen of `columns` (0: any width).
TableLayout lay_out(std::span<const ColumnNeed> needs, std::size_t rows, std::size_t columns);

}  // namespace tenon
