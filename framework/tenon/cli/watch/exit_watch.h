// ExitWatch: a call in the middle of a run that ends this process (exit, _exit …) is reported like a crash.
#pragma once

namespace tenon::cli {

/// While one lives, whoever calls exit(), _exit(), _Exit(), quick_exit() or syscall(SYS_exit_group) in this process,
/// not in its forks, comes by at `told` first, with the code; -1 where nobody knows it. One at a time. The instruction
/// itself in a plugin's own code is seen by no process but a parent, which the cell of a sweep has.
class ExitWatch {
 public:
  explicit ExitWatch(void (*told)(int code));
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;
};

}  // namespace tenon::cli
