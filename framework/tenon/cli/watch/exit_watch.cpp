// The program's own _exit, _Exit and syscall stand before those of the C library, for plugins too.
#include <tenon/cli/watch/exit_watch.h>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>

namespace tenon::cli {

namespace {

using Told = void (*)(int code);
std::atomic<Told> told_now{nullptr};
pid_t owner = 0;

void tell(int code) {
  const Told told = ::getpid() == owner ? told_now.exchange(nullptr) : nullptr;
  if (told != nullptr) told(code);
}

/// The C library's; every caller that finds it first finds the same.
using SystemCall = long (*)(long number, ...);
std::atomic<SystemCall> next_syscall{nullptr};

SystemCall libc_syscall() {
  SystemCall found = next_syscall.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<SystemCall>(::dlsym(RTLD_NEXT, "syscall"));
    next_syscall.store(found, std::memory_order_relaxed);
  }
  return found;
}

[[noreturn]] void end_process(int code) {
  tell(code);
  while (true) ::syscall(SYS_exit_group, code);
}

}  // namespace

ExitWatch::ExitWatch(Told told) {
  owner = ::getpid();
  libc_syscall();  // not first in a handler of a signal
  static const bool is_prepared = [] {
    ::on_exit([](int code, void*) { tell(code); }, nullptr);
    return std::at_quick_exit([] { tell(-1); }) == 0;
  }();
  static_cast<void>(is_prepared);
  told_now = told;
}

ExitWatch::~ExitWatch() { told_now = nullptr; }

}  // namespace tenon::cli

// NOLINTBEGIN(bugprone-reserved-identifier): these are the names
extern "C" __attribute__((noreturn, visibility("default"))) void _exit(int code) { tenon::cli::end_process(code); }
extern "C" __attribute__((noreturn, visibility("default"))) void _Exit(int code) noexcept {
  tenon::cli::end_process(code);
}
/// As in the C library: so many words are passed on, whatever the call takes.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  constexpr int kMostArguments = 6;
  long words[kMostArguments];
  va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  if (number == SYS_exit_group) tenon::cli::tell(static_cast<int>(words[0]));
  return tenon::cli::libc_syscall()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
// NOLINTEND(bugprone-reserved-identifier)
