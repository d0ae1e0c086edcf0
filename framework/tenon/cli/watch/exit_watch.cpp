// The program's own _exit and _Exit stand before those of the C library, for plugins too.
#include <tenon/cli/watch/exit_watch.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
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

[[noreturn]] void end_process(int code) {
  tell(code);
  while (true) ::syscall(SYS_exit_group, code);
}

}  // namespace

ExitWatch::ExitWatch(Told told) {
  owner = ::getpid();
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
// NOLINTEND(bugprone-reserved-identifier)
