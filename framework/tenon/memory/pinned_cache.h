// PinnedCache: PyTorch's allocator of page-locked host memory. Blocks of powers of two, cached by size, the last freed
// one first; never split, never merged.
//
// A policy inside the library, where others are plugins: a device's host memory is served by it whatever allocator the
// configuration names, and before any plugin is loaded. Allocators cannot be linked here, and the device layer, which
// makes it, may not look up.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/factory.h>

namespace tenon {

/// The policy "pinned", with the options `compat`, `max_round_threshold` and `max_cached_size` as PyTorch has them.
/// Part of the library and in no list of allocators to choose from: it serves host memory beside whatever serves the
/// device.
TENON_API const AllocatorInfo& pinned_cache();

}  // namespace tenon
