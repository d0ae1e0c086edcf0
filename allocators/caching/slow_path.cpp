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
  BlockRecord* block = device_allocate_locked(arena, large, bytes);
  if (!block) lock.lock_others();
  if (!block && arena.pool == 0) {
    // What a private pool lends is judged as if expandable segments were off.
    if (BlockRecord* const lent = borrow_locked(request.stream, large, bytes))
      return hand_out_locked(*lent->arena, large, lent, lent->bytes, bytes, request, false);
  }
  if (!block && release_available_locked(arena, large, bytes)) block = device_allocate_locked(arena, large, bytes);
  // 1.13 knows private pools from graph capture only, where nothing may be flushed.
  if (!block && !(compat_1_13_ && pools_.any_open())) {
    release_cached_locked(0, 0);
    ++retries_;
    block = device_allocate_locked(arena, large, bytes);
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

/// A block in no index, of at least `bytes`; null when the limit or the device does not allow it.
BlockRecord* CachingAllocator::device_allocate_locked(Arena& arena, bool large, std::size_t bytes) {
  const std::size_t segment_bytes = segment_size(settings_, bytes);
  // What a segment would take counts, even where expandable segments need less.
  if (!limits_.allows(segments_.reserved_bytes() + segment_bytes)) return nullptr;
  return settings_.expandable ? expandable_segments_.expand(arena, large, bytes)
                              : segments_.acquire(arena, large, segment_bytes);
}

}  // namespace tenon::caching
