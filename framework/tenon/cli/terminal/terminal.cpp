// Asking the terminal, and the variables that overrule it (no-color.org, bixense.com/clicolors).
#include <tenon/cli/terminal/terminal.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tenon::cli {

namespace {

constexpr std::size_t kFewestColumns = 20;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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
  if (::isatty(descriptor) != 1) return 0;
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

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1 && variable("TERM") != "dumb"; }

Screen screen_of(int descriptor) {
  const std::size_t columns = columns_of(descriptor);
  return {.columns = columns == 0 ? 0 : std::max(columns, kFewestColumns), .has_colour = has_colour(descriptor)};
}

}  // namespace tenon::cli
