// Primitives: physical memory in extents. Each is mapped once, where it is at home, and tiled by primitive blocks: runs
// of whole chunks, and parts of a chunk that several blocks share (GMLake, section 3: pBlock).
//
//   extent   | chunk | chunk | chunk | chunk | chunk | chunk |
//   tiles    |     used      |     free      |used|fr|fr|used|      none holds a part of a chunk and a whole one
#pragma once

#include "../tiled/addresses.h"
#include "../tiled/heaps.h"
#include "../tiled/ordered_tiles.h"
#include "../tiled/tile.h"

#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::stitching {

using tiled::Addresses;
using tiled::OrderedTiles;
using tiled::Tile;

/// What sizes and places are multiples of, in bytes.
inline constexpr std::size_t kGrain = 512;

/// What is free for one stream.
struct Pool final : tiled::HeapBase {
  using HeapBase::HeapBase;
  OrderedTiles whole;                  ///< runs of chunks
  OrderedTiles fronts, ends, middles;  ///< parts of chunks, by where in their chunk they lie
  std::size_t free_bytes = 0;
  std::size_t whole_bytes = 0;
  Pool* next = nullptr;  ///< in the table of pools; set once
};

inline Pool& pool_of(const Tile* tile) { return static_cast<Pool&>(*tile->heap); }
inline void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

/// One physical memory, and the range of addresses where it is at home.
struct Extent {
  Physical physical;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Tile* first = nullptr;
  std::vector<Tile*> starts;  ///< for each chunk the last tile that begins in it, if one does
};

/// A part of an extent: whole chunks, or a part of one chunk.
struct Piece {
  std::uint32_t extent = 0;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;

  std::uintptr_t end() const { return address + bytes; }
};

class Primitives {
 public:
  /// `chunk_bytes` is a multiple of the source's page.
  Primitives(MemorySource& source, Addresses& addresses, std::size_t chunk_bytes)
      : source_(source), addresses_(addresses), chunk_bytes_(chunk_bytes) {}
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  /// All goes back to the source. Nothing is mapped anywhere else.
  ~Primitives();

  std::size_t chunk_bytes() const { return chunk_bytes_; }
  std::size_t reserved_bytes() const { return reserved_bytes_; }
  /// By number; null where there is none.
  const std::vector<std::unique_ptr<Extent>>& extents() const { return extents_; }

  /// A new extent of so many bytes, whole chunks, free in this pool. False when the device has no more. Throws Error
  /// where it refuses to map.
  bool grow(Pool& pool, std::size_t bytes);
  /// The extent is one free tile, which no stream uses, and mapped nowhere else.
  void release(std::uint32_t extent) noexcept;
  bool is_all_free(const Extent& extent) const { return extent.first->is_free() && !extent.first->right; }

  /// Whether the extent is still there, and these bytes in it.
  bool has(std::uint32_t extent, std::uintptr_t address, std::size_t bytes) const;
  bool is_free(const Pool& pool, const Piece& piece) const;
  /// So many pieces can be taken after this without memory from the host.
  void prepare(std::size_t pieces) { tiles_.reserve(pieces * kCutsOfAPiece); }
  /// The piece is free. Its tile is in no index until it is given back.
  Tile* take(const Piece& piece) noexcept;
  /// Free again, joined with what is free beside it in the same pool.
  void give_back(Tile* tile) noexcept;
  /// What is free in one pool becomes the other's.
  void adopt(Pool& from, Pool& to) noexcept;

  /// Where in its chunk an address of this extent lies.
  std::size_t within_chunk(std::uint32_t extent, std::uintptr_t address) const {
    return (address - extents_[extent]->address) % chunk_bytes_;
  }
  bool is_part(const Tile* tile) const { return tile->bytes < chunk_bytes_; }

  /// Throws Error naming what is broken.
  void check() const;

 private:
  static constexpr std::size_t kCutsOfAPiece = 4;

  Tile* containing(const Extent& extent, std::uintptr_t address) const;
  std::size_t chunk_of(const Tile* tile) const {
    return (tile->address - extents_[tile->segment]->address) / chunk_bytes_;
  }
  OrderedTiles& index_of(const Tile* tile) const;
  void enter(Tile* tile) noexcept;
  void leave(Tile* tile) noexcept;
  void settle(Tile* tile) noexcept;
  Tile* cut(Tile* tile, std::size_t bytes) noexcept;
  bool can_join(const Tile* left, const Tile* right) const;
  void join(Tile* left, Tile* right) noexcept;

  MemorySource& source_;
  Addresses& addresses_;
  const std::size_t chunk_bytes_;
  tiled::TileStore tiles_;
  std::vector<std::unique_ptr<Extent>> extents_;
  std::vector<std::uint32_t> spare_;  ///< numbers without an extent
  std::size_t reserved_bytes_ = 0;
};

}  // namespace tenon::stitching
