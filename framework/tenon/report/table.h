// Tables: one set of rows, written for people (aligned text), for machines (JSON, CSV) or for a pull request
// (Markdown).
#pragma once

#include <tenon/core/export.h>
#include <tenon/report/text/screen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon {

enum class TableFormat { kTable, kJson, kCsv, kMarkdown };

/// "table", "json", "csv", "markdown". Throws ConfigError that lists them.
TENON_API TableFormat parse_table_format(std::string_view text);

/// Bytes and other whole numbers, as an integer in JSON and CSV and in a unit for people.
struct Bytes {
  std::int64_t value = 0;
};
/// 0.25 is shown as 25.0 % to people and stays 0.25 for machines.
struct Ratio {
  double value = 0;
};
/// Shown with `digits` after the point to people, exact to machines.
struct Real {
  double value = 0;
  int digits = 2;
};
/// monostate: unknown or not meaningful; "-" to people, null in JSON, empty in CSV.
using TableCell = std::variant<std::monostate, bool, std::int64_t, Real, Bytes, Ratio, std::string>;
inline TableCell bytes_cell(std::uint64_t bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

/// The text that people see of a cell alone; in a table all sizes of a column have one unit.
TENON_API std::string show(const TableCell& cell);

/// A column as it is shown; in table_text.cpp.
struct TextColumn;

struct Column {
  std::string key;         ///< machine name, snake_case with its unit: "peak_reserved_bytes"
  std::string title;       ///< "peak reserved"
  bool for_people = true;  ///< false: only in JSON and CSV
  int importance = 0;      ///< a narrow screen leaves out the least important first, of equal ones the rightmost
  bool is_name = false;    ///< tells the rows apart, as the first column does: never left out
};

class TENON_API Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// One cell for each column.
  void add_row(std::vector<TableCell> cells);
  /// The colour of a cell of the last row, by its column's key.
  void tone(std::string_view key, Tone tone);
  bool empty() const { return rows_.empty(); }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<TableCell>>& rows() const { return rows_; }

  /// Aligned with two spaces between columns, numbers to the right, sizes of a column in one unit; ends in a newline.
  /// Columns that are "-" in every row are left out. What a narrow screen takes away is in text/table_layout.h; a line
  /// under the table names the columns that are left out for it.
  std::string text(const Screen& screen = {}) const;
  /// A line for each column of each row: "title  value"; an empty one between two rows.
  std::string lines(const Screen& screen = {}) const;
  std::string markdown() const;
  std::string csv() const;
  /// A JSON array of objects.
  std::string json_rows(int indent = 2) const;

 private:
  std::vector<std::size_t> columns_for_people() const;
  std::vector<std::string> shown_cells(std::size_t column) const;
  std::vector<TextColumn> shown_columns() const;
  bool has_numbers(std::size_t column) const;
  std::vector<Column> columns_;
  std::vector<std::vector<TableCell>> rows_;
  std::map<std::pair<std::size_t, std::size_t>, Tone> tones_;  ///< by row and column
};

/// The whole output of a verb: the table itself, fitted to output_screen(), or
/// {"schema_version":1,"environment":…,"rows":…} where `environment_json` is runtime's environment block
/// (runtime/environment.h).
TENON_API std::string render(const Table& table, TableFormat format, const std::string& environment_json);

/// A JSON string literal with quotes.
TENON_API std::string json_quote(std::string_view text);

}  // namespace tenon
