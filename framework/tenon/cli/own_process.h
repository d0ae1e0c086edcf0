// This program run again in a process of its own, so that a crash there is a fact to report here.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

struct Ending {
  int exit_code = 0;  ///< 1 where a signal ended it
  int signal = 0;     ///< 0: none
  /// "signal 11 (SIGSEGV)"; empty without a signal.
  std::string signal_text() const;
};

/// Runs `tenon ARGUMENTS…` and waits. It has our environment, our stderr and, unless dropped, our stdout.
Ending run_again(const std::vector<std::string>& arguments, bool drop_stdout);

}  // namespace tenon::cli
