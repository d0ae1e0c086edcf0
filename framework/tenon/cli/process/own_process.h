// This program run again in a process of its own, so that a crash there is a fact to report here.
#pragma once

#include <tenon/cli/process/spawn.h>

#include <sys/types.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// Runs `tenon ARGUMENTS…` in our environment and waits. What it says is dropped: how it ends is what is asked for.
Ending try_silently(const std::vector<std::string>& arguments);

/// Starts `tenon ARGUMENTS…` in a process group of its own, so that Ctrl-C reaches us alone (interrupt.h hands it on),
/// with our stderr, its stdout dropped, and these variables (NAME=VALUE) instead of ours.
pid_t start_again(const std::vector<std::string>& arguments, const std::vector<std::string>& variables);

/// Waits for any of our children: which, and how it ended.
struct Ended {
  pid_t child = 0;
  Ending ending;
};
Ended wait_for_child();

}  // namespace tenon::cli
