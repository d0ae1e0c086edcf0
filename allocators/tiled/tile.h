// Tile: what is known of one part of a segment: handed out, free, waiting for a stream, or without memory behind it.
//
//   segment   | A: active | B: free | C: active |  D: unmapped  |      left/right link them in address order;
//                           ^ never beside another free one            a Block's cookie is its tile
#pragma once

#include "record_slabs.h"

#include <tenon/memory/allocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::tiled {

struct HeapBase;

/// Another stream that uses a live tile; a list of them hangs on the tile.
struct StreamUse {
  StreamRef stream;
  StreamUse* next = nullptr;
};

/// One cache line.
struct alignas(64) Tile {
  std::uintptr_t address;
  std::size_t bytes;
  Tile* left;
  Tile* right;
  union {
    std::size_t requested_bytes;  ///< while handed out or awaiting a stream
    Tile* next;                   ///< while free or unmapped: in its list
  };
  union {
    StreamUse* uses;    ///< while handed out: streams that record_use named
    std::size_t marks;  ///< while awaiting: how many streams have not got there
    Tile* previous;     ///< while free or unmapped: in its list
  };
  HeapBase* heap;  ///< whose free tile this is, or was
  std::uint32_t segment;
  BlockState state;
  bool starts_page;  ///< first of a page: see DefaultRules::kLanes

  void* data() const { return reinterpret_cast<void*>(address); }
  std::uintptr_t end() const { return address + bytes; }
  bool is_free() const { return state == BlockState::kFree; }
  bool is_whole_segment() const { return (left == nullptr) & (right == nullptr); }
};
static_assert(sizeof(Tile) == 64);

/// Tiles come from arrays and go back to a list: neighbours in time are neighbours in memory. The owner locks.
class TileStore {
 public:
  [[gnu::always_inline]] Tile* take() {
    if (!spare_) [[unlikely]]
      grow();
    Tile* const tile = spare_;
    spare_ = tile->right;
    return tile;
  }
  [[gnu::always_inline]] void give(Tile* tile) {
    tile->right = spare_;
    spare_ = tile;
  }
  /// So many can be had after this without fail.
  void reserve(std::size_t count) {
    const Tile* last = spare_;
    for (; last && count > 0; last = last->right) --count;
    while (count > 0) {
      count -= std::min(count, slabs_.next_count());
      grow();
    }
  }

 private:
  [[gnu::noinline, gnu::cold]] void grow() {
    const std::span<Tile> tiles = slabs_.more();
    for (std::size_t i = tiles.size(); i-- > 0;) give(&tiles[i]);
  }

  RecordSlabs<Tile> slabs_;
  Tile* spare_ = nullptr;
};

/// Tiles that hang together by `next` and `previous`; the last one that came is the first.
class TileList {
 public:
  Tile* first() const { return first_; }
  bool empty() const { return first_ == nullptr; }
  [[gnu::always_inline]] void insert(Tile* tile) {
    tile->previous = nullptr;
    tile->next = first_;
    if (first_) first_->previous = tile;
    first_ = tile;
  }
  [[gnu::always_inline]] void erase(Tile* tile) {
    (tile->previous ? tile->previous->next : first_) = tile->next;
    if (tile->next) tile->next->previous = tile->previous;
  }

 private:
  Tile* first_ = nullptr;
};

}  // namespace tenon::tiled
