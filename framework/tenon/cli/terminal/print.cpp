// Both streams, with what is shown on the terminal out of the way.
#include <tenon/cli/terminal/print.h>

#include <tenon/cli/terminal/on_terminal.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/core/error.h>
#include <tenon/core/files/write_all.h>
#include <tenon/core/process/standard_output.h>
#include <tenon/report/text/display_width.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tenon::cli {

void print(std::string_view text) { print_exactly(wrapped(text, output_screen().columns)); }

void print_exactly(std::string_view text) {
  clear_terminal();
  if (!write_all(standard_output(), text)) throw Error(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

void say(std::string_view line) {
  clear_terminal();
  fmt::print(stderr, "{}\n", wrapped(line, screen_of(STDERR_FILENO).columns));
}

}  // namespace tenon::cli
