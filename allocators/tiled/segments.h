// Segments: what was taken from the device; each is tiled. Guarded by the allocator's lock over all heaps.
#pragma once

#include "tile.h"

#include <tenon/memory/memory_source.h>
#include <tenon/memory/snapshot.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tenon::tiled {

/// Memory from acquire, or a range of addresses with memory behind its parts.
struct Segment {
  struct Extent {
    std::size_t bytes;
    Physical physical;
  };
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Tile* first = nullptr;  ///< null: this slot is unused
  StreamRef stream;
  bool is_range = false;
  std::map<std::uintptr_t, Extent> extents;  ///< of a range: what is mapped, by address
};

class Segments {
 public:
  explicit Segments(MemorySource& source) : source_(source) {}
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;
  /// Gives everything back, blocks still out included.
  ~Segments();

  /// One tile of `bytes` of new memory, in no index. Null when the device has no more.
  Tile* acquire(std::size_t bytes, StreamRef stream, TileStore& tiles);
  /// `tile` is a whole segment, in no index, and no stream uses it.
  void release(Tile* tile) noexcept;

  /// One unmapped tile of `bytes` of addresses; null when there are none left.
  Tile* reserve(std::size_t bytes, StreamRef stream, TileStore& tiles);
  /// Puts memory behind `bytes`, whole pages, at the start of an unmapped tile. False when the device has no more.
  bool map(const Tile* tile, std::size_t bytes);
  /// Takes away what lies wholly in [begin, end), the last parts first, until `bytes` are gone. Returns them from left
  /// to right.
  std::vector<std::pair<std::uintptr_t, std::size_t>> unmap(Segment& segment, std::uintptr_t begin, std::uintptr_t end,
                                                            std::size_t bytes);

  Segment& of(const Tile* tile) { return segments_[tile->segment]; }
  const Segment& of(const Tile* tile) const { return segments_[tile->segment]; }
  std::vector<const Segment*> by_address() const;
  std::size_t reserved_bytes() const { return reserved_bytes_; }

 private:
  Tile* add(std::uintptr_t address, std::size_t bytes, StreamRef stream, TileStore& tiles);

  MemorySource& source_;
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> spare_;  ///< slots without a segment
  std::size_t reserved_bytes_ = 0;
};

}  // namespace tenon::tiled
