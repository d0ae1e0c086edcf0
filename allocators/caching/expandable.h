// Expandable segments: address space for the whole device per stream and pool, memory behind it page by page.
//
//   | active | free | active | free |        unmapped                      |     one segment
//   |<------ pages, each one physical ------->|                                   grows at its end, or where a hole is
//
// Segments never change stream; pages move between streams only by unmapping and mapping.
#pragma once

#include "limits.h"
#include "segments.h"
#include "settings.h"

#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>

namespace tenon::caching {

/// Whether address space without memory follows.
inline bool can_grow(const BlockRecord* block) { return block->right && block->right->state == BlockState::kUnmapped; }

/// Guarded by the registry's lock; what a call changes in an arena, by that arena's too.
class ExpandableSegments {
 public:
  ExpandableSegments(MemorySource& source, const Settings& settings, const Limits& limits, Segments& segments);

  /// A block of at least `bytes`, in no index. Null when the device has no more: what was mapped by then is cached.
  BlockRecord* expand(Arena& arena, bool large, std::size_t bytes);
  /// Takes the whole pages of a free block back; what is left of it before and behind them stays cached. Returns the
  /// bytes. Throws std::bad_alloc, and nothing has changed.
  std::size_t unmap(BlockRecord* block);

  /// Is told how long the ranges had to be; null where nobody wants to know, as outside of a replay.
  AddressRangeWatcher* watcher() const { return watcher_; }

 private:
  BlockRecord* find_space(Arena& arena, bool large, std::size_t bytes);
  BlockRecord* reserve(Arena& arena, bool large, std::size_t bytes);
  BlockRecord* map(BlockRecord* block, std::size_t bytes);
  BlockRecord* cache_merged(BlockRecord* block);
  BlockRecord* cut_out(BlockRecord* block, std::size_t before, std::size_t bytes);
  void give_back_pages(Segment& segment, std::uintptr_t begin, std::size_t bytes) noexcept;
  bool map_pages(Segment& segment, const BlockRecord* block, std::size_t count);
  BlockRecord* cut(BlockRecord* block, std::size_t bytes) const;

  MemorySource& source_;
  const Settings& settings_;
  const Limits& limits_;
  Segments& segments_;
  AddressRangeWatcher* const watcher_;
  const bool ties_by_address_;
  std::size_t address_space_bytes_ = 0;  ///< of one segment, before rounding to pages
};

}  // namespace tenon::caching
