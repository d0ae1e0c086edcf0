// What the policy shows of itself: layout, figures, invariants. And its end.
#include "everything.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <string>

namespace tenon::caching {

Policy::~Policy() {
  try {
    source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
  for (Segment& segment : segments_) {
    if (!segment.first) continue;
    if (!segment.expandable) {
      source_.release(reinterpret_cast<void*>(segment.address), segment.bytes);
      continue;
    }
    const std::size_t page = segment.page_bytes;
    for (std::size_t i = 0; i < segment.pages.size(); ++i) {
      if (segment.pages[i] == 0) continue;
      source_.unmap(reinterpret_cast<void*>(segment.address + i * page), page);
      source_.destroy({segment.pages[i]}, page);
    }
    source_.unreserve(reinterpret_cast<void*>(segment.address), segment.bytes);
  }
}

void Policy::walk(SegmentVisitor& visitor) const {
  const Everything lock(*this);
  std::vector<const Segment*> segments;
  for (const Segment& segment : segments_)
    if (segment.first) segments.push_back(&segment);
  std::sort(segments.begin(), segments.end(),
            [](const Segment* a, const Segment* b) { return a->address < b->address; });
  for (const Segment* segment : segments) {
    visitor.segment({.address = segment->address,
                     .bytes = segment->mapped_bytes,
                     .stream = segment->arena->stream,
                     .is_large = segment->large,
                     .is_expandable = segment->expandable,
                     .pool = segment->arena->pool});
    for (const Piece* piece = segment->first; piece; piece = piece->right) {
      const bool active = piece->state == BlockState::kActive || piece->state == BlockState::kAwaitingStream;
      visitor.block({.address = piece->data(),
                     .bytes = piece->bytes,
                     .requested_bytes = active ? piece->requested_bytes : 0,
                     .state = piece->state});
    }
  }
}

void Policy::report(PolicyStats& stats) const {
  const Everything lock(*this);
  stats.has_pools = true;
  for (int pool = 0; pool < 3; ++pool) {
    stats.allocation[pool] = peaks_.stat(pool, kAllocation);
    stats.allocated_bytes[pool] = peaks_.stat(pool, kAllocatedBytes);
    stats.active[pool] = peaks_.stat(pool, kActive);
    stats.active_bytes[pool] = peaks_.stat(pool, kActiveBytes);
    stats.requested_bytes[pool] = peaks_.stat(pool, kRequestedBytes);
    stats.inactive_split[pool] = peaks_.stat(pool, kInactiveSplit);
    stats.inactive_split_bytes[pool] = peaks_.stat(pool, kInactiveSplitBytes);
    stats.segment[pool] = segment_stats_[pool];
    stats.reserved_bytes[pool] = reserved_stats_[pool];
  }
  {
    std::lock_guard oversize(oversize_mutex_);
    stats.oversize_allocations = oversize_allocations_;
  }
  for (const auto& [id, pool] : pools_) {
    PrivatePoolStats& shown = stats.private_pools.emplace_back();
    shown.pool = id;
    std::copy(std::begin(pool.reserved_bytes), std::end(pool.reserved_bytes), shown.reserved_bytes);
  }
  stats.oversize_segments = oversize_segments_;
  stats.retries = retries_;
  stats.synchronizations = synchronizations_;
  stats.max_split_size =
      settings_.max_split_bytes == kUnlimited ? -1 : static_cast<std::int64_t>(settings_.max_split_bytes);
  stats.cached_bytes = cached_bytes_locked();
  stats.largest_free_bytes = 0;
  for (const auto& arena : arenas_)
    for (const FreeIndex& free : arena->free)
      stats.largest_free_bytes = std::max(stats.largest_free_bytes, free.largest_bytes());
}

void Policy::reset_stats(bool peaks, bool accumulated) {
  const Everything lock(*this);
  peaks_.reset(peaks, accumulated);
  std::lock_guard oversize(oversize_mutex_);
  const auto reset = [&](Stat& stat) {
    if (peaks) stat.reset_peak();
    if (accumulated) stat.reset_accumulated();
  };
  for (int pool = 0; pool < 3; ++pool) {
    reset(segment_stats_[pool]);
    reset(reserved_stats_[pool]);
    for (auto& [id, private_pool] : pools_) reset(private_pool.reserved_bytes[pool]);
  }
  reset(oversize_segments_);
  reset(oversize_allocations_);
  if (accumulated) retries_ = synchronizations_ = 0;
}

namespace {

[[noreturn]] void broken(const std::string& what, const Piece* piece) {
  throw Error("caching: " + what + " at address " + std::to_string(piece->address) + ", " +
              std::to_string(piece->bytes) + " bytes");
}

}  // namespace

void Policy::check_invariants() const {
  const Everything lock(*this);
  struct Tally {
    std::size_t free_count[2] = {}, free_bytes[2] = {}, holes[2] = {}, pieces = 0;
    std::int64_t active = 0, active_bytes = 0, allocated = 0, allocated_bytes = 0, split = 0, split_bytes = 0;
  };
  std::map<const Arena*, Tally> tallies;
  std::size_t reserved = 0;
  std::map<std::uint64_t, std::size_t> reserved_by_pool;
  for (const Segment& segment : segments_) {
    if (!segment.first) continue;
    reserved += segment.mapped_bytes;
    reserved_by_pool[segment.arena->pool] += segment.mapped_bytes;
    Tally& tally = tallies[segment.arena];
    std::uintptr_t address = segment.address;
    std::size_t mapped = 0;
    const Piece* left = nullptr;
    for (const Piece* piece = segment.first; piece; left = piece, piece = piece->right) {
      if (piece->address != address) broken("pieces do not tile their segment", piece);
      if (piece->left != left) broken("a piece's left neighbour is not the one before it", piece);
      if (piece->arena != segment.arena || piece->large != segment.large || piece->expandable != segment.expandable)
        broken("a piece does not belong to its segment", piece);
      if (piece->bytes == 0) broken("an empty piece", piece);
      if (left && left->state == piece->state &&
          (piece->state == BlockState::kFree || piece->state == BlockState::kUnmapped))
        broken("two free neighbours are not merged", piece);
      address += piece->bytes;
      ++tally.pieces;
      const auto bytes = static_cast<std::int64_t>(piece->bytes);
      if (piece->state != BlockState::kUnmapped) mapped += piece->bytes;
      switch (piece->state) {
        case BlockState::kFree:
          ++tally.free_count[piece->large];
          tally.free_bytes[piece->large] += piece->bytes;
          if (!piece->expandable && !piece->is_whole_segment()) ++tally.split, tally.split_bytes += bytes;
          break;
        case BlockState::kUnmapped:
          ++tally.holes[piece->large];
          break;
        case BlockState::kActive:
          ++tally.allocated, tally.allocated_bytes += bytes;
          [[fallthrough]];
        case BlockState::kAwaitingStream:
          ++tally.active, tally.active_bytes += bytes;
      }
    }
    if (address != segment.address + segment.bytes) broken("pieces do not reach the segment's end", segment.first);
    if (mapped != segment.mapped_bytes) broken("mapped bytes do not add up", segment.first);
  }
  if (reserved != reserved_total_ || static_cast<std::int64_t>(reserved) != reserved_stats_[0].current)
    throw Error("caching: segments hold " + std::to_string(reserved) + " bytes, the counter says " +
                std::to_string(reserved_total_));
  for (const auto& [id, pool] : pools_)
    if (pool.reserved_bytes[0].current != static_cast<std::int64_t>(reserved_by_pool[id]))
      throw Error("caching: pool " + std::to_string(id) + " counts " + std::to_string(pool.reserved_bytes[0].current) +
                  " reserved bytes, its segments hold " + std::to_string(reserved_by_pool[id]));
  for (const auto& arena : arenas_) {
    const Tally& tally = tallies[arena.get()];
    if (tally.pieces != arena->pieces.live()) throw Error("caching: pieces got lost");
    const Counters& counters = arena->counters;
    const bool counts_active = (counters.special & Counters::kCountsActive) != 0;
    const auto expect = [&](Metric metric, std::int64_t value, const char* name) {
      if (counters.current(metric) != value)
        throw Error(std::string("caching: ") + name + " is " + std::to_string(counters.current(metric)) +
                    ", the segments say " + std::to_string(value));
    };
    expect(kAllocation, tally.allocated, "allocation");
    expect(kAllocatedBytes, tally.allocated_bytes, "allocated_bytes");
    expect(counts_active ? kActive : kAllocation, tally.active, "active");
    expect(counts_active ? kActiveBytes : kAllocatedBytes, tally.active_bytes, "active_bytes");
    expect(kInactiveSplit, tally.split, "inactive_split");
    expect(kInactiveSplitBytes, tally.split_bytes, "inactive_split_bytes");
    for (int large = 0; large < 2; ++large) {
      const FreeIndex& free = arena->free[large];
      if (arena->unmapped[large].size() != tally.holes[large])
        throw Error("caching: the index of holes and the segments disagree");
      const Piece* previous = nullptr;
      std::size_t seen = 0, seen_bytes = 0;
      free.for_each([&](const Piece* piece) {
        if (piece->state != BlockState::kFree) broken("a piece in the index is not free", piece);
        if (previous && !(PieceKey{previous->bytes, previous->order} < PieceKey{piece->bytes, piece->order}))
          broken("the index is out of order", piece);
        previous = piece;
        ++seen;
        seen_bytes += piece->bytes;
      });
      if (seen != tally.free_count[large] || seen_bytes != tally.free_bytes[large])
        throw Error("caching: the index of free pieces and the segments disagree");
    }
  }
  peaks_.check_invariants();
}

std::unique_ptr<Allocator> make_policy(const AllocatorContext& context, bool expandable) {
  return std::make_unique<Policy>(context.source, settings_from(context.options, expandable), context.observer,
                                  context.address_ranges);
}

}  // namespace tenon::caching
