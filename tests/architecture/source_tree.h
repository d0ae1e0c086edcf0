// The project's own source files, for the tests that hold the tree against the design.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

inline const std::filesystem::path kRoot = TENON_SOURCE_DIR;

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Every file below `folder` (relative to the root; "" for all of it) with one of the extensions, all if none is given.
/// What a build or a run leaves behind is not part of the tree.
inline std::vector<std::filesystem::path> files_below(std::string_view folder,
                                                      const std::vector<std::string>& extensions = {}) {
  std::vector<std::filesystem::path> found;
  if (!std::filesystem::exists(kRoot / folder)) return found;
  for (auto it = std::filesystem::recursive_directory_iterator(kRoot / folder); it != std::filesystem::end(it); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "build" || name == ".git" || name == "tenon-out" || name == ".cache")) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file() || it->is_symlink() || name == ".git") continue;  // a file in a worktree
    bool wanted = extensions.empty();
    for (const auto& extension : extensions) wanted |= it->path().extension() == extension;
    if (wanted) found.push_back(it->path());
  }
  return found;
}

inline std::vector<std::filesystem::path> sources_below(std::string_view folder) {
  return files_below(folder, {".h", ".cpp", ".cu", ".cuh"});
}

/// The first group of each match of a regular expression.
inline std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), expression); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}

/// An included file of the framework by its path as it is written, read once.
inline const std::string& text_of_include(const std::string& path) {
  static std::map<std::string, std::string> texts;
  const auto [found, is_new] = texts.try_emplace(path);
  if (is_new) found->second = read_text(kRoot / "framework" / path);
  return found->second;
}

/// For messages: the path as seen from the root.
inline std::string shown(const std::filesystem::path& path) {
  return std::filesystem::relative(path, kRoot).generic_string();
}

}  // namespace tenon::test
