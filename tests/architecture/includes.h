// Include lines, as the tests of the architecture read them.
#pragma once

#include "architecture/source_tree.h"

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

/// What a file includes, in order: "tenon/core/error.h", "vector", "arena.h".
inline std::vector<std::string> includes_of(const std::filesystem::path& path) {
  static const std::regex line(R"(^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"])", std::regex::multiline);
  const std::string text = read_text(path);
  std::vector<std::string> includes;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it) {
    includes.push_back((*it)[1]);
  }
  return includes;
}

/// "tenon/memory/allocator.h" -> "memory"; empty for what is not ours, "tenon" for the umbrella header.
inline std::string layer_of_include(std::string_view include) {
  if (!include.starts_with("tenon/")) return "";
  const auto end = include.find('/', 6);
  return end == std::string_view::npos ? "tenon" : std::string(include.substr(6, end - 6));
}

}  // namespace tenon::test
