// CallBoard: the call that each thread has under way, in memory that a watcher, a signal handler or another process may
// read. Zeros are an empty board.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/concurrent/thread_slot.h>
#include <tenon/memory/watch/call.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace tenon {

struct alignas(64) CallSlot {
  std::atomic<std::uint32_t> count;  ///< odd: a call is under way
  std::atomic<std::int32_t> thread;  ///< the kernel's number for it
  CallFacts facts;
  bool is_under_way() const noexcept { return (count.load(std::memory_order_acquire) & 1U) != 0; }
};

class TENON_API CallBoard {
 public:
  /// Null for a thread beyond the slots: nobody sees its calls. A thread's first call gives it a signal stack.
  CallSlot* begins(const CallFacts& facts) noexcept;
  static void ended(CallSlot* slot) noexcept {
    if (slot != nullptr) slot->count.fetch_add(1, std::memory_order_release);
  }
  /// What that thread has under way; null: nothing.
  const CallSlot* under_way(std::int32_t thread) const noexcept;
  const std::array<CallSlot, kThreadSlots>& slots() const noexcept { return slots_; }

 private:
  std::array<CallSlot, kThreadSlots> slots_;
};

}  // namespace tenon
