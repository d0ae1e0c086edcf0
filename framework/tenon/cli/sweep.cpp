// Starting a cell and making a row of whatever becomes of it.
#include <tenon/cli/sweep.h>

#include <tenon/core/error.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace tenon::cli {

namespace {

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  return fmt::format("signal {} (SIG{})", number, name == nullptr ? "?" : name);
}

pid_t start(const std::vector<std::string>& arguments) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);  // its table; ours has the row
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw Error(fmt::format("cannot start {}: {}", program, std::strerror(problem)));
  return child;
}

}  // namespace

CellOutcome run_cell(const SweepCell& cell) {
  const std::filesystem::path file = cell.folder / "result.json";
  std::error_code ignored;
  std::filesystem::remove(file, ignored);  // an older run's result must not stand in for a crash
  const pid_t child = start(cell.arguments);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(fmt::format("lost the process of a cell: {}", std::strerror(errno)));
  }

  CellOutcome outcome;
  try {
    outcome.summary = read_summary(file);
  } catch (const Error&) {
    outcome.summary.status = "failed";
  }
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    outcome.exit_code = static_cast<int>(ExitCode::kFailed);
    outcome.summary = {};
    outcome.summary.status = number == SIGKILL || number == SIGTERM || number == SIGINT ? "killed" : "crashed";
    outcome.summary.error = "ended by " + signal_text(number);
    if (number == SIGKILL) outcome.summary.error += "; the kernel does this when the host runs out of memory";
    return outcome;
  }
  outcome.exit_code = WEXITSTATUS(status);
  if (outcome.exit_code != 0 && outcome.summary.error.empty()) {
    outcome.summary.status = "failed";
    outcome.summary.error = fmt::format("exit code {}; its messages are above", outcome.exit_code);
  }
  return outcome;
}

}  // namespace tenon::cli
