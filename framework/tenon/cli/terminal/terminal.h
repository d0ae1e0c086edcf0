// The terminal that a stream is: its width and its colours, from the system and the environment.
//
// Under mpirun it is the terminal of mpirun, where that has one: what it writes to a file is plain.
//
//   COLUMNS          the width, whatever the terminal says, and for a file or a pipe too; those are any width without
//   NO_COLOR         no colours, when it is not empty
//   CLICOLOR_FORCE   colours in a file or a pipe too, when it is neither empty nor 0
//   CLICOLOR=0, TERM=dumb   no colours
#pragma once

#include <tenon/report/text/screen.h>

namespace tenon::cli {

/// Of a file descriptor: standard_output(), STDERR_FILENO.
Screen screen_of(int descriptor);

/// How large a terminal is.
struct TerminalSize {
  int rows = 24;
  int columns = 80;
};

/// As the terminal says, whatever the environment wants; the usual size where it does not.
TerminalSize size_of_terminal(int descriptor);

/// A terminal that understands escapes.
bool is_terminal(int descriptor);

}  // namespace tenon::cli
