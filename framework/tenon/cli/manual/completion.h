// Completion scripts for shells, from the program's own table of verbs and options.
#pragma once

#include <tenon/cli/manual/verb_facts.h>

#include <string>

namespace tenon::cli {

/// The whole script for `source`, or for the shell's folder of completions.
std::string bash_completion(const VerbFacts& program);
std::string zsh_completion(const VerbFacts& program);
std::string fish_completion(const VerbFacts& program);

}  // namespace tenon::cli
