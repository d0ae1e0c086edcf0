// Tables as aligned text. Declared in table.h. By hand: Debian packages no library for tables of text in C++, and the
// rules of what people see (units, columns that say nothing, what a narrow screen leaves out) are ours.
#include <tenon/core/text/utf8.h>
#include <tenon/report/table.h>
#include <tenon/report/text/display_width.h>
#include <tenon/report/text/table_layout.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

struct TextColumn {
  std::string title;
  std::vector<std::string> cells;
  std::vector<Tone> tones;
  std::size_t cell_width = 0;  ///< of the widest cell
  bool is_right = false;
  int importance = 0;
  bool is_name = false;
};

namespace {

/// Cells of one line, side by side.
class LineWriter {
 public:
  explicit LineWriter(const Screen& screen) : screen_(screen) {}

  void add(const std::string& text, std::size_t width, bool is_right, Tone tone) {
    const std::size_t space = width - std::min(width, display_width(text));
    if (is_right) pending_ += space;
    if (!text.empty()) {
      line_ += std::string(pending_, ' ') + toned(text, tone, screen_);
      pending_ = 0;
    }
    pending_ += kColumnGap + (is_right ? 0 : space);
  }
  std::string take() {
    pending_ = 0;
    return std::move(line_) + "\n";
  }

 private:
  const Screen& screen_;
  std::string line_;
  std::size_t pending_ = 0;  ///< spaces before the next text; none at the end of a line
};

/// One row, of as many lines as its longest cell needs: `cells` are the lines of each.
std::string row_text(const std::vector<std::vector<std::string>>& cells, const std::vector<std::size_t>& widths,
                     const std::vector<TextColumn>& columns, const std::vector<Tone>& tones, const Screen& screen) {
  std::size_t height = 1;
  for (const auto& lines : cells) height = std::max(height, lines.size());
  std::string out;
  for (std::size_t line = 0; line < height; ++line) {
    LineWriter writer(screen);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool has_line = line < cells[c].size();
      writer.add(has_line ? cells[c][line] : "", widths[c], columns[c].is_right, tones[c]);
    }
    out += writer.take();
  }
  return out;
}

std::string side_by_side(const std::vector<TextColumn>& columns, const std::vector<std::size_t>& widths,
                         std::size_t rows, const Screen& screen) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    cells.push_back(lines_of_cell(columns[c].title, widths[c]));
    height = std::max(height, cells.back().size());
  }
  for (auto& lines : cells) lines.insert(lines.begin(), height - lines.size(), "");  // titles stand on the rule
  std::string out = row_text(cells, widths, columns, std::vector<Tone>(columns.size(), Tone::kTitle), screen);
  LineWriter rule(screen);
  for (const std::size_t width : widths) rule.add(std::string(width, '-'), width, false, Tone::kFaint);
  out += rule.take();
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<Tone> tones;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      cells[c] = lines_of_cell(columns[c].cells[r], widths[c]);
      tones.push_back(columns[c].tones[r]);
    }
    out += row_text(cells, widths, columns, tones, screen);
  }
  return out;
}

/// A row as a line for each column.
std::string turned(const std::vector<TextColumn>& columns, std::size_t row, const Screen& screen) {
  std::size_t titles = 0, values = 0;
  for (const TextColumn& column : columns) {
    titles = std::max(titles, display_width(column.title));
    values = std::max(values, display_width(column.cells[row]));
  }
  if (screen.columns != 0) {
    titles = std::min(titles, screen.columns / 2);
    values = screen.columns - titles - kColumnGap;
  }
  const std::vector<TextColumn> sides(2);
  std::string out;
  for (const TextColumn& column : columns) {
    out += row_text({lines_of_cell(column.title, titles), lines_of_cell(column.cells[row], values)}, {titles, values},
                    sides, {Tone::kTitle, column.tones[row]}, screen);
  }
  return out;
}

}  // namespace

std::vector<TextColumn> Table::shown_columns() const {
  std::vector<TextColumn> columns;
  for (const std::size_t c : columns_for_people()) {
    TextColumn column{.title = columns_[c].title,
                      .cells = shown_cells(c),
                      .is_right = has_numbers(c),
                      .importance = columns_[c].importance,
                      .is_name = columns_[c].is_name};
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      column.cells[r] = printable(column.cells[r]);
      column.cell_width = std::max(column.cell_width, display_width(column.cells[r]));
      const auto tone = tones_.find({r, c});
      column.tones.push_back(tone == tones_.end() ? Tone::kPlain : tone->second);
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string Table::lines(const Screen& screen) const {
  const std::vector<TextColumn> columns = shown_columns();
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) out += (r == 0 ? "" : "\n") + turned(columns, r, screen);
  return out;
}

std::string Table::text(const Screen& screen) const {
  std::vector<TextColumn> columns = shown_columns();
  std::vector<ColumnNeed> needs;
  for (const TextColumn& column : columns)
    needs.push_back({column.title, column.cell_width, !column.is_right, column.importance, column.is_name});
  TableLayout layout = lay_out(needs, rows_.size(), screen.columns);
  if (layout.is_turned) return lines(screen);
  std::vector<std::string> left_out;
  for (std::size_t c = columns.size(); c-- > 0;) {
    if (layout.widths[c] != 0) continue;
    left_out.insert(left_out.begin(), columns[c].title);
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(c));
    layout.widths.erase(layout.widths.begin() + static_cast<std::ptrdiff_t>(c));
  }
  std::string out = side_by_side(columns, layout.widths, rows_.size(), screen);
  if (left_out.empty()) return out;
  const std::string note =
      fmt::format("Not shown in {} columns: {}. --wide shows all.", screen.columns, fmt::join(left_out, ", "));
  return out + toned(wrapped(note, screen.columns), Tone::kFaint, screen) + "\n";
}

}  // namespace tenon
