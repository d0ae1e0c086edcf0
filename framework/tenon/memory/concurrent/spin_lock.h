// SpinLock: for sections of some tens of nanoseconds that two threads rarely want at once. One atomic exchange to lock,
// one store to unlock; a waiter spins briefly, then yields, then sleeps: a section may contain a device call on the
// slow path.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace tenon {

class SpinLock {
 public:
  void lock() {
    if (!taken_.exchange(true, std::memory_order_acquire)) [[likely]]
      return;
    wait();
  }
  bool try_lock() {
    return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void wait() {
    for (int round = 0;; ++round) {
      for (int spin = 0; spin < 64 && taken_.load(std::memory_order_relaxed); ++spin) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      if (!taken_.exchange(true, std::memory_order_acquire)) return;
      if (round > 64)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      else if (round > 4)
        std::this_thread::yield();
    }
  }

  std::atomic<bool> taken_{false};
};

}  // namespace tenon
