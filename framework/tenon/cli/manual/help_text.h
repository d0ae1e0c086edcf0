// The help of a verb as it is printed: CLI11's, in lines that fit the terminal.
#pragma once

#include <tenon/cli/verb.h>

#include <cstddef>
#include <string>

namespace tenon::cli {

/// For a terminal of `columns` (0: any width). A command of an example that is longer is continued with a backslash, so
/// that it can be pasted.
std::string help_text(Verb verb, std::size_t columns);

}  // namespace tenon::cli
