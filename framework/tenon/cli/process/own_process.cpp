// Starting this program again.
#include <tenon/cli/process/own_process.h>
#include <tenon/core/error.h>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tenon::cli {

namespace {

pid_t start(const std::vector<std::string>& arguments, const SpawnOptions& how) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return spawn(words, how);
}

/// Waits for that child, or any of ours with -1.
Ended wait_for(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0) {
    if (errno != EINTR) throw Error(fmt::format("lost a child process: {}", std::strerror(errno)));
  }
  return {ended, ending_of(status)};
}

}  // namespace

Ending try_silently(const std::vector<std::string>& arguments) { return wait_for(start(arguments, {})).ending; }

pid_t start_again(const std::vector<std::string>& arguments, const std::vector<std::string>& variables) {
  return start(arguments, {.has_own_group = true, .output = {}, .error = STDERR_FILENO, .variables = variables});
}

Ended wait_for_child() { return wait_for(-1); }

}  // namespace tenon::cli
