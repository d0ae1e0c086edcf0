// Programs in processes of their own, and how they end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct Ending {
  int exit_code = 0;  ///< 1 where a signal ended it
  int signal = 0;     ///< 0: none
  /// "signal 11 (SIGSEGV)"; empty without a signal.
  std::string signal_text() const;
};

/// Of what waitpid says.
Ending ending_of(int status);

struct SpawnOptions {
  bool searches_path = false;          ///< the first word is a name that PATH leads to
  bool has_own_group = false;          ///< so that Ctrl-C reaches us alone
  std::optional<int> output, error;    ///< descriptors of ours; none: what is written there is dropped
  std::vector<std::string> variables;  ///< NAME=VALUE, instead of ours
};

/// Starts the program of the first word, without standard input. Throws Error where it cannot be started.
pid_t spawn(const std::vector<std::string>& words, const SpawnOptions& options);

}  // namespace tenon::cli
