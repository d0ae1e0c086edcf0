// What has to wait until the operator under way has been called: memory that it may have taken an address of.
#pragma once

#include <tenon/core/export.h>

#include <atomic>
#include <functional>

namespace tenon {

/// Runs `what`, once, when this thread has called its next kernel, or the one whose operands it is collecting. `what`
/// must not throw. Runs never where the thread calls none any more.
TENON_API void after_kernel(std::function<void()> what);

namespace detail {
/// Of all threads.
inline std::atomic<int> waiting_for_kernels{0};
}  // namespace detail

/// Whether some thread waits for a kernel.
inline bool is_something_after_kernels() { return detail::waiting_for_kernels.load(std::memory_order_relaxed) != 0; }
/// What this thread waits with.
void run_after_kernel();

}  // namespace tenon
