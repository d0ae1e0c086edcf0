// Two stores and two counts a call.
#include <tenon/memory/watch/call_board.h>

#include <tenon/memory/watch/crash_note.h>

#include <unistd.h>

namespace tenon {

namespace {
constinit thread_local std::int32_t number_of_thread = 0;
}

CallSlot* CallBoard::begins(const CallFacts& facts) noexcept {
  const int at = thread_slot();
  if (at == kSharedThreadSlot) [[unlikely]]
    return nullptr;
  CallSlot& slot = slots_[static_cast<std::size_t>(at)];
  if (number_of_thread == 0) [[unlikely]] {
    give_thread_a_signal_stack();
    number_of_thread = ::gettid();
  }
  slot.thread.store(number_of_thread, std::memory_order_relaxed);
  slot.facts = facts;
  slot.count.fetch_add(1, std::memory_order_release);
  return &slot;
}

const CallSlot* CallBoard::under_way(std::int32_t thread) const noexcept {
  for (const CallSlot& slot : slots_)
    if (slot.thread.load(std::memory_order_relaxed) == thread && slot.is_under_way()) return &slot;
  return nullptr;
}

}  // namespace tenon
