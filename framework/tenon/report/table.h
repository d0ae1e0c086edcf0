// Tables: one set of rows, written for people (aligned text), for machines (JSON, CSV) or for a pull request
// (Markdown).
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
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

/// The text that people see.
TENON_API std::string show(const TableCell& cell);

struct Column {
  std::string key;         ///< machine name, snake_case with its unit: "peak_reserved_bytes"
  std::string title;       ///< "peak reserved"
  bool for_people = true;  ///< false: only in JSON and CSV
};

class TENON_API Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// One cell for each column.
  void add_row(std::vector<TableCell> cells);
  bool empty() const { return rows_.empty(); }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<TableCell>>& rows() const { return rows_; }

  /// Aligned with two spaces between columns, numbers to the right; ends in a newline. Columns that are "-" in every
  /// row are left out.
  std::string text() const;
  std::string markdown() const;
  std::string csv() const;
  /// A JSON array of objects.
  std::string json_rows(int indent = 2) const;

 private:
  std::vector<std::size_t> columns_for_people() const;
  std::vector<Column> columns_;
  std::vector<std::vector<TableCell>> rows_;
};

/// The whole output of a verb: the table itself, or {"schema_version":1,"environment":…,"rows":…} where
/// `environment_json` is runtime's environment block (runtime/environment.h).
TENON_API std::string render(const Table& table, TableFormat format, const std::string& environment_json);

/// A JSON string literal with quotes.
TENON_API std::string json_quote(std::string_view text);
/// Shortest decimal that reads back exactly; null for what JSON lacks (nan, inf).
TENON_API std::string json_number(double value);

}  // namespace tenon
