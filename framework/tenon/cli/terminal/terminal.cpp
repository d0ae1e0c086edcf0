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

constexpr std::size_t kUsualColumns = 80;  // of a terminal that does not say
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
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

bool has_colour(int descriptor) {
  if (!variable("NO_COLOR").empty()) return false;
  if (const std::string_view force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  return variable("CLICOLOR") != "0" && is_terminal(descriptor);
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1 && variable("TERM") != "dumb"; }

Screen screen_of(int descriptor) {
  const std::size_t columns = columns_of(descriptor);
  return {.columns = columns == 0 ? 0 : std::max(columns, kFewestColumns), .has_colour = has_colour(descriptor)};
}

}  // namespace tenon::cli
