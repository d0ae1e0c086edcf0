// Cutting lines into fields, and fields into numbers.
#include <tenon/core/text/trimmed.h>
#include <tenon/replay/formats/io/csv_table.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view kBlanks = " \t\"";

bool is_remark(std::string_view line) { return trimmed(line, kBlanks).empty() || line.front() == '#'; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

CsvTable::CsvTable(InputFile& input) : input_(input) {
  std::string_view line;
  while (input_.line(line)) {
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (!is_remark(line)) break;
  }
  if (line.find('\r') != std::string_view::npos)
    input_.fail_line("lines end in carriage returns alone; convert them: tr '\\r' '\\n' < IN > OUT");
  split(line);
  for (std::size_t i = 0; i < fields_.size(); ++i) columns_.try_emplace(lower_case(fields_[i]), i);
  column_count_ = fields_.size();
}

int CsvTable::column(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    const auto found = columns_.find(name);
    if (found != columns_.end()) return static_cast<int>(found->second);
  }
  return -1;
}

int CsvTable::need(std::initializer_list<const char*> names) const {
  const int index = column(names);
  if (index < 0) input_.fail_line(std::string("the header line has no column '") + *names.begin() + "'");
  return index;
}

bool CsvTable::next() {
  std::string_view line;
  do {
    if (!input_.line(line)) return false;
  } while (is_remark(line));
  split(line);
  if (fields_.size() != column_count_) {
    input_.fail_line("a row of " + std::to_string(fields_.size()) + " fields under a header of " +
                     std::to_string(column_count_));
  }
  return true;
}

std::uint64_t CsvTable::number(int column, const char* what) const { return number(field(column), what, 10); }

std::uint64_t CsvTable::hexadecimal(int column, const char* what) const {
  std::string_view text = field(column);
  if (text == "(nil)" || text == "nullptr" || text == "nil") return 0;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return number(text, what, 16);
}

std::uint64_t CsvTable::number(std::string_view text, const char* what, int base) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc::result_out_of_range || (base == 10 && value > kMaxBytes)) {
    input_.fail_line(std::string(what) + " does not fit in 63 bits: " + std::string(text.substr(0, 40)));
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    input_.fail_line(std::string("expected ") + what + ", not '" + std::string(text.substr(0, 40)) + "'");
  }
  return value;
}

void CsvTable::split(std::string_view line) {
  fields_.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields_.push_back(trimmed(line.substr(0, comma), kBlanks));
    if (comma == std::string_view::npos) return;
    if (fields_.size() > 256) input_.fail_line("more than 256 fields");
    line.remove_prefix(comma + 1);
  }
}

std::string csv_header(std::string_view head) {
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size()));
  while (head.starts_with('#')) head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
  return lower_case(head.substr(0, std::min(head.find_first_of("\r\n"), std::size_t{400})));
}

}  // namespace tenon::replay
