// pipe or socketpair, fork, waitpid. By hand: Boost.Process starts other programs; these children go on in this one.
//
// A process that the child's work starts must not keep the answer open, or write into it: a program that it becomes
// (exec) finds the descriptor closed, and a fork finds /dev/null in its place. A fork that runs no handlers (_Fork,
// clone) does keep it, so that the end of the pipe is never waited for alone.
#include <tenon/core/process/child_process.h>

#include <tenon/core/error.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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

int own_answer = -1;  ///< of this process, if it is such a child

/// In a fork of the child.
void give_up_the_answer() {
  if (own_answer < 0) return;
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere >= 0) {
    ::dup3(nowhere, own_answer, O_CLOEXEC);
    ::close(nowhere);
  } else {
    ::close(own_answer);
  }
  own_answer = -1;
}

/// What leaves `work` ends the child: it must not go on as if it were its parent.
[[noreturn]] void be_the_child(const std::function<void(int)>& work, int answer_to) noexcept {
  static const int is_prepared = ::pthread_atfork(nullptr, nullptr, &give_up_the_answer);
  static_cast<void>(is_prepared);
  own_answer = answer_to;
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
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  return fork_with(ends, what, work);
}

ChildProcess fork_to_talk(std::string_view what, const std::function<void(int peer)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
  return fork_with(ends, what, work);
}

bool has_ended(pid_t child) noexcept {
  siginfo_t info{};
  const int problem = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return problem == 0 && info.si_pid == child;
}

bool take_answer(const ChildProcess& child, std::string& answer) {
  const bool is_over = has_ended(child.pid);  // asked first: what it wrote by then is there to be read
  pollfd wait{child.answer, POLLIN, 0};
  char part[65536];
  while (::poll(&wait, 1, 0) > 0) {
    const ssize_t count = ::read(child.answer, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    answer.append(part, static_cast<std::size_t>(count));
    if (!is_over) return false;
  }
  return is_over;
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
