// Segments: what was taken from the device, in stretches; each is tiled by blocks. How large a new one is: rounding.h.
#pragma once

#include "arena/arena.h"
#include "settings.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::caching {

/// One stretch of device memory (cudaMalloc), or of address space (an expandable segment).
struct Segment {
  Arena* arena = nullptr;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;             ///< of address space
  std::size_t mapped_bytes = 0;      ///< backed by memory: all of it unless expandable
  std::size_t page_bytes = 0;        ///< of an expandable segment
  std::vector<std::uint64_t> pages;  ///< its physical memory by page, 0 where there is none
  BlockRecord* first = nullptr;      ///< null: this slot is unused
  bool large = false;
  bool expandable = false;
};

// Note [Order]
// Of equal blocks the one whose segment was registered first is taken, then the one at the lower address: `order` is
// the segment's number and, below it, the offset in units of 512 bytes. Before May 2026 the address alone decided
// (pytorch#183591).
inline constexpr int kOffsetBits = 36;

/// What `order` grows by over so many bytes of a segment.
inline std::uint64_t order_step(bool ties_by_address, std::size_t bytes) {
  return ties_by_address ? bytes : bytes >> 9;
}

/// Guarded by the registry's lock; what a call changes in an arena, by that arena's too.
class Segments {
 public:
  Segments(MemorySource& source, const Settings& settings) : source_(source), settings_(settings) {}

  /// Takes `bytes` from the device: one block, in no index. Null when the device has no more.
  BlockRecord* acquire(Arena& arena, bool large, std::size_t bytes);
  /// Gives a whole cached segment back, which no stream uses any more.
  void release(BlockRecord* block) noexcept;
  /// Gives everything back at the end, blocks that are still out included.
  void release_all() noexcept;

  /// Registers a stretch: one block, in no index. Nothing is counted yet.
  BlockRecord* add(Arena& arena, bool large, std::uintptr_t address, std::size_t bytes, bool expandable);
  /// The segment is this one block, in no index, and has no memory any more.
  void forget(BlockRecord* block) noexcept;
  /// Bytes of a segment of this arena that came or, below 0, went.
  void count_reserved(const Arena& arena, bool large, std::int64_t bytes);

  Segment& of(const BlockRecord* block) { return segments_[block->segment]; }
  const Segment& of(const BlockRecord* block) const { return segments_[block->segment]; }
  std::vector<const Segment*> by_address() const;
  std::size_t reserved_bytes() const { return reserved_bytes_; }

  void report(PolicyStats& stats) const;
  void reset_stats(bool peaks, bool accumulated);

 private:
  MemorySource& source_;
  const Settings& settings_;
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> spare_;  ///< slots without a segment
  std::uint64_t next_registration_ = 0;
  std::size_t reserved_bytes_ = 0;
  PoolStats segment_stats_{}, reserved_stats_{};
  Stat oversize_segments_;
};

}  // namespace tenon::caching
