// Starting this program again.
#include <tenon/cli/own_process.h>
#include <tenon/core/error.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tenon::cli {

std::string Ending::signal_text() const {
  if (signal == 0) return {};
  const char* name = ::sigabbrev_np(signal);
  return fmt::format("signal {} (SIG{})", signal, name == nullptr ? "?" : name);
}

Ending run_again(const std::vector<std::string>& arguments, bool drop_stdout) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (drop_stdout) ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw Error(fmt::format("cannot start {}: {}", program, std::strerror(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(fmt::format("lost a process of ours: {}", std::strerror(errno)));
  }
  if (WIFSIGNALED(status)) return {static_cast<int>(ExitCode::kFailed), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace tenon::cli
