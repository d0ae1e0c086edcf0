// Handing out thread slots, and taking them back when a thread ends.
#include <tenon/memory/concurrent/thread_slot.h>

#include <bitset>
#include <mutex>

namespace tenon::detail {

constinit thread_local int thread_slot_or_none = -1;

std::atomic<int> thread_slots_claimed{0};

namespace {

struct SlotTable {
  std::mutex mutex;
  std::bitset<kThreadSlots> taken;
};

SlotTable& slots() {
  static auto* table = new SlotTable;  // never destroyed: threads may end after main
  return *table;
}

/// The thread's lease has ended, and with it soon the thread.
constexpr int kEnded = -2;

struct Lease {
  int slot = kSharedThreadSlot;
  ~Lease() {
    thread_slot_or_none = kEnded;
    if (slot == kSharedThreadSlot) return;
    std::lock_guard lock(slots().mutex);
    slots().taken.reset(static_cast<std::size_t>(slot));
  }
};

}  // namespace

int claim_thread_slot() noexcept {
  int slot = kSharedThreadSlot;
  // What a later destructor of this thread frees is counted in the shared slot.
  if (thread_slot_or_none != kEnded) {
    static thread_local Lease lease;
    std::lock_guard lock(slots().mutex);
    for (lease.slot = 0; lease.slot < kSharedThreadSlot; ++lease.slot)
      if (!slots().taken.test(static_cast<std::size_t>(lease.slot))) break;
    if (lease.slot != kSharedThreadSlot) slots().taken.set(static_cast<std::size_t>(lease.slot));
    slot = lease.slot;
  }
  int claimed = thread_slots_claimed.load(std::memory_order_relaxed);
  while (claimed <= slot && !thread_slots_claimed.compare_exchange_weak(claimed, slot + 1)) {
  }
  return thread_slot_or_none = slot;
}

}  // namespace tenon::detail
