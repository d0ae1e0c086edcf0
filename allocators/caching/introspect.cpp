// What the allocator shows of itself: layout and figures.
#include "caching_allocator.h"

#include <algorithm>

namespace tenon::caching {

void CachingAllocator::walk(SegmentVisitor& visitor) const {
  const LockAll lock = lock_all();
  for (const Segment* segment : segments_.by_address()) {
    visitor.segment({.address = segment->address,
                     .bytes = segment->mapped_bytes,
                     .stream = segment->arena->stream,
                     .is_large = segment->large,
                     .is_expandable = segment->expandable,
                     .pool = segment->arena->pool});
    for (const BlockRecord* block = segment->first; block; block = block->right) {
      const bool active = block->state == BlockState::kActive || block->state == BlockState::kAwaitingStream;
      visitor.block({.address = block->data(),
                     .bytes = block->bytes,
                     .requested_bytes = active ? block->requested_bytes : 0,
                     .state = block->state});
    }
  }
}

void CachingAllocator::report(PolicyStats& stats) const {
  const LockAll lock = lock_all();
  stats.has_pools = true;
  for (int pool = 0; pool < 3; ++pool) {
    stats.allocation[pool] = peaks_.stat(pool, kAllocation);
    stats.allocated_bytes[pool] = peaks_.stat(pool, kAllocatedBytes);
    stats.active[pool] = peaks_.stat(pool, kActive);
    stats.active_bytes[pool] = peaks_.stat(pool, kActiveBytes);
    stats.requested_bytes[pool] = peaks_.stat(pool, kRequestedBytes);
    stats.inactive_split[pool] = peaks_.stat(pool, kInactiveSplit);
    stats.inactive_split_bytes[pool] = peaks_.stat(pool, kInactiveSplitBytes);
  }
  segments_.report(stats);
  stats.oversize_allocations = oversize_allocations_.read();
  for (const auto& [id, pool] : pools_.all()) {
    PrivatePoolStats& shown = stats.private_pools.emplace_back();
    shown.pool = id;
    std::copy(std::begin(pool.reserved_bytes), std::end(pool.reserved_bytes), shown.reserved_bytes);
  }
  stats.retries = retries_;
  stats.synchronizations = synchronizations_;
  stats.max_split_size =
      settings_.max_split_bytes == kUnlimited ? -1 : static_cast<std::int64_t>(settings_.max_split_bytes);
  stats.cached_bytes = cached_bytes_locked();
  stats.largest_free_bytes = 0;
  for (const auto& arena : arenas_.all())
    for (const FreeIndex& free : arena->free)
      stats.largest_free_bytes = std::max(stats.largest_free_bytes, free.largest_bytes());
}

void CachingAllocator::reset_stats(bool peaks, bool accumulated) {
  const LockAll lock = lock_all();
  peaks_.reset(peaks, accumulated);
  segments_.reset_stats(peaks, accumulated);
  for (auto& [id, pool] : pools_.all())
    for (Stat& stat : pool.reserved_bytes) reset(stat, peaks, accumulated);
  oversize_allocations_.reset(peaks, accumulated);
  if (accumulated) retries_ = synchronizations_ = 0;
}

}  // namespace tenon::caching
