// The files that a command line names. No output is an input of the same command; each standard stream is used once.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

struct CommandFiles {
  std::vector<std::string> read;     ///< histories, baselines, configurations; "-" is standard input
  std::vector<std::string> written;  ///< "-" is standard output; empty: not asked for
};

/// Before anything is written, with the plugins of the command loaded: throws ConfigError where an output would replace
/// what is read (a plugin in use too), or another output, where it cannot be written (its folder is not there, it is a
/// folder itself, the disk takes no file), and where two files are the same standard stream.
void check_files(const CommandFiles& files);

/// Whether one of the outputs is standard output, under whatever name: nothing else may be written there then.
bool uses_standard_output(const CommandFiles& files);

}  // namespace tenon::cli
