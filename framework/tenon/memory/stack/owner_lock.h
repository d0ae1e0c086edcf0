// OwnerLock: a lock that costs its one owner two plain stores, and everybody else a system call.
//
// Note [Asymmetric barrier]
// The owner says "I am in" and then looks whether it is barred; whoever wants it out bars it and then looks whether it
// is in. For one of the two to see the other, the processor must not move the look before the word. The owner, who
// comes millions of times, leaves its barrier to the other side: membarrier(2) makes every thread of the process pass
// one. Where the kernel has no membarrier, and under ThreadSanitizer, which cannot see it, the owner pays with a locked
// instruction.
#pragma once

#include <tenon/core/export.h>

#include <atomic>

namespace tenon {

/// Whether owners may leave their barriers to heavy_barrier(); decided once for the process.
TENON_API bool has_heavy_barrier() noexcept;
/// A full barrier on every thread of the process that is running.
TENON_API void heavy_barrier() noexcept;

class OwnerLock {
 public:
  explicit OwnerLock(bool cheap = false) : cheap_(cheap) {}

  /// The owner goes in, unless it is barred. A new lock is barred: its owner registers first.
  bool try_enter() noexcept {
    if (cheap_) [[likely]] {
      inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      inside_.exchange(true, std::memory_order_seq_cst);
    }
    if (!barred_.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }

  /// Others: bar every lock that matters, then heavy_barrier() once, then wait for each owner to be out.
  void bar() noexcept { barred_.store(true, std::memory_order_seq_cst); }
  void wait_until_out() const noexcept;
  void unbar() noexcept { barred_.store(false, std::memory_order_release); }

 private:
  const bool cheap_;
  std::atomic<bool> inside_{false};
  std::atomic<bool> barred_{true};
};

}  // namespace tenon
