// Asking the terminal, and the variables that overrule it (no-color.org, bixense.com/clicolors).
#include <tenon/cli/terminal/terminal.h>

#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace tenon::cli {

namespace {

constexpr std::size_t kFewestColumns = 20;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_rank_of_mpirun() {
  try {
    return rank_environment().launcher == "Open MPI";
  } catch (const ConfigError&) {  // a run says it
    return false;
  }
}

pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');  // of the name, which may hold anything: "4711 (sh) S 4710 …"
  return end == std::string::npos || text.size() < end + 4 ? 0 : std::atoi(text.c_str() + end + 4);
}

/// mpirun gives each rank a terminal of its own, and writes what comes out of it to its own output: that of the first
/// process above this one that has another one.
bool is_forwarded_to_terminal(int descriptor) {
  struct stat own {};
  if (::fstat(descriptor, &own) != 0) return false;
  constexpr int kMostGenerations = 16;
  pid_t above = ::getppid();
  for (int i = 0; i < kMostGenerations && above > 1; ++i, above = parent_of(above)) {
    const std::string output = fmt::format("/proc/{}/fd/1", above);
    struct stat its {};
    if (::stat(output.c_str(), &its) != 0 || !S_ISCHR(its.st_mode)) return false;
    if (its.st_rdev == own.st_rdev) continue;
    const int opened = ::open(output.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const bool is_one = opened >= 0 && ::isatty(opened) == 1;
    if (opened >= 0) ::close(opened);
    return is_one;
  }
  return false;
}

bool is_shown_on_terminal(int descriptor) {
  return ::isatty(descriptor) == 1 && (!is_rank_of_mpirun() || is_forwarded_to_terminal(descriptor));
}

/// Of the environment; 0 when it says nothing useful.
std::size_t wanted_columns() {
  const std::string_view text = variable("COLUMNS");
  std::size_t columns = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return problem == std::errc() && end == text.data() + text.size() ? columns : 0;
}

std::size_t columns_of(int descriptor) {
  if (const std::size_t wanted = wanted_columns(); wanted != 0) return wanted;
  if (!is_shown_on_terminal(descriptor)) return 0;
  return static_cast<std::size_t>(size_of_terminal(descriptor).columns);
}

bool has_colour(int descriptor) {
  if (!variable("NO_COLOR").empty()) return false;
  if (const std::string_view force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  return variable("CLICOLOR") != "0" && is_terminal(descriptor);
}

}  // namespace

TerminalSize size_of_terminal(int descriptor) {
  TerminalSize size;
  winsize said{};
  if (::ioctl(descriptor, TIOCGWINSZ, &said) != 0) return size;
  if (said.ws_row != 0) size.rows = said.ws_row;
  if (said.ws_col != 0) size.columns = said.ws_col;
  return size;
}

bool is_terminal(int descriptor) { return is_shown_on_terminal(descriptor) && variable("TERM") != "dumb"; }

Screen screen_of(int descriptor) {
  const std::size_t columns = columns_of(descriptor);
  return {.columns = columns == 0 ? 0 : std::max(columns, kFewestColumns), .has_colour = has_colour(descriptor)};
}

}  // namespace tenon::cli
