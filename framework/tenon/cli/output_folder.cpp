// Folders and files of results.
#include <tenon/cli/output_folder.h>

#include <tenon/core/error.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

namespace tenon::cli {

namespace fs = std::filesystem;

std::string plain_name(const std::string& text, char instead) {
  std::string plain = text;
  for (char& c : plain) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!keep) c = instead;
  }
  return plain;
}

fs::path make_output_folder(const fs::path& wanted, const std::string& name) {
  fs::path folder = wanted;
  if (folder.empty()) {
    const std::string stem =
        fmt::format("{}-{:%Y%m%d-%H%M%S}", plain_name(name, '-'), fmt::localtime(std::time(nullptr)));
    folder = fs::path("tenon-out") / stem;
    for (int n = 2; fs::exists(folder); ++n) folder = fs::path("tenon-out") / fmt::format("{}-{}", stem, n);
  }
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    throw ConfigError(
        fmt::format("cannot make the folder {}: {}; choose another with --out", folder.string(), problem.message()));
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace tenon::cli
