// Starting this program again.
#include <tenon/cli/process/own_process.h>
#include <tenon/core/error.h>
#include <tenon/core/process/child_process.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace tenon::cli {

std::string Ending::signal_text() const {
  if (signal == 0) return {};
  return fmt::format("signal {} ({})", signal, signal_name(signal));
}

namespace {

struct Start {
  bool drops_stderr = false;
  bool has_own_group = false;
  std::vector<std::string> variables;  ///< NAME=VALUE
};

pid_t start(const std::vector<std::string>& arguments, const Start& how) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> variables;
  for (const std::string& own : how.variables) variables.push_back(const_cast<char*>(own.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool is_replaced = std::ranges::any_of(how.variables, [&](const std::string& own) {
      return text.starts_with(std::string_view(own).substr(0, own.find('=') + 1));
    });
    if (!is_replaced) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (how.drops_stderr) ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (how.has_own_group) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &actions, &attributes, words.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw Error(fmt::format("cannot start {}: {}", program, std::strerror(problem)));
  return child;
}

/// Waits for that child, or any of ours with -1.
Ended wait_for(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, 0)) < 0) {
    if (errno != EINTR) throw Error(fmt::format("lost a child process: {}", std::strerror(errno)));
  }
  if (WIFSIGNALED(status)) return {ended, {static_cast<int>(ExitCode::kFailed), WTERMSIG(status)}};
  return {ended, {WEXITSTATUS(status), 0}};
}

}  // namespace

Ending try_silently(const std::vector<std::string>& arguments) {
  return wait_for(start(arguments, {.drops_stderr = true, .has_own_group = false, .variables = {}})).ending;
}

pid_t start_again(const std::vector<std::string>& arguments, const std::vector<std::string>& variables) {
  return start(arguments, {.drops_stderr = false, .has_own_group = true, .variables = variables});
}

Ended wait_for_child() { return wait_for(-1); }

}  // namespace tenon::cli
