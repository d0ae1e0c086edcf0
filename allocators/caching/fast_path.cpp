// What happens on nearly every call: a cached block is found, split and handed out; a freed one is merged and cached.
#include "caching_allocator.h"
#include "split_and_merge.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <mutex>

namespace tenon::caching {

Block CachingAllocator::allocate(const Request& request) {
  if (request.bytes >= kHugeRequestBytes) throw OutOfMemory({.requested_bytes = request.bytes});
  const bool in_a_pool = pools_.any_open();
  // Frees that waited for a stream come first: this very request may get what they gave back.
  if (deferred_.any_pending() && !(compat_1_13_ && in_a_pool)) process_events();

  const std::size_t bytes = rounds_plainly_ ? round_to_blocks(request.bytes) : round_size(settings_, request.bytes);
  const bool large = is_large(bytes);
  Arena& arena = in_a_pool ? route(request) : arenas_.of(request.stream);
  // See Note [Large and small].
  return large ? allocate_from(arena, true, bytes, request) : allocate_from(arena, false, bytes, request);
}

[[gnu::always_inline]] inline Block CachingAllocator::allocate_from(Arena& arena, bool large, std::size_t bytes,
                                                                    const Request& request) {
  {
    const BiasedLock::Guard lock(arena.mutex);
    if (large && limits_.collects_garbage() && arena.pool == 0) [[unlikely]]
      limits_.count_lookup();
    if (const FreeIndex::Place place = find_fit_locked(arena, large, bytes, settings_.expandable); place.block)
        [[likely]] {
      arena.free[large].erase(place);
      return hand_out_locked(arena, large, place.block, place.bytes, bytes, request, settings_.expandable);
    }
  }
  return allocate_slowly(request, arena, bytes);
}

/// Where the requests of this thread go while any scope of a private pool is open.
Arena& CachingAllocator::route(const Request& request) {
  {
    std::lock_guard registry(arenas_.mutex());
    if (const auto pool = pools_.current()) return pools_.arena_of(*pool, request.stream);
  }
  return arenas_.of(request.stream);
}

/// What a block could become without moving.
static std::size_t extended(const BlockRecord* block) {
  return block->bytes + (can_grow(block) ? block->right->bytes : 0);
}

/// Keep what can still grow for later: of the sufficient blocks take one that is not followed by unmapped space. Where
/// expandable segments are off by now, none of them is taken.
BlockRecord* CachingAllocator::choose_among_expandable_locked(const FreeIndex& free, BlockRecord* block,
                                                              bool with_expandable) const {
  if (!with_expandable) {
    while (block && block->expandable) block = free.after(block);
    return block;
  }
  BlockRecord* const first = block;
  for (BlockRecord* next; block->expandable && (next = free.after(block)) && extended(next) < extended(block);)
    block = next;
  if (expandable_segments_.watcher()) [[unlikely]]
    tell_watcher_locked(free, first, block);
  return block;
}

/// How much shorter the ranges could be before one of the comparisons from `block` to `chosen` came out otherwise. Only
/// a replay, which is one thread, has a watcher: nobody adds a segment meanwhile.
void CachingAllocator::tell_watcher_locked(const FreeIndex& free, BlockRecord* block, const BlockRecord* chosen) const {
  const auto ends_with_range = [](const BlockRecord* p) { return can_grow(p) && !p->right->right; };
  for (;; block = free.after(block)) {
    const BlockRecord* const next = block->expandable ? free.after(block) : nullptr;
    if (!next) return;
    const bool goes_on = extended(next) < extended(block);
    const bool shrinks = ends_with_range(block), next_shrinks = ends_with_range(next);
    if (shrinks != next_shrinks && goes_on == shrinks) {
      const std::size_t spare = goes_on ? extended(block) - extended(next) - 1 : extended(next) - extended(block);
      const Segment& segment = segments_.of(shrinks ? block : next);
      expandable_segments_.watcher()->relied_on(segment.page_bytes, segment.bytes - std::min(spare, segment.bytes));
    }
    if (block == chosen) return;
  }
}

/// The host had no memory for the record of the rest, or for its place in the index. `block` goes back to the index
/// whole: it was taken from there, so this needs no memory.
void CachingAllocator::undo_split_locked(Arena& arena, bool large, BlockRecord* block, BlockRecord* rest,
                                         std::size_t whole_bytes) const {
  if (rest) {
    block->right = rest->right;
    if (block->right) block->right->left = block;
    block->bytes = whole_bytes;
    arena.records.give(rest);
  }
  arena.put(large, block, limits_.age_mark());
}

void CachingAllocator::deallocate(const Block& block, StreamRef last_use) noexcept {
  auto* record = static_cast<BlockRecord*>(block.cookie);
  Arena& arena = *record->arena;
  if (last_use != arena.stream) [[unlikely]]
    count_active();
  {
    const BiasedLock::Guard lock(arena.mutex);
    __builtin_prefetch(record->left);
    __builtin_prefetch(record->right);
    const bool done = record->large ? deallocate_locked(arena, true, record, last_use)
                                    : deallocate_locked(arena, false, record, last_use);
    if (done) [[likely]]
      return;
    record->state = BlockState::kAwaitingStream;
  }
  free_slowly(record, last_use);
}

/// Whether the block is cached by now: no other stream uses it.
[[gnu::always_inline]] inline bool CachingAllocator::deallocate_locked(Arena& arena, bool large, BlockRecord* block,
                                                                       StreamRef last_use) noexcept {
  arena.counters.decrease(large, kAllocation, 1);
  arena.counters.decrease(large, kAllocatedBytes, static_cast<std::int64_t>(block->bytes));
  if (block->bytes >= settings_.max_split_bytes) [[unlikely]]
    oversize_allocations_.decrease();
  if (block->has_uses || last_use != arena.stream) [[unlikely]] {
    if (arena.counters.special & Counters::kResting) peaks_.settle(arena);
    return false;
  }
  free_block_locked(arena, large, block);
  return true;
}

}  // namespace tenon::caching
