// BiasedLock: a mutex that costs the thread that nearly always takes it two plain stores.
//
// Note [Bias]
// After a thread has taken the lock a few hundred times in a row it owns it: from then on it says "I am in", looks
// whether it is barred, and is in. Any other thread bars it, makes every thread of the process pass a barrier
// (membarrier, some microseconds), waits for the owner to be out, and ends the ownership: a lock that threads share is
// a spin lock. Where there is no membarrier, nobody ever owns it. The owner alone unbars, holding the lock: so
// ownership needs no ordering beyond that.
// One thread only may ever own a lock, again and again if need be. A former owner can be stopped for any length of time
// between finding its name on the lock and saying "I am in": if the lock were another's by then, and not barred, both
// would be in, or the one would take back what the other had said.
//
// Note [Asymmetric barrier]
// The owner says that it is in and then looks whether it is barred; whoever wants it out bars it and then looks whether
// it is in. For one of the two to see the other, the processor must not move the look before the word. The owner, who
// comes millions of times, leaves its barrier to the other side, which comes rarely.
#pragma once

#include <tenon/memory/concurrent/heavy_barrier.h>
#include <tenon/memory/concurrent/spin_lock.h>

#include <atomic>
#include <thread>

namespace tenon {

/// Sections are short, or rare: a waiter spins before it sleeps. Guards make owners: they are for the thread whose lock
/// it is, and keep in a register how the lock was got. lock() and try_lock() are for everybody else, such as one who
/// takes many locks to add up what they guard, and never make an owner.
class BiasedLock {
 public:
  class Guard {
   public:
    [[gnu::always_inline]] explicit Guard(BiasedLock& lock) noexcept : lock_(lock), as_owner_(lock.enter(true)) {}
    /// After try_enter_owned().
    struct Entered {};
    [[gnu::always_inline]] Guard(BiasedLock& lock, Entered) noexcept : lock_(lock), as_owner_(true) {}
    [[gnu::always_inline]] ~Guard() { lock_.leave(as_owner_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    BiasedLock& lock_;
    const bool as_owner_;
  };

  /// False where it takes more than the owner's few steps: then a Guard does. Else leave_owned() has to follow.
  [[gnu::always_inline]] bool try_enter_owned() noexcept {
    return owner_.load(std::memory_order_relaxed) == __builtin_thread_pointer() && enter_as_owner();
  }
  [[gnu::always_inline]] void leave_owned() noexcept { leave(true); }

  void lock() noexcept { as_owner_ = enter(false); }
  /// Every lock of a range, with one barrier for all of them. `lock_of` gives an element's.
  template <class Range, class LockOf>
  static void lock_all(Range&& range, LockOf lock_of) noexcept {
    bool has_owners = false;
    for (auto&& each : range) has_owners |= lock_of(each).begin_lock();
    if (has_owners) heavy_barrier();
    for (auto&& each : range) lock_of(each).finish_lock();
  }
  void unlock() noexcept { leave(as_owner_); }

  /// False where anyone holds it, this thread included, and where another thread owns it.
  bool try_lock() noexcept {
    if (owner_.load(std::memory_order_relaxed) == __builtin_thread_pointer()) {
      if (inside_.load(std::memory_order_relaxed)) return false;
      if (enter_as_owner()) return as_owner_ = true;
    }
    if (!mutex_.try_lock()) return false;
    if (barred_.load(std::memory_order_relaxed)) {
      as_owner_ = false;
      return true;
    }
    mutex_.unlock();
    return false;
  }

 private:
  static constexpr int kTurnsToOwn = 256;

  /// Whether the lock was got as its owner.
  [[gnu::always_inline]] bool enter(bool may_become_owner) noexcept {
    // The address of the thread's control block: unique among the living, and a dead owner is in no section.
    const void* const me = __builtin_thread_pointer();
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
      if (enter_as_owner()) [[likely]]
        return true;
    }
    return enter_shared(me, may_become_owner);
  }
  [[gnu::always_inline]] bool enter_as_owner() noexcept {
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!barred_.load(std::memory_order_acquire)) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  [[gnu::always_inline]] void leave(bool as_owner) noexcept {
    if (as_owner) [[likely]]
      inside_.store(false, std::memory_order_release);
    else
      mutex_.unlock();
  }

  /// True where another thread owns it: a heavy barrier has to follow. finish_lock() always has.
  bool begin_lock() noexcept {
    if (owner_.load(std::memory_order_relaxed) == __builtin_thread_pointer() && enter_as_owner()) return false;
    mutex_.lock();
    return bar();
  }
  void finish_lock() noexcept {
    // Nobody but the owner says that it is inside.
    const bool is_owner = owner_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
    const bool as_owner = is_owner && inside_.load(std::memory_order_relaxed);
    if (!as_owner) {
      wait_for_owner();
      last_ = nullptr;
    }
    as_owner_ = as_owner;
  }

  /// Holding the mutex. True where another thread owned it, who may still be inside.
  bool bar() noexcept {
    if (barred_.load(std::memory_order_relaxed)) return false;
    barred_.store(true, std::memory_order_seq_cst);
    return true;
  }
  void wait_for_owner() noexcept {
    while (inside_.load(std::memory_order_seq_cst)) std::this_thread::yield();
  }

  [[gnu::noinline]] bool enter_shared(const void* me, bool may_become_owner) noexcept {
    mutex_.lock();
    if (bar()) {
      heavy_barrier();
      wait_for_owner();
    }
    if (last_ != me) {
      last_ = me;
      turns_ = 0;
      return false;
    }
    if (!may_become_owner || ++turns_ < kTurnsToOwn || !may_own(me)) return false;
    // From here on it holds the lock as its owner, as if it had come in that way.
    turns_ = 0;
    inside_.store(true, std::memory_order_relaxed);
    owner_.store(me, std::memory_order_relaxed);
    barred_.store(false, std::memory_order_release);
    mutex_.unlock();
    return true;
  }

  bool may_own(const void* me) const noexcept {
    const void* const owner = owner_.load(std::memory_order_relaxed);
    return (owner == nullptr || owner == me) && has_heavy_barrier();
  }

  std::atomic<const void*> owner_{nullptr};  ///< set once
  std::atomic<bool> inside_{false};
  std::atomic<bool> barred_{true};  ///< no thread owns it
  bool as_owner_ = false;           ///< how lock() got in; the holder's alone, as is what follows
  int turns_ = 0;
  const void* last_ = nullptr;
  SpinLock mutex_;
};

}  // namespace tenon
