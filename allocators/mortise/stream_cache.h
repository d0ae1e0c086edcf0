// StreamCache: all that is kept for one stream, under its lock: its tiles, of which the free ones are in the index of
// their region, small ones that wait as they are for a request of just their size, and where its steps were served.
#pragma once

#include "chain.h"
#include "free_tiles.h"
#include "pages.h"
#include "place.h"
#include "quick_tiles.h"
#include "shared_bytes.h"
#include "tile.h"

#include "../tiled/heaps.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::mortise {

struct StreamCache final : tiled::HeapBase {
  StreamCache(StreamRef stream, std::size_t lane, TilePool& pool, std::size_t page_bytes)
      : HeapBase(stream, lane), records(pool), pages_(page_bytes) {}

  QuickTiles quick;
  Tile* held = nullptr;    ///< the large tile that was given back last, as it is
  SharedBytes held_bytes;  ///< its size
  std::array<FreeTiles, kRegions> free;
  SharedBytes free_bytes;     ///< in the indices
  std::vector<Chain> chains;  ///< all its tiles, by the numbers of their ranges
  TileStore records;
  Rhythms rhythms;
  StreamCache* next = nullptr;  ///< in the table of all; set once

  /// Said by whoever asks or frees, unless it owns the lock: then it said so before.
  void is_used_by_this_thread() noexcept { user_.store(__builtin_thread_pointer(), std::memory_order_relaxed); }
  bool was_used_by_this_thread() const noexcept {
    return user_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  }
  /// Whether what is cached has been the same for long: asked under the lock over all streams, where memory is short.
  bool seems_unused() noexcept {
    const std::size_t bytes = cached_bytes();
    if (bytes == seen_bytes_) return ++unchanged_ >= patience_;
    if (was_taken_from_) patience_ = std::min(2 * patience_, kLongest);
    was_taken_from_ = false;
    seen_bytes_ = bytes;
    unchanged_ = 0;
    return false;
  }
  /// What another stream takes is no use of this one. If it is used again, its thread had only lost its processor.
  void was_taken_from() noexcept {
    seen_bytes_ = cached_bytes();
    was_taken_from_ = true;
  }

  /// May be asked without the lock: then it was so a moment ago.
  std::size_t cached_bytes() const { return free_bytes.get() + quick.bytes() + held_bytes.get(); }

  /// A tile of at least so many bytes is taken out of the index and cut to size. Null where there is none.
  Tile* take(Region region, std::size_t bytes);
  /// The same, after a look at every tile.
  Tile* take_any(Region region, std::size_t bytes);
  /// The same of tiles that hold no whole page.
  Tile* take_fragment(Region region, std::size_t bytes);
  /// Takes just this part of a free tile.
  Tile* take_part(Tile* tile, std::uintptr_t address, std::size_t bytes);
  /// Of a tile that was taken, all but this part goes back. Records for it have been provided.
  Tile* keep_part(Tile* tile, std::uintptr_t address, std::size_t bytes) noexcept;
  /// Into the index, merged with its free neighbours.
  void give_back(Tile* tile) noexcept;
  /// What waits as it is goes into the index: all, or the large one alone.
  void flush_quick() noexcept;
  void flush_held() noexcept {
    if (Tile* tile = take_held()) give_back(tile);
  }

  Tile* take_held() noexcept {
    held_bytes.set(0);
    return std::exchange(held, nullptr);
  }
  /// Returns the one that was held before.
  Tile* hold(Tile* tile, std::size_t bytes) noexcept {
    held_bytes.set(bytes);
    return std::exchange(held, tile);
  }

  /// Its tile that contains this address; null where it is not this stream's.
  Tile* containing(std::uintptr_t address) noexcept;
  /// Tiles may come in that range from here on, up to `end`. Throws std::bad_alloc.
  void provide_chain(std::uint32_t range, std::uintptr_t address, std::uintptr_t end);
  /// New memory, in a chain and with a record that were provided.
  void add(std::uint32_t range, Region region, std::uintptr_t address, std::size_t bytes) noexcept;
  /// A tile that nobody has becomes the other stream's, in no index there; both are locked. Throws std::bad_alloc, and
  /// then has done nothing.
  void move_to(StreamCache& to, Tile* tile);
  /// All that is free becomes the other stream's; both are locked. Throws std::bad_alloc.
  void move_all_to(StreamCache& to);

 private:
  static constexpr int kLong = 32, kLongest = 1 << 16;  ///< looks

  Tile* cut(Tile* tile, std::size_t bytes);
  bool lies_better_at_end(const Tile& tile, std::size_t bytes) const;
  void enter(Tile* tile) noexcept { free[tile->region].insert(tile); }
  void leave(Tile* tile) noexcept { free[tile->region].erase(tile); }
  void unlink(Tile* tile) noexcept;

  const Pages pages_;
  std::atomic<const void*> user_{nullptr};  ///< the thread that used it last
  std::size_t seen_bytes_ = 0;
  int unchanged_ = 0;
  int patience_ = kLong;         ///< more each time that it was wrong to take from it
  bool was_taken_from_ = false;  ///< since it was used
};

}  // namespace tenon::mortise
