// What every call goes through, inlined into its one caller each: choosing a cached piece, cutting and handing it out;
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

#include "policy.h"

namespace tenon::caching {

/// The arena of a stream in the default pool; made at its first request.
[[gnu::always_inline]] inline Arena& Policy::arena_of(StreamRef stream) {
  std::atomic<Arena*>& bucket = default_arenas_[(stream.id ^ stream.id >> 12) % kBuckets];
  Arena* const first = bucket.load(std::memory_order_acquire);
  if (first && first->stream == stream) [[likely]]
    return *first;
  return look_for_arena(bucket, stream);
}

/// Whether address space without memory follows.
inline bool can_grow(const Piece* piece) { return piece->right && piece->right->state == BlockState::kUnmapped; }

/// Exact best fit; of equal sizes the oldest segment's (1.13: the lowest) address. `with_expandable`: pieces of
/// expandable segments are among the candidates.
[[gnu::always_inline]] inline FreeIndex::Place Policy::find_fit_locked(Arena& arena, bool large, std::size_t bytes,
                                                                       bool with_expandable) const {
  const FreeIndex& free = arena.free[large];
  FreeIndex::Place place = free.find(bytes);
  if (!place.piece) return place;
  // A piece that cannot grow is the choice: whatever follows it is as large.
  if (place.piece->expandable && (!with_expandable || can_grow(place.piece))) [[unlikely]] {
    Piece* chosen = choose_among_expandable_locked(free, place.piece, with_expandable);
    if (!chosen) return {};
    if (chosen != place.piece) place = free.place_of(chosen);
  }
  if (place.bytes >= settings_.max_split_bytes) [[unlikely]] {
    // Oversized pieces serve oversized requests only, and only if little of them is wasted.
    if (bytes < settings_.max_split_bytes || place.bytes >= bytes + settings_.max_non_split_rounding_bytes) return {};
  }
  return place;
}

[[gnu::always_inline]] inline void Policy::put_locked(Arena& arena, bool large, Piece* piece) const {
  piece->state = BlockState::kFree;
  piece->born = collects_garbage_ ? large_lookups_.load(std::memory_order_relaxed) : 0;
  arena.free[large].insert(piece);
}

/// `piece`, of `whole_bytes`, is in no index. Cuts it at `bytes` where the rules say so and hands it out. Throws
/// bad_alloc where the host has no memory for the rest's record; the piece is then cached.
[[gnu::always_inline]] inline Block Policy::hand_out_locked(Arena& arena, bool large, Piece* piece,
                                                            std::size_t whole_bytes, std::size_t bytes,
                                                            const Request& request, bool with_expandable) {
  const bool expandable = piece->expandable;
  const std::size_t remainder = whole_bytes - bytes;
  const bool was_split = !piece->is_whole_segment();
  const bool keeps_slack = large & !with_expandable;
  const std::size_t least_rest = keeps_slack ? kLargeSplitSlackBytes + 1 : kMinBlockBytes;
  const bool split = (remainder >= least_rest) & (!keeps_slack | (bytes < settings_.max_split_bytes)) & arena.splits;
  const std::size_t block_bytes = split ? bytes : whole_bytes;
  if (split) {
    Piece* rest = nullptr;
    try {
      rest = arena.pieces.take();
      Piece* const right = piece->right;
      rest->address = piece->address + bytes;
      rest->bytes = remainder;
      rest->order = piece->order + order_step(bytes);
      rest->left = piece;
      rest->right = right;
      rest->arena = &arena;
      rest->segment = piece->segment;
      rest->large = large;
      rest->expandable = expandable;
      rest->has_uses = false;
      if (right) right->left = rest;
      piece->right = rest;
      piece->bytes = bytes;
      put_locked(arena, large, rest);
    } catch (...) {
      undo_split_locked(arena, large, piece, rest, whole_bytes);
      throw;
    }
  }
  piece->state = BlockState::kActive;
  piece->requested_bytes = request.bytes;
  piece->has_uses = false;

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
    count_oversize(1);
  return {.data = piece->data(), .bytes = block_bytes, .cookie = piece, .request = request};
}

/// Merges with free neighbours and caches the result. The left piece of a merge lives on, so that a segment's first
/// piece stays the same object.
[[gnu::always_inline]] inline void Policy::free_piece_locked(Arena& arena, bool large, Piece* piece) noexcept {
  FreeIndex& free = arena.free[large];
  const auto bytes = static_cast<std::int64_t>(piece->bytes);
  const auto requested = static_cast<std::int64_t>(piece->requested_bytes);
  Piece* const left = piece->left;
  Piece* right = piece->right;
  std::int64_t split_count = 0, split_bytes = 0;

  if (left && left->state == BlockState::kFree) {
    free.erase(left);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(left->bytes);
    left->bytes += piece->bytes;
    left->right = right;
    if (right) right->left = left;
    arena.pieces.give(piece);
    piece = left;
  }
  if (right && right->state == BlockState::kFree) {
    free.erase(right);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(right->bytes);
    piece->bytes += right->bytes;
    piece->right = right->right;
    if (piece->right) piece->right->left = piece;
    arena.pieces.give(right);
  }
  put_locked(arena, large, piece);

  bool grown = false;
  if (!piece->expandable) {
    const bool is_split = !piece->is_whole_segment();
    split_count += is_split;
    split_bytes += is_split ? static_cast<std::int64_t>(piece->bytes) : 0;
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
