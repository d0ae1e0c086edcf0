// The heavy side of owner locks: membarrier, and waiting for an owner to leave.
#include <tenon/memory/stack/owner_lock.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace tenon {

namespace {

#if defined(__SANITIZE_THREAD__)
bool register_barrier() noexcept { return false; }
#else
bool register_barrier() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}
#endif

}  // namespace

bool has_heavy_barrier() noexcept {
  static const bool registered = register_barrier();
  return registered;
}

void heavy_barrier() noexcept {
  // Without membarrier the owners have barriers of their own, and the store that barred them was one too.
  if (has_heavy_barrier()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void OwnerLock::wait_until_out() const noexcept {
  for (int spins = 0; inside_.load(std::memory_order_seq_cst); ++spins) {
    if (spins > 100) std::this_thread::yield();
  }
}

}  // namespace tenon
