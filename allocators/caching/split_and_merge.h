// What every call goes through, inlined into its callers: choosing a cached block, splitting and handing it out;
// merging a freed one and caching it.
//
// Note [Large and small]
// Both callers have two copies of all this, one in which `large` is true and one in which it is false: sizes of the two
// come in no order, and what is a constant needs no guess.
//
// Note [Store forwarding]
// Fields are copied one by one and counters go up and down without a branch: a wide load waits for the narrow stores
// before it, and which way a block's neighbours and remainder fall is what no branch predictor knows.
#pragma once

#include "caching_allocator.h"

namespace tenon::caching {

/// Exact best fit; of equal sizes the oldest segment's (1.13: the lowest) address. `with_expandable`: blocks of
/// expandable segments are among the candidates.
[[gnu::always_inline]] inline FreeIndex::Place CachingAllocator::find_fit_locked(Arena& arena, bool large,
                                                                                 std::size_t bytes,
                                                                                 bool with_expandable) const {
  const FreeIndex& free = arena.free[large];
  FreeIndex::Place place = free.find(bytes);
  if (!place.block) return place;
  // A block that cannot grow is the choice: whatever follows it is as large.
  if (place.block->expandable && (!with_expandable || can_grow(place.block))) [[unlikely]] {
    BlockRecord* chosen = choose_among_expandable_locked(free, place.block, with_expandable);
    if (!chosen) return {};
    if (chosen != place.block) place = free.place_of(chosen);
  }
  if (place.bytes >= settings_.max_split_bytes) [[unlikely]] {
    // Oversized blocks serve oversized requests only, and only if little of them is wasted.
    if (bytes < settings_.max_split_bytes || place.bytes >= bytes + settings_.max_non_split_rounding_bytes) return {};
  }
  return place;
}

/// `block`, of `whole_bytes`, is in no index. Cuts it at `bytes` where the rules say so and hands it out. Throws
/// bad_alloc where the host has no memory for the rest's record; the block is then cached.
[[gnu::always_inline]] inline Block CachingAllocator::hand_out_locked(Arena& arena, bool large, BlockRecord* block,
                                                                      std::size_t whole_bytes, std::size_t bytes,
                                                                      const Request& request, bool with_expandable) {
  const bool expandable = block->expandable;
  const std::size_t remainder = whole_bytes - bytes;
  const bool was_split = !block->is_whole_segment();
  const bool keeps_slack = large & !with_expandable;
  const std::size_t least_rest = keeps_slack ? kLargeSplitSlackBytes + 1 : kMinBlockBytes;
  const bool split = (remainder >= least_rest) & (!keeps_slack | (bytes < settings_.max_split_bytes)) & arena.splits;
  const std::size_t block_bytes = split ? bytes : whole_bytes;
  if (split) {
    BlockRecord* rest = nullptr;
    try {
      rest = arena.records.take();
      BlockRecord* const right = block->right;
      rest->address = block->address + bytes;
      rest->bytes = remainder;
      rest->order = block->order + order_step(ties_by_address_, bytes);
      rest->left = block;
      rest->right = right;
      rest->arena = &arena;
      rest->segment = block->segment;
      rest->large = large;
      rest->expandable = expandable;
      rest->has_uses = false;
      if (right) right->left = rest;
      block->right = rest;
      block->bytes = bytes;
      arena.put(large, rest, limits_.age_mark());
    } catch (...) {
      undo_split_locked(arena, large, block, rest, whole_bytes);
      throw;
    }
  }
  block->state = BlockState::kActive;
  block->requested_bytes = request.bytes;
  block->has_uses = false;

  bool grown = false;
  if (!expandable) {
    // Once, as a sum: what came and went in between would show in the peaks.
    const auto cut_off = split ? static_cast<std::int64_t>(remainder) : 0;
    const auto taken = was_split ? static_cast<std::int64_t>(whole_bytes) : 0;
    grown |= arena.counters.change(large, kInactiveSplit, std::int64_t{split} - std::int64_t{was_split});
    grown |= arena.counters.change(large, kInactiveSplitBytes, cut_off - taken);
  }
  grown |= arena.counters.increase(large, kAllocation, 1);
  grown |= arena.counters.increase(large, kAllocatedBytes, static_cast<std::int64_t>(block_bytes));
  grown |= arena.counters.increase(large, kRequestedBytes, static_cast<std::int64_t>(request.bytes));
  if (arena.counters.special & Counters::kCountsActive) {
    grown |= arena.counters.increase(large, kActive, 1);
    grown |= arena.counters.increase(large, kActiveBytes, static_cast<std::int64_t>(block_bytes));
  }
  if (grown) [[unlikely]]
    peaks_.settle(arena);
  if (block_bytes >= settings_.max_split_bytes) [[unlikely]]
    oversize_allocations_.increase();
  return {.data = block->data(), .bytes = block_bytes, .cookie = block, .request = request};
}

/// Merges with free neighbours and caches the result. The left block of a merge lives on, so that a segment's first
/// block stays the same object.
[[gnu::always_inline]] inline void CachingAllocator::free_block_locked(Arena& arena, bool large,
                                                                       BlockRecord* block) noexcept {
  FreeIndex& free = arena.free[large];
  const auto bytes = static_cast<std::int64_t>(block->bytes);
  const auto requested = static_cast<std::int64_t>(block->requested_bytes);
  BlockRecord* const left = block->left;
  BlockRecord* right = block->right;
  std::int64_t split_count = 0, split_bytes = 0;

  if (left && left->state == BlockState::kFree) {
    free.erase(left);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(left->bytes);
    left->bytes += block->bytes;
    left->right = right;
    if (right) right->left = left;
    arena.records.give(block);
    block = left;
  }
  if (right && right->state == BlockState::kFree) {
    free.erase(right);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(right->bytes);
    block->bytes += right->bytes;
    block->right = right->right;
    if (block->right) block->right->left = block;
    arena.records.give(right);
  }
  arena.put(large, block, limits_.age_mark());

  bool grown = false;
  if (!block->expandable) {
    const bool is_split = !block->is_whole_segment();
    split_count += is_split;
    split_bytes += is_split ? static_cast<std::int64_t>(block->bytes) : 0;
    // Once, as a sum: what came and went in between would show in the peaks.
    grown |= arena.counters.change(large, kInactiveSplit, split_count);
    grown |= arena.counters.change(large, kInactiveSplitBytes, split_bytes);
  }
  if (arena.counters.special) {
    if (arena.counters.special & Counters::kCountsActive) {
      arena.counters.decrease(large, kActive, 1);
      arena.counters.decrease(large, kActiveBytes, bytes);
    }
    if (arena.counters.special & Counters::kResting) peaks_.settle(arena);
  }
  arena.counters.decrease(large, kRequestedBytes, requested);
  if (grown) [[unlikely]]
    peaks_.settle(arena);
}

}  // namespace tenon::caching
