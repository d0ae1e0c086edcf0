// What the program says: results to stdout, remarks for people to stderr.
#pragma once

#include <string_view>

namespace tenon::cli {

/// Writes results to stdout, at once; lines of a table for people that are longer than the terminal are broken between
/// words. Throws Error when that fails (a full disk, a closed pipe).
void print(std::string_view text);
/// The same, every byte as it is: for what programs read, as TOML or a script.
void print_exactly(std::string_view text);

/// Writes a line for people to stderr, broken between words where the terminal is narrower.
void say(std::string_view line);

}  // namespace tenon::cli
