// What benchmarks of allocators on recorded histories are told: PROGRAM [-a SPEC]... HISTORY...
#pragma once

#include <tenon/core/error.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::bench {

struct HistoryArguments {
  std::vector<std::string> specs;  ///< allocators
  std::vector<std::string> files;  ///< at least one
};

/// `specs` are those where none is named. Throws Error, with the usage, where no history is.
inline HistoryArguments read_history_arguments(int argc, char** argv, std::vector<std::string> specs) {
  HistoryArguments given;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-a" && i + 1 < argc)
      given.specs.emplace_back(argv[++i]);
    else
      given.files.emplace_back(argv[i]);
  }
  if (given.specs.empty()) given.specs = std::move(specs);
  if (given.files.empty()) {
    throw Error("usage: " + std::filesystem::path(argv[0]).filename().string() + " [-a SPEC]... HISTORY...");
  }
  return given;
}

/// A history as a table calls it: its file's name up to the first dot.
inline std::string history_name(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  return name.substr(0, name.find('.'));
}

}  // namespace tenon::bench
