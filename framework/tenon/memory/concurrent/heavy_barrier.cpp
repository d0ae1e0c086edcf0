// membarrier(2), registered once for the process.
#include <tenon/memory/concurrent/heavy_barrier.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  if (has_heavy_barrier()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace tenon
