// thread_slot: a small number of its own for every running thread, for data that is kept per thread without a map.
#pragma once

#include <atomic>

namespace tenon {

/// Slots 0 to kThreadSlots - 2 belong to one running thread each and are handed on when it ends; the last one is shared
/// by all threads beyond that many.
inline constexpr int kThreadSlots = 32;
inline constexpr int kSharedThreadSlot = kThreadSlots - 1;

namespace detail {
// initial-exec: read on every allocation, so it must not go through __tls_get_addr.
extern constinit thread_local __attribute__((tls_model("initial-exec"))) int thread_slot_or_none;
int claim_thread_slot() noexcept;
/// One more than the highest slot that any thread has had.
extern std::atomic<int> thread_slots_claimed;
}  // namespace detail

inline int thread_slot() noexcept {
  const int slot = detail::thread_slot_or_none;
  return slot >= 0 ? slot : detail::claim_thread_slot();
}

/// Slots from this one on have never been anybody's.
inline int thread_slots_in_use() noexcept { return detail::thread_slots_claimed.load(std::memory_order_acquire); }

}  // namespace tenon
