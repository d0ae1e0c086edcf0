// CSV files of histories: a header line that names the columns, rows under it, remarks behind '#'. A library would read
// the fields; what takes the code are the complaints with their line, the limits, and RMM's ways to write a pointer.
#pragma once

#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// The header line's columns by lower-case name, and the fields of one row. Its complaints are TraceErrors.
class CsvTable {
 public:
  /// Reads up to the header line.
  explicit CsvTable(InputFile& input);

  /// Index of the first of these names that the header has, or -1.
  int column(std::initializer_list<const char*> names) const;
  /// The same; a header without any of them is refused.
  int need(std::initializer_list<const char*> names) const;

  /// The next row; false at the end of the file.
  bool next();
  std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }
  /// `what` is for the complaint: "a size in bytes".
  std::uint64_t number(int column, const char* what) const;
  /// "0x7f…", "7f…" or "(nil)". printf's %p has the prefix, other writers leave it out.
  std::uint64_t hexadecimal(int column, const char* what) const;

 private:
  std::uint64_t number(std::string_view text, const char* what, int base) const;
  void split(std::string_view line);

  InputFile& input_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string_view> fields_;
  std::size_t column_count_ = 0;
};

/// The first line of a file that is neither empty nor a remark, in lower case: what tells one CSV file from another.
std::string csv_header(std::string_view head);

}  // namespace tenon::replay
