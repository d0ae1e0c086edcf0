// ExitWatch: what ends this process with a code of its own, in the middle of a run, is told of as a crash is.
#pragma once

namespace tenon::cli {

/// While one lives, whoever calls exit(), _exit(), _Exit() or quick_exit() in this process, not in its forks, comes by
/// at `told` first, with the code; -1 where nobody knows it. One at a time. A system call of a plugin's own is not
/// seen.
class ExitWatch {
 public:
  explicit ExitWatch(void (*told)(int code));
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;
};

}  // namespace tenon::cli
