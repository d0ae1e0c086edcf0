// Programs that are called for what they print: sbatch, squeue.
#pragma once

#include <tenon/cli/process/spawn.h>

#include <sys/types.h>

#include <string>
#include <vector>

namespace tenon::cli {

struct CommandResult {
  Ending ending;
  std::string output;  ///< standard output and standard error
  bool is_good() const { return ending.exit_code == 0 && ending.signal == 0; }
};

/// Runs a program that PATH leads to and waits for it. Throws Error where it cannot be started: "sbatch: not found".
CommandResult output_of(const std::vector<std::string>& words);

/// Starts one in a process group of its own with our standard error, its standard output going there too. Throws Error
/// where it cannot be started.
pid_t start_command(const std::vector<std::string>& words);

/// Words of a text, by blanks.
std::vector<std::string> words_of(const std::string& text);

}  // namespace tenon::cli
