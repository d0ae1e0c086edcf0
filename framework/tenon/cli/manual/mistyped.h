// What a command line that does not parse may have meant.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tenon::cli {

/// The words lead from the program to a verb, as far as they are no options and a verb is needed. Empty when they do;
/// else the complaint: "unknown verb …", with the nearest one.
std::string unknown_verb(const CLI::App& program, const std::vector<std::string>& words);

/// The verb that the words lead to. Only where unknown_verb is empty.
const CLI::App& verb_of(const CLI::App& program, const std::vector<std::string>& words);

/// The message for a command line that CLI11 refused: its own, or the nearest option for an unknown one.
std::string usage_message(const CLI::App& verb, const CLI::ParseError& error);

}  // namespace tenon::cli
