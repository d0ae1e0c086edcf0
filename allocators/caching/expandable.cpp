// Growing into unmapped address space, and giving free pages back.
#include "expandable.h"

#include "rounding.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <utility>

namespace tenon::caching {

namespace {

bool is_usable(const BlockRecord* block) {
  return block->state == BlockState::kFree || block->state == BlockState::kUnmapped;
}

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

/// The block takes in its right neighbour, whose record goes.
void absorb_right(BlockRecord* block) {
  BlockRecord* const right = block->right;
  block->bytes += right->bytes;
  block->right = right->right;
  if (block->right) block->right->left = block;
  block->arena->records.give(right);
}

// As in PyTorch nine eighths of the device, so that fragmentation of addresses alone cannot fail a request that fits.
// Without a limit the machine's own memory is the size: terabytes of addresses are not to be had under a limit on
// address space, or beside ThreadSanitizer's shadow.
std::size_t address_space_of(const MemorySource& source, const Settings& settings) {
  constexpr std::size_t kUnknown = 8 * TiB;
  constexpr std::size_t kMostAddresses = 31 * TiB;  // an offset has kOffsetBits of 512 bytes: see Note [Order]
  const std::size_t capacity = source.traits().capacity_bytes;
  std::size_t total = capacity ? capacity : source.usage().total_bytes;
  if (total == 0) total = kUnknown;
  std::size_t space = std::min(total + total / 8, kMostAddresses);
  if (settings.reserve_bytes != 0) space = std::min(space, settings.reserve_bytes);
  if (const double share = settings.reserve_share * static_cast<double>(total); share > 0)
    space = static_cast<std::size_t>(std::min(static_cast<double>(space), share));
  return space;
}

}  // namespace

ExpandableSegments::ExpandableSegments(MemorySource& source, const Settings& settings, const Limits& limits,
                                       Segments& segments)
    : source_(source),
      settings_(settings),
      limits_(limits),
      segments_(segments),
      watcher_(source.address_range_watcher()),
      ties_by_address_(settings.ties_by_address()),
      address_space_bytes_(address_space_of(source, settings)) {}

/// Cuts `block` at `bytes`; the new right part has the same state and is in no index.
BlockRecord* ExpandableSegments::cut(BlockRecord* block, std::size_t bytes) const {
  BlockRecord* rest = block->arena->records.take();
  *rest = *block;
  rest->address += bytes;
  rest->bytes -= bytes;
  rest->order += order_step(ties_by_address_, bytes);
  rest->left = block;
  block->right = rest;
  block->bytes = bytes;
  if (rest->right) rest->right->left = rest;
  return rest;
}

BlockRecord* ExpandableSegments::expand(Arena& arena, bool large, std::size_t bytes) {
  BlockRecord* block = find_space(arena, large, bytes);
  if (!block) return nullptr;
  if (block->state == BlockState::kUnmapped) {
    block = map(block, std::min(block->bytes, bytes));
    if (!block) return nullptr;
  }
  // A part that was mapped before a failure stays cached: the flush that follows takes it back.
  while (block->bytes < bytes) {
    BlockRecord* const right = block->right;  // unmapped, by find_space
    block = map(right, std::min(bytes - block->bytes, right->bytes));
    if (!block) return nullptr;
  }
  arena.free[large].erase(block);
  return block;
}

/// The first run of free and unmapped blocks that is long enough and contains something unmapped; else a new segment.
BlockRecord* ExpandableSegments::find_space(Arena& arena, bool large, std::size_t bytes) {
  for (BlockRecord* hole : arena.unmapped[large]) {
    BlockRecord* const start = hole->left && is_usable(hole->left) ? hole->left : hole;
    std::size_t available = 0;
    for (const BlockRecord* block = start; block && is_usable(block); block = block->right) {
      available += block->bytes;
      if (available < bytes) continue;
      if (watcher_ && !block->right) {
        const Segment& segment = segments_.of(block);
        watcher_->relied_on(segment.page_bytes, segment.bytes - (available - bytes));
      }
      return start;
    }
  }
  return reserve(arena, large, bytes);
}

/// A new segment without memory; null for a request longer than a segment can become.
BlockRecord* ExpandableSegments::reserve(Arena& arena, bool large, std::size_t bytes) {
  const std::size_t granule = std::max<std::size_t>(source_.traits().page_bytes, 1);
  const std::size_t page = align_up(large ? settings_.large_segment_bytes : kSmallSegmentBytes, granule);
  const std::size_t space = align_up(address_space_bytes_, page);
  if (watcher_ && bytes <= space) watcher_->relied_on(page, bytes);
  void* const address = source_.reserve(space);
  if (!address) return nullptr;
  // As in PyTorch only now, so that the ranges after it are numbered alike.
  if (bytes > space) {
    source_.unreserve(address, space);
    return nullptr;
  }
  BlockRecord* block = nullptr;
  try {
    block = segments_.add(arena, large, reinterpret_cast<std::uintptr_t>(address), space, true);
    arena.unmapped[large].insert(block);
  } catch (...) {
    if (block) segments_.forget(block);
    source_.unreserve(address, space);
    throw;
  }
  segments_.of(block).page_bytes = page;
  return block;
}

/// Puts memory behind the first pages of an unmapped block. False when the device has no more; then, and when the
/// source throws, nothing has changed.
bool ExpandableSegments::map_pages(Segment& segment, const BlockRecord* block, std::size_t count) {
  const std::size_t page = segment.page_bytes;
  const std::size_t first = (block->address - segment.address) / page;
  if (segment.pages.size() < first + count) segment.pages.resize(first + count);
  std::size_t created = 0, mapped = 0;
  const auto undo = [&] {
    if (mapped > 0) source_.unmap(block->data(), mapped * page);
    for (std::size_t i = 0; i < created; ++i) {
      source_.destroy({segment.pages[first + i]}, page);
      segment.pages[first + i] = 0;
    }
  };
  try {
    for (; created < count; ++created) {
      const Physical physical = source_.create(page);
      if (!physical) break;
      segment.pages[first + created] = physical.value;
    }
    if (created == count)
      for (; mapped < count; ++mapped)
        source_.map(at(block->address + mapped * page), page, {segment.pages[first + mapped]}, 0);
  } catch (...) {
    undo();
    throw;
  }
  if (created < count) undo();
  return created == count;
}

void ExpandableSegments::give_back_pages(Segment& segment, std::uintptr_t begin, std::size_t bytes) noexcept {
  const std::size_t page = segment.page_bytes;
  source_.unmap(at(begin), bytes);
  for (std::size_t i = (begin - segment.address) / page; i < (begin + bytes - segment.address) / page; ++i) {
    source_.destroy({segment.pages[i]}, page);
    segment.pages[i] = 0;
  }
}

/// Puts memory behind the first `bytes` of an unmapped block, in whole pages, merges and caches the result. Null when
/// the device has no more; then, and when it or the host throws, nothing has changed.
BlockRecord* ExpandableSegments::map(BlockRecord* block, std::size_t bytes) {
  Segment& segment = segments_.of(block);
  Arena& arena = *block->arena;
  const std::uintptr_t begin = block->address;
  const std::size_t mapped_bytes = align_up(bytes, segment.page_bytes);
  BlockRecord* const rest = block->bytes > mapped_bytes ? cut(block, mapped_bytes) : nullptr;
  const auto undo_cut = [&] {
    if (!rest) return;
    arena.unmapped[segment.large].erase(rest);
    absorb_right(block);
  };
  bool is_mapped = false;
  BlockRecord* cached = nullptr;
  try {
    if (rest) arena.unmapped[segment.large].insert(rest);
    is_mapped = map_pages(segment, block, mapped_bytes / segment.page_bytes);
    if (is_mapped) cached = cache_merged(block);
  } catch (...) {
    if (is_mapped) give_back_pages(segment, begin, mapped_bytes);
    undo_cut();
    throw;
  }
  if (!is_mapped) {
    undo_cut();
    return nullptr;
  }
  segment.mapped_bytes += mapped_bytes;
  segments_.count_reserved(arena, segment.large, static_cast<std::int64_t>(mapped_bytes));
  return cached;
}

/// A hole with memory behind it by now is cached as one with its free neighbours. Throws std::bad_alloc, and nothing
/// has changed.
BlockRecord* ExpandableSegments::cache_merged(BlockRecord* block) {
  Arena& arena = *block->arena;
  const bool large = block->large;
  FreeIndex& free = arena.free[large];
  const auto if_free = [](BlockRecord* side) { return side && side->state == BlockState::kFree ? side : nullptr; };
  BlockRecord* const left = if_free(block->left);
  BlockRecord* const right = if_free(block->right);
  auto hole = arena.unmapped[large].extract(block);
  if (left) free.erase(left);
  if (right) free.erase(right);
  BlockRecord* const merged = left ? left : block;
  const BlockRecord before = *merged;
  merged->bytes = block->bytes + (left ? left->bytes : 0) + (right ? right->bytes : 0);
  try {
    arena.put(large, merged, limits_.age_mark());
  } catch (...) {
    *merged = before;
    // What has just left the index has its place there still.
    if (left) free.insert(left);
    if (right) free.insert(right);
    arena.unmapped[large].insert(std::move(hole));
    throw;
  }
  merged->bytes = before.bytes;
  if (left) absorb_right(left);
  if (right) absorb_right(merged);
  return merged;
}

/// Of a cached block `bytes` from `before` on become one of their own, which is cached no more and is among the holes
/// unless one is beside it on the left. What is left before and behind stays cached. Throws std::bad_alloc, and nothing
/// has changed.
BlockRecord* ExpandableSegments::cut_out(BlockRecord* block, std::size_t before, std::size_t bytes) {
  Arena& arena = *block->arena;
  const bool large = block->large;
  FreeIndex& free = arena.free[large];
  const std::uint64_t born = block->born;
  BlockRecord* part = block;
  BlockRecord* rest = nullptr;
  bool is_front_cached = false, is_rest_cached = false;
  free.erase(block);
  try {
    if (before != 0) {
      part = cut(block, before);
      arena.put(large, block, limits_.age_mark());
      is_front_cached = true;
    }
    if (part->bytes > bytes) {
      rest = cut(part, bytes);
      arena.put(large, rest, limits_.age_mark());
      is_rest_cached = true;
    }
    if (!part->left || part->left->state != BlockState::kUnmapped) arena.unmapped[large].insert(part);
  } catch (...) {
    if (is_rest_cached) free.erase(rest);
    if (rest) absorb_right(part);
    if (is_front_cached) free.erase(block);
    if (part != block) absorb_right(block);
    arena.put(large, block, born);  // it has its place there still
    throw;
  }
  return part;
}

std::size_t ExpandableSegments::unmap(BlockRecord* block) {
  Segment& segment = segments_.of(block);
  Arena& arena = *block->arena;
  const bool large = segment.large;
  const std::size_t page = segment.page_bytes;
  const std::uintptr_t begin = segment.address + align_up(block->address - segment.address, page);
  const std::uintptr_t end = segment.address + (block->address + block->bytes - segment.address) / page * page;
  if (begin >= end) return 0;
  const std::size_t bytes = end - begin;
  source_.wait(source_.mark(arena.stream));

  block = cut_out(block, begin - block->address, bytes);
  give_back_pages(segment, begin, bytes);
  block->state = BlockState::kUnmapped;
  if (BlockRecord* const left = block->left; left && left->state == BlockState::kUnmapped) {
    absorb_right(left);
    block = left;
  }
  if (BlockRecord* const right = block->right; right && right->state == BlockState::kUnmapped) {
    arena.unmapped[large].erase(right);
    absorb_right(block);
  }
  segment.mapped_bytes -= bytes;
  segments_.count_reserved(arena, large, -static_cast<std::int64_t>(bytes));
  if (block->is_whole_segment()) {
    arena.unmapped[large].erase(block);
    source_.unreserve(at(segment.address), segment.bytes);
    segments_.forget(block);
  }
  return bytes;
}

}  // namespace tenon::caching
