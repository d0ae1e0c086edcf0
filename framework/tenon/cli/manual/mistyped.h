// What a command line that does not parse may have meant.
#pragma once

#include <tenon/cli/manual/verb_facts.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// The words lead from the program to a verb, as far as they are not options and a verb is needed. Empty when they do;
/// else the complaint: "unknown verb …", with the nearest one; or that an option stands before its verb.
std::string unknown_verb(const VerbFacts& program, const std::vector<std::string>& words);

/// The message for a command line that was refused: why, or the nearest option for an unknown one.
std::string usage_message(const Parsed& refused);

}  // namespace tenon::cli
