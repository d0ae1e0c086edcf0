// Handing out thread slots, and taking them back when a thread ends.
#include <tenon/memory/thread_slot.h>

#include <bitset>
#include <mutex>

namespace tenon::detail {

constinit thread_local __attribute__((tls_model("initial-exec"))) int thread_slot_or_none = -1;

namespace {

struct SlotTable {
  std::mutex mutex;
  std::bitset<kThreadSlots> taken;
};

SlotTable& slots() {
  static auto* table = new SlotTable;  // never destroyed: threads may end after main
  return *table;
}

struct Lease {
  int slot = kSharedThreadSlot;
  ~Lease() {
    // Frees in later destructors of this thread count in the shared slot.
    thread_slot_or_none = kSharedThreadSlot;
    if (slot == kSharedThreadSlot) return;
    std::lock_guard lock(slots().mutex);
    slots().taken.reset(static_cast<std::size_t>(slot));
  }
};

}  // namespace

int claim_thread_slot() noexcept {
  static thread_local Lease lease;
  if (thread_slot_or_none >= 0) return thread_slot_or_none;
  {
    std::lock_guard lock(slots().mutex);
    for (int slot = 0; slot < kSharedThreadSlot; ++slot) {
      if (slots().taken.test(static_cast<std::size_t>(slot))) continue;
      slots().taken.set(static_cast<std::size_t>(slot));
      lease.slot = slot;
      break;
    }
  }
  thread_slot_or_none = lease.slot;
  return lease.slot;
}

}  // namespace tenon::detail
