// Lines that are made to be copied into a shell: they stand on lines of their own, two spaces in, "  tenon run
// exp.toml".
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

/// Whether the line is one: two spaces, then a program that messages of Tenon name, as tenon, cmake or export.
TENON_API bool is_command_line(std::string_view line);

/// The line for a screen, broken between words with " \" where it is longer, so that a shell reads it as one. A word
/// that is longer, and what `export` sets, stay whole. 0 columns: the line as it is.
TENON_API std::string continued(std::string_view line, std::size_t columns);

/// A word as a shell takes it: quoted where it has to be.
TENON_API std::string shell_word(const std::string& text);

}  // namespace tenon
