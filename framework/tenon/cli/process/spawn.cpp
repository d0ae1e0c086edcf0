// posix_spawn.
#include <tenon/cli/process/spawn.h>

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
#include <string_view>

namespace tenon::cli {

namespace {

/// Our variables, where none of these stands in their place.
std::vector<char*> environment_with(const std::vector<std::string>& own) {
  std::vector<char*> variables;
  for (const std::string& text : own) variables.push_back(const_cast<char*>(text.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool is_replaced = std::ranges::any_of(own, [&](const std::string& one) {
      return text.starts_with(std::string_view(one).substr(0, one.find('=') + 1));
    });
    if (!is_replaced) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

std::string Ending::signal_text() const {
  if (signal == 0) return {};
  return fmt::format("signal {} ({})", signal, signal_name(signal));
}

Ending ending_of(int status) {
  if (WIFSIGNALED(status)) return {static_cast<int>(ExitCode::kFailed), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

pid_t spawn(const std::vector<std::string>& words, const SpawnOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables = environment_with(options.variables);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  const auto lead = [&](std::optional<int> from, int to) {
    if (!from) {
      ::posix_spawn_file_actions_addopen(&actions, to, "/dev/null", O_WRONLY, 0);
    } else if (*from != to) {
      ::posix_spawn_file_actions_adddup2(&actions, *from, to);
    }
  };
  lead(options.output, STDOUT_FILENO);
  lead(options.error, STDERR_FILENO);
  if (options.has_own_group) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int problem = (options.searches_path ? ::posix_spawnp : ::posix_spawn)(
      &child, words.front().c_str(), &actions, &attributes, arguments.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem == ENOENT && options.searches_path)
    throw Error(fmt::format("{}: there is no such program in PATH", words.front()));
  if (problem != 0) throw Error(fmt::format("cannot start {}: {}", words.front(), std::strerror(problem)));
  return child;
}

}  // namespace tenon::cli
