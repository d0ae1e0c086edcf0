// Tables: their cells, and all formats but the aligned text, which is in table_text.cpp.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/io/utf8.h>
#include <tenon/report/table.h>
#include <tenon/report/text/byte_unit.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {

namespace {

bool is_number(const TableCell& cell) {
  return !std::holds_alternative<std::string>(cell) && !std::holds_alternative<bool>(cell) &&
         !std::holds_alternative<std::monostate>(cell);
}

/// Shortest decimal that reads back exactly; null for what JSON lacks (nan, inf).
std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string for_machines(const TableCell& cell, bool json) {
  struct Writer {
    bool json;
    std::string operator()(std::monostate) const { return json ? "null" : ""; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(Bytes bytes) const { return fmt::format("{}", bytes.value); }
    std::string operator()(Real real) const { return number(real.value); }
    std::string operator()(Ratio ratio) const { return number(ratio.value); }
    std::string operator()(const std::string& text) const { return json ? json_quote(text) : csv_field(text); }
    std::string number(double value) const {
      const std::string text = json_number(value);
      return text == "null" && !json ? "" : text;
    }
    static std::string csv_field(const std::string& text) {
      if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
      std::string quoted = "\"";
      for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
      return quoted + "\"";
    }
  };
  return std::visit(Writer{json}, cell);
}

}  // namespace

TableFormat parse_table_format(std::string_view text) {
  const std::vector<std::string> names = {"table", "json", "csv", "markdown"};
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw ConfigError(fmt::format("unknown format \"{}\"; known: {}", text, fmt::join(names, ", ")));
  }
  return static_cast<TableFormat>(found - names.begin());
}

std::string json_quote(std::string_view text) { return replay::quoted_json(text); }

std::string show(const TableCell& cell) {
  struct Writer {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(bool value) const { return value ? "yes" : "no"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(Bytes bytes) const {
      return (bytes.value < 0 ? "-" : "") + format_bytes(static_cast<std::size_t>(std::abs(bytes.value)));
    }
    std::string operator()(Real real) const {
      return std::isfinite(real.value) ? fmt::format("{:.{}f}", real.value, real.digits) : "-";
    }
    std::string operator()(Ratio ratio) const {
      return std::isfinite(ratio.value) ? fmt::format("{:.1f} %", 100 * ratio.value) : "-";
    }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Writer{}, cell);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<TableCell> cells) {
  TENON_ASSERT(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

void Table::tone(std::string_view key, Tone tone) {
  const auto column = std::ranges::find(columns_, key, &Column::key);
  TENON_ASSERT(!rows_.empty() && column != columns_.end(), "a tone is for a cell of the last row");
  tones_[{rows_.size() - 1, static_cast<std::size_t>(column - columns_.begin())}] = tone;
}

std::vector<std::size_t> Table::columns_for_people() const {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const bool known = rows_.empty() || std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) {
                         return !std::holds_alternative<std::monostate>(row[c]);
                       });
    if (columns_[c].for_people && known) shown.push_back(c);
  }
  return shown;
}

bool Table::has_numbers(std::size_t column) const {
  return std::ranges::any_of(rows_, [&](const auto& row) { return is_number(row[column]); });
}

std::vector<std::string> Table::shown_cells(std::size_t column) const {
  std::vector<std::int64_t> sizes;
  for (const auto& row : rows_) {
    if (const auto* size = std::get_if<Bytes>(&row[column])) sizes.push_back(size->value);
  }
  const ByteUnit unit(sizes);
  std::vector<std::string> cells;
  for (const auto& row : rows_) {
    const auto* size = std::get_if<Bytes>(&row[column]);
    cells.push_back(size != nullptr ? unit.show(size->value) : show(row[column]));
  }
  return cells;
}

std::string Table::markdown() const {
  const std::vector<std::size_t> shown = columns_for_people();
  const auto escaped = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) text.replace(at, 1, "&lt;");
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  std::string out = "|";
  for (const std::size_t c : shown) out += " " + escaped(columns_[c].title) + " |";
  out += "\n|";
  std::vector<std::string> lines(rows_.size(), "|");
  for (const std::size_t c : shown) {
    out += has_numbers(c) ? "---:|" : "---|";
    const std::vector<std::string> cells = shown_cells(c);
    for (std::size_t r = 0; r < cells.size(); ++r) lines[r] += " " + escaped(cells[r]) + " |";
  }
  out += "\n";
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (std::size_t c = 0; c < columns_.size(); ++c) out += (c == 0 ? "" : ",") + columns_[c].key;
  out += "\n";
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c == 0 ? "" : ",") + for_machines(row[c], false);
    out += "\n";
  }
  return out;
}

std::string Table::json_rows(int indent) const {
  const std::string outer(static_cast<std::size_t>(indent), ' ');
  std::string out = "[";
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    out += (r == 0 ? "\n" : ",\n") + outer + "{";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      out += fmt::format("{}{}: {}", c == 0 ? "" : ", ", json_quote(columns_[c].key), for_machines(rows_[r][c], true));
    }
    out += "}";
  }
  return out + (rows_.empty() ? "]" : "\n]");
}

std::string render(const Table& table, TableFormat format, const std::string& environment_json) {
  switch (format) {
    case TableFormat::kTable:
      return table.text(output_screen());
    case TableFormat::kMarkdown:
      return table.markdown();
    case TableFormat::kCsv:
      return table.csv();
    case TableFormat::kJson:
      break;
  }
  return fmt::format("{{\"schema_version\": 1,\n\"environment\": {},\n\"rows\": {}}}\n", environment_json,
                     table.json_rows());
}

}  // namespace tenon
