// What must hold between any two calls: blocks tile segments, free neighbours are merged, indices and counters say what
// the segments say.
#include "caching_allocator.h"

#include <tenon/core/error.h>

#include <map>
#include <string>

namespace tenon::caching {

namespace {

/// What the segments of one arena hold.
struct Tally {
  std::size_t free_count[2] = {}, free_bytes[2] = {}, holes[2] = {}, blocks = 0;
  std::int64_t active = 0, active_bytes = 0, allocated = 0, allocated_bytes = 0, split = 0, split_bytes = 0;
};

[[noreturn]] void broken(const std::string& what, const BlockRecord* block) {
  throw Error("caching: " + what + " at address " + std::to_string(block->address) + ", " +
              std::to_string(block->bytes) + " bytes");
}

void count(const BlockRecord* block, Tally& tally) {
  const auto bytes = static_cast<std::int64_t>(block->bytes);
  ++tally.blocks;
  switch (block->state) {
    case BlockState::kFree:
      ++tally.free_count[block->large];
      tally.free_bytes[block->large] += block->bytes;
      if (!block->expandable && !block->is_whole_segment()) ++tally.split, tally.split_bytes += bytes;
      break;
    case BlockState::kUnmapped:
      ++tally.holes[block->large];
      break;
    case BlockState::kActive:
      ++tally.allocated, tally.allocated_bytes += bytes;
      [[fallthrough]];
    case BlockState::kAwaitingStream:
      ++tally.active, tally.active_bytes += bytes;
  }
}

/// Blocks tile the segment, belong to it, and are merged.
void check_segment(const Segment& segment, Tally& tally) {
  std::uintptr_t address = segment.address;
  std::size_t mapped = 0;
  const BlockRecord* left = nullptr;
  for (const BlockRecord* block = segment.first; block; left = block, block = block->right) {
    if (block->address != address) broken("blocks do not tile their segment", block);
    if (block->left != left) broken("a block's left neighbour is not the one before it", block);
    if (block->arena != segment.arena || block->large != segment.large || block->expandable != segment.expandable)
      broken("a block does not belong to its segment", block);
    if (block->bytes == 0) broken("an empty block", block);
    if (left && left->state == block->state &&
        (block->state == BlockState::kFree || block->state == BlockState::kUnmapped))
      broken("two free neighbours are not merged", block);
    address += block->bytes;
    if (block->state != BlockState::kUnmapped) mapped += block->bytes;
    count(block, tally);
  }
  if (address != segment.address + segment.bytes) broken("blocks do not reach the segment's end", segment.first);
  if (mapped != segment.mapped_bytes) broken("mapped bytes do not add up", segment.first);
}

void check_counters(const Counters& counters, const Tally& tally) {
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
}

void check_index(const Arena& arena, bool large, const Tally& tally) {
  if (arena.unmapped[large].size() != tally.holes[large])
    throw Error("caching: the index of holes and the segments disagree");
  const BlockRecord* previous = nullptr;
  std::size_t seen = 0, seen_bytes = 0;
  arena.free[large].for_each([&](const BlockRecord* block) {
    if (block->state != BlockState::kFree) broken("a block in the index is not free", block);
    if (previous && !(BlockKey{previous->bytes, previous->order} < BlockKey{block->bytes, block->order}))
      broken("the index is out of order", block);
    previous = block;
    ++seen;
    seen_bytes += block->bytes;
  });
  if (seen != tally.free_count[large] || seen_bytes != tally.free_bytes[large])
    throw Error("caching: the index of free blocks and the segments disagree");
}

void check_arena(const Arena& arena, const Tally& tally) {
  if (tally.blocks != arena.records.live()) throw Error("caching: blocks got lost");
  check_counters(arena.counters, tally);
  for (const bool large : {false, true}) check_index(arena, large, tally);
}

}  // namespace

void CachingAllocator::check_reserved_locked() const {
  std::size_t reserved = 0;
  std::map<std::uint64_t, std::size_t> by_pool;
  for (const Segment* segment : segments_.by_address()) {
    reserved += segment->mapped_bytes;
    by_pool[segment->arena->pool] += segment->mapped_bytes;
  }
  PolicyStats counted;
  segments_.report(counted);
  if (reserved != segments_.reserved_bytes() ||
      static_cast<std::int64_t>(reserved) != counted.reserved_bytes[0].current)
    throw Error("caching: segments hold " + std::to_string(reserved) + " bytes, the counter says " +
                std::to_string(segments_.reserved_bytes()));
  for (const auto& [id, pool] : pools_.all())
    if (pool.reserved_bytes[0].current != static_cast<std::int64_t>(by_pool[id]))
      throw Error("caching: pool " + std::to_string(id) + " counts " + std::to_string(pool.reserved_bytes[0].current) +
                  " reserved bytes, its segments hold " + std::to_string(by_pool[id]));
}

void CachingAllocator::check_invariants() const {
  const LockAll lock = lock_all();
  std::map<const Arena*, Tally> tallies;
  for (const Segment* segment : segments_.by_address()) check_segment(*segment, tallies[segment->arena]);
  check_reserved_locked();
  for (const auto& arena : arenas_.all()) check_arena(*arena, tallies[arena.get()]);
  peaks_.check_invariants();
}

}  // namespace tenon::caching
