// Starting other programs.
#include <tenon/cli/launch/command.h>

#include <tenon/core/error.h>
#include <tenon/core/process/child_process.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace tenon::cli {

namespace {

/// Its standard output and error go to `output`.
pid_t spawn(const std::vector<std::string>& words, int output, bool has_own_group) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  if (has_own_group) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem == ENOENT) throw Error(fmt::format("{}: there is no such program in PATH", words.front()));
  if (problem != 0) throw Error(fmt::format("cannot start {}: {}", words.front(), std::strerror(problem)));
  return child;
}

}  // namespace

CommandResult output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  pid_t child = 0;
  try {
    child = spawn(words, ends[1], /*has_own_group=*/false);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  CommandResult result;
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t count = ::read(ends[0], bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  const int status = wait_for_end(child);
  if (WIFSIGNALED(status)) {
    result.ending = {static_cast<int>(ExitCode::kFailed), WTERMSIG(status)};
  } else {
    result.ending = {WEXITSTATUS(status), 0};
  }
  return result;
}

pid_t start_command(const std::vector<std::string>& words) { return spawn(words, STDERR_FILENO, true); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace tenon::cli
