// heavy_barrier: a memory barrier on every running thread of the process, so that one side of a handshake needs none.
#pragma once

#include <tenon/core/export.h>

namespace tenon {

/// Whether there is such a barrier: the kernel has membarrier(2), and no ThreadSanitizer watches, which cannot see it.
/// Decided once for the process.
TENON_API bool has_heavy_barrier() noexcept;
/// Takes some microseconds. Does nothing where has_heavy_barrier() is false.
TENON_API void heavy_barrier() noexcept;

}  // namespace tenon
