// `mpirun … tenon …` as a user types it, and the processes of its ranks.
#pragma once

#include "cli/program.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

namespace tenon::test {

/// Seconds in which a run that fails has ended: patience, questions, and machines under load.
inline constexpr double kBound = 60;

struct Launched {
  int code = -1;  ///< 128 + number for a signal
  double seconds = 0;
  std::string text;  ///< stdout and stderr
};

/// `words` as a shell has them: "-n 4 tenon run exp.toml", with `tenon` for the program that was built; killed after
/// two minutes. Runs in the folder.
inline Launched mpirun(const Folder& folder, const std::string& words) {
  const auto start = std::chrono::steady_clock::now();
  const std::string line = "cd '" + folder.path().string() +
                           "' && tenon=" TENON_PROGRAM " && timeout -s KILL 120 bash " TENON_SOURCE_DIR
                           "/tests/mpi/mpirun.sh " +
                           words + " 2>&1 </dev/null";
  Launched launched;
  FILE* const pipe = ::popen(line.c_str(), "r");
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) launched.text.append(part, got);
  const int status = ::pclose(pipe);
  launched.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  launched.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return launched;
}

/// The process of that rank whose current folder is `folder`; 0: there is none.
inline pid_t process_of_rank(const Folder& folder, int rank) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process <= 0 || std::filesystem::read_symlink(entry.path() / "cwd", ignored) != folder.path()) continue;
    const std::string environment = '\0' + read_bytes(entry.path() / "environ");
    const bool is_rank = environment.find('\0' + wanted + '\0') != std::string::npos;
    if (is_rank && std::filesystem::read_symlink(entry.path() / "exe", ignored).filename() == "tenon") return process;
  }
  return 0;
}

/// mpirun with these words, whose rank gets the signal once `file` is there.
inline Launched mpirun_with_signal(const Folder& folder, const std::string& words, const std::string& file, int rank,
                                   int signal) {
  auto launched = std::async(std::launch::async, [&] { return mpirun(folder, words); });
  while (!std::filesystem::exists(folder.path() / file) &&
         launched.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
  }
  if (const pid_t process = process_of_rank(folder, rank); process > 0) ::kill(process, signal);
  return launched.get();
}

/// 6000 letters to learn from, the same each time.
inline std::string drawn_text() {
  std::string text;
  std::uint32_t state = 7;
  for (int i = 0; i < 6000; ++i) text += static_cast<char>('a' + ((state = state * 1664525 + 1013904223) >> 24) % 9);
  return text;
}

}  // namespace tenon::test
