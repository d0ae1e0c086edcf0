// PinnedCache: PyTorch's allocator of page-locked host memory. Blocks of powers of two, cached by size, the last freed
// one first; never cut, never joined.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/factory.h>

namespace tenon {

/// The policy "pinned", with the options `compat`, `max_round_threshold` and `max_cached_size` as PyTorch has them.
/// Part of the library and in no list of allocators to choose from: it serves host memory beside whatever serves the
/// device.
TENON_API const AllocatorInfo& pinned_cache();

}  // namespace tenon
