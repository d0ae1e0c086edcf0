// The slow path: no cached block suffices. In PyTorch's order: collect garbage, a new segment, free oversized blocks
// and try again, flush everything and try again, out of memory.
#include "caching_allocator.h"
#include "split_and_merge.h"

#include <tenon/core/error.h>

namespace tenon::caching {

Block CachingAllocator::allocate_slowly(const Request& request, Arena& arena, std::size_t bytes) {
  const bool large = is_large(bytes);
  LockAll lock(arenas_, peaks_, arena);
  // Another thread may have freed something meanwhile.
  if (const FreeIndex::Place place = find_fit_locked(arena, large, bytes, settings_.expandable); place.block) {
    arena.free[large].erase(place);
    return hand_out_locked(arena, large, place.block, place.bytes, bytes, request, settings_.expandable);
  }
  if (limits_.collects_garbage()) {
    lock.lock_others();
    collect_garbage_locked();
  }
  BlockRecord* block = device_allocate_locked(arena, large, bytes, request);
  if (!block) lock.lock_others();
  if (!block && arena.pool == 0) {
    // What a private pool lends is judged as if expandable segments were off.
    if (BlockRecord* const lent = borrow_locked(request.stream, large, bytes))
      return hand_out_locked(*lent->arena, large, lent, lent->bytes, bytes, request, false);
  }
  if (!block && release_available_locked(arena, large, bytes))
    block = device_allocate_locked(arena, large, bytes, request);
  // 1.13 knows private pools from graph capture only, where nothing may be flushed.
  if (!block && !(compat_1_13_ && pools_.any_open())) {
    release_cached_locked(0, 0);
    ++retries_;
    block = device_allocate_locked(arena, large, bytes, request);
  }
  if (!block) throw OutOfMemory({.requested_bytes = request.bytes});
  return hand_out_locked(arena, large, block, block->bytes, bytes, request, settings_.expandable);
}

/// A block of a private pool that lends what it caches before others run out of memory; it goes back there.
BlockRecord* CachingAllocator::borrow_locked(StreamRef stream, bool large, std::size_t bytes) {
  for (const auto& [id, pool] : pools_.all()) {
    if (!pool.options.use_on_oom) continue;
    const auto arena = pool.arenas.find(stream.id);
    if (arena == pool.arenas.end()) continue;
    if (const FreeIndex::Place place = find_fit_locked(*arena->second, large, bytes, false); place.block) {
      arena->second->free[large].erase(place);
      return place.block;
    }
  }
  return nullptr;
}

/// A block in no index, of at least `bytes`; null when the limit or the device does not allow it. Throws OutOfMemory
/// instead of asking a device that could not give it, where throw_on_cudamalloc_oom is set.
BlockRecord* CachingAllocator::device_allocate_locked(Arena& arena, bool large, std::size_t bytes,
                                                      const Request& request) {
  // What a segment would take counts, even where expandable segments need less.
  const std::size_t segment_bytes = segment_size(settings_, bytes);
  const std::size_t then_reserved = segments_.reserved_bytes() + segment_bytes;
  if (!limits_.allows(then_reserved)) return nullptr;
  if (settings_.throws_before_device_oom && then_reserved > limits_.device_share_bytes())
    throw OutOfMemory({.requested_bytes = request.bytes});
  return settings_.expandable ? expandable_segments_.expand(arena, large, bytes)
                              : segments_.acquire(arena, large, segment_bytes);
}

}  // namespace tenon::caching
