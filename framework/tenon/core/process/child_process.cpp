// pipe or socketpair, fork, waitpid. By hand: Boost.Process starts other programs; these children go on in this one.
#include <tenon/core/process/child_process.h>

#include <tenon/core/error.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace tenon {

namespace {

/// What leaves `work` ends the child: it must not go on as if it were its parent.
[[noreturn]] void be_the_child(const std::function<void(int)>& work, int answer_to) noexcept {
  work(answer_to);
  ::close(answer_to);
  std::fflush(nullptr);
  ::_exit(0);
}

/// ends[0] stays here, ends[1] is the child's.
ChildProcess fork_with(const int (&ends)[2], std::string_view what, const std::function<void(int)>& work) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    be_the_child(work, ends[1]);
  }
  const int problem = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    throw Error("cannot start a process for " + std::string(what) + ": " + std::strerror(problem));
  }
  return {.pid = pid, .answer = ends[0]};
}

}  // namespace

ChildProcess fork_to_answer(std::string_view what, const std::function<void(int answer_to)>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  return fork_with(ends, what, work);
}

ChildProcess fork_to_talk(std::string_view what, const std::function<void(int peer)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
  return fork_with(ends, what, work);
}

int wait_for_end(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return std::string("SIG") + (name == nullptr ? "?" : name);
}

void leave_no_core_file() noexcept {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace tenon
