// What the tests of recorded texts share: a text as one line of a table, and tables in every format.
#pragma once

#include "support/recorded_table.h"

#include <tenon/replay/engine/fnv.h>
#include <tenon/report/table.h>

#include <string>

namespace tenon::test {

inline constexpr char kEnvironment[] = "{\"host\":\"x\"}";
inline constexpr TableFormat kFormats[] = {TableFormat::kTable, TableFormat::kJson, TableFormat::kCsv,
                                           TableFormat::kMarkdown};

inline std::string in_all_formats(const Table& table) {
  std::string all;
  for (const TableFormat format : kFormats) all += render(table, format, kEnvironment);
  return all;
}

/// "0123456789abcdef 1234 its beginning": a number for all of the text, its length, and what people know it by.
inline std::string outcome_of(const std::string& text) {
  replay::Fnv1a hash;
  hash.bytes(text.data(), text.size());
  std::string beginning = text.substr(0, 60);
  for (char& c : beginning)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = ' ';
  while (beginning.ends_with(' ')) beginning.pop_back();
  return replay::hex64(hash.value()) + " " + std::to_string(text.size()) + " " + beginning;
}

}  // namespace tenon::test
