// Ctrl-C, SIGTERM and SIGHUP: the first asks the work to end where it can, a second one ends the process at once.
#pragma once

#include <tenon/core/error.h>

#include <sys/types.h>

#include <string>

namespace tenon::cli {

/// From here on for the rest of the process. What was ignored stays so (nohup, a job in the background of a script).
/// `promise` is said when the first signal comes, "ending after this step"; empty: nothing is. A file beyond a limit of
/// its size is an error like a full disk from here on, rather than the end of the process.
void catch_interrupts(const std::string& promise);

/// Another promise from here on, where one was made: what the first signal brings about now.
void change_promise(const std::string& promise);

/// Nothing is promised any more: of a first signal that comes from here on nothing is said, and interrupt_signal()
/// knows every one of which something was.
void end_promise() noexcept;

/// From here on a second SIGTERM is not another one: mpirun sends several to each rank when one of them has died, and
/// SIGKILL a second later.
void take_terms_for_one() noexcept;

/// The signal that asked; 0: none.
int interrupt_signal() noexcept;

/// Another rank was asked by this signal, and this one ends with it.
void note_signal_of_another_rank(int signal) noexcept;

/// "SIGINT", "SIGINT to another rank".
std::string interrupt_name();

/// Of a process that a signal ended or asked to end: 128 and its number, as shells have it, 130 for Ctrl-C.
constexpr int exit_code_of_signal(int signal) { return 128 + signal; }
/// That of the signal that asked, this process or another rank.
ExitCode interrupted_exit_code();

/// A child in a process group of its own gets the first signal as well, and is killed by the second, as long as this
/// lives. At most 256 at a time; what is beyond goes without.
class ForwardedInterrupts {
 public:
  explicit ForwardedInterrupts(pid_t child) noexcept;
  ~ForwardedInterrupts();
  ForwardedInterrupts(const ForwardedInterrupts&) = delete;
  ForwardedInterrupts& operator=(const ForwardedInterrupts&) = delete;

 private:
  int place_ = -1;
};

/// When the process that started this one is gone, however it died, this one is asked to end as by a first SIGTERM:
/// once, however often the kernel says so. Before catch_interrupts it ends at once. Throws Error when it is gone
/// already.
void end_with_parent(pid_t parent);

}  // namespace tenon::cli
