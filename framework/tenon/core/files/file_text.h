// The bytes of a file as one text.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tenon {

/// Empty where the file is missing or cannot be read.
inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tenon
