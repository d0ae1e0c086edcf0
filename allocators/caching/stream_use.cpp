// Blocks that other streams use: they are cached only when those streams have got there.
#include "caching_allocator.h"
#include "split_and_merge.h"

#include <mutex>
#include <new>

namespace tenon::caching {

void CachingAllocator::record_use(const Block& block, StreamRef stream) {
  auto* record = static_cast<BlockRecord*>(block.cookie);
  Arena& arena = *record->arena;
  if (stream == arena.stream) return;
  count_active();
  std::lock_guard lock(arena.mutex);
  deferred_.add_use(record, stream);
  record->has_uses = true;
}

/// From the first block on that another stream uses, active and allocated are two things.
void CachingAllocator::count_active() noexcept {
  if (counts_active_.load(std::memory_order_relaxed)) return;
  const LockAll lock = lock_all();
  peaks_.count_active();
  counts_active_.store(true, std::memory_order_relaxed);
}

/// The block was used on other streams: it stays active until they have got there.
void CachingAllocator::free_slowly(BlockRecord* block, StreamRef last_use) noexcept {
  std::lock_guard registry(arenas_.mutex());
  if (last_use != block->arena->stream) {
    try {
      deferred_.add_use(block, last_use);
    } catch (const std::bad_alloc&) {
      return;  // the block stays awaiting for good: safe, and the host is out of memory anyway
    }
  }
  if (deferred_.defer(block, source_)) return;
  std::lock_guard lock(block->arena->mutex);
  free_block_locked(*block->arena, block->large, block);
}

/// Every stream has got there; the arena is locked.
void CachingAllocator::finish_free_locked(BlockRecord* block) noexcept {
  if (observer_) observer_->free_completed(block->data(), block->requested_bytes, block->arena->stream);
  free_block_locked(*block->arena, block->large, block);
}

void CachingAllocator::process_events() {
  std::lock_guard registry(arenas_.mutex());
  for (BlockRecord* block : deferred_.take_reached(source_)) {
    std::lock_guard lock(block->arena->mutex);
    finish_free_locked(block);
  }
}

void CachingAllocator::synchronize_and_free_events_locked(std::uint64_t only_pool) {
  ++synchronizations_;
  for (BlockRecord* block : deferred_.take_all(source_, only_pool, only_pool == 0)) finish_free_locked(block);
}

}  // namespace tenon::caching
