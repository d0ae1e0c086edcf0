// Files are told apart by device and inode, so that links, "./x" and "< x" are seen through.
#include <tenon/cli/command_files.h>

#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/process/standard_output.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStream = "-";

/// Of a regular file that is there; `descriptor` is what "-" stands for.
struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};
std::optional<Identity> identity(const std::string& name, int descriptor) {
  struct stat status {};
  const int code = name == kStream ? ::fstat(descriptor, &status) : ::stat(name.c_str(), &status);
  if (code != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

/// "-", or another name of what standard output is: "/dev/stdout" of a pipe, "x" of "> x".
bool is_standard_output(const std::string& name) {
  struct stat named {
  }, standard{};
  if (name == kStream) return true;
  if (::stat(path_of_output(name).c_str(), &named) != 0 || ::fstat(standard_output(), &standard) != 0) return false;
  const bool keeps_bytes = S_ISREG(named.st_mode) || S_ISFIFO(named.st_mode) || S_ISSOCK(named.st_mode);
  return keeps_bytes && named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

/// What an output would replace, in words; empty when it replaces nothing that is needed.
std::string replaced(const std::string& output, const CommandFiles& files) {
  const std::optional<Identity> mine = identity(path_of_output(output), standard_output());
  if (!mine) return {};
  for (const std::string& input : files.read) {
    if (identity(input, STDIN_FILENO) == mine)
      return input == kStream ? "what standard input comes from" : "what this command reads (" + input + ")";
  }
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    if (identity(plugin.path.string(), -1) == mine) return "the plugin '" + plugin.name + "', which is in use";
  }
  return {};
}

/// Whether that file can be written, now, before the work: by beginning to.
void try_to_write(const std::string& output) {
  std::error_code absent;
  if (fs::is_directory(output, absent))
    throw ConfigError(fmt::format("cannot write {0}: it is a folder; name a file, as {1}", output,
                                  (fs::path(output) / "NAME").string()));
  if (fs::exists(output, absent)) {  // where its folder takes no file, beginning to write would empty it
    if (::access(output.c_str(), W_OK) != 0)
      throw ConfigError(fmt::format("cannot write {}: {}", output, std::strerror(errno)));
    return;
  }
  try {
    const AtomicFile file{fs::path(output)};  // which leaves nothing unless it is committed
  } catch (const Error& problem) {
    throw ConfigError(problem.what());
  }
}

bool is_same(const std::string& a, const std::string& b) {
  std::error_code absent;
  return fs::weakly_canonical(a, absent) == fs::weakly_canonical(b, absent) || fs::equivalent(a, b, absent);
}

}  // namespace

bool uses_standard_output(const CommandFiles& files) { return std::ranges::any_of(files.written, is_standard_output); }

void check_files(const CommandFiles& files) {
  if (std::ranges::count(files.read, kStream) > 1)
    throw ConfigError("-: standard input is named twice, and can be read once: give a file's name for the other");
  if (std::ranges::count_if(files.written, is_standard_output) > 1)
    throw ConfigError("-: standard output takes one of the outputs: give a file's name for the others");
  for (std::size_t i = 0; i < files.written.size(); ++i) {
    const std::string& output = files.written[i];
    if (output.empty()) continue;
    if (const std::string what = replaced(output, files); !what.empty()) {
      throw ConfigError(fmt::format("{}: is {}; choose another name for the output",
                                    output == kStream ? "standard output" : output, what));
    }
    if (output == kStream) continue;
    std::error_code absent;
    const fs::path folder = fs::path(output).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, absent))
      throw ConfigError(fmt::format("cannot write {}: there is no folder {}", output, folder.string()));
    try_to_write(output);
    if (fs::exists(output, absent) && !fs::is_regular_file(output, absent)) continue;  // a device, a pipe
    for (std::size_t j = 0; j < i; ++j) {
      if (!files.written[j].empty() && is_same(output, files.written[j]))
        throw ConfigError(fmt::format("{}: is the name of two outputs", output));
    }
  }
}

}  // namespace tenon::cli
