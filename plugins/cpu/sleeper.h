// A counter that a thread sleeps on until it changes. As std::atomic's wait and notify, without their sched_yield: on a
// busy machine that gives a time slice of milliseconds away, where the wait is for microseconds.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace tenon::cpu {

class Sleeper {
 public:
  explicit Sleeper(std::uint32_t value = 0) noexcept : value_(value) {}

  std::uint32_t load() const noexcept { return value_.load(std::memory_order_acquire); }
  void store(std::uint32_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

  /// Adds `change`, modulo 2^32; the new value.
  std::uint32_t add(std::uint32_t change) noexcept { return value_.fetch_add(change) + change; }

  /// Wakes the thread that sleeps, if there is one. To be called after a change.
  void wake() noexcept {
    if (sleeps_.load()) ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps while the value is `seen`; may return early. For one thread at a time.
  void sleep(std::uint32_t seen) noexcept {
    // Either wake() sees that this thread sleeps, or the system sees that the value has changed.
    sleeps_.store(true);
    if (value_.load() == seen) ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    sleeps_.store(false);
  }

 private:
  std::atomic<std::uint32_t> value_;
  std::atomic<bool> sleeps_{false};
};
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the system waits on the value itself");

}  // namespace tenon::cpu
