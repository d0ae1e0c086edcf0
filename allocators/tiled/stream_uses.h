// StreamUses: tiles that other streams use, and tiles that were freed while those streams had not got there yet.
//
// record_use hangs a stream on the tile. A free of such a tile marks each of them; it becomes free when all marks are
// reached. Marks of one stream are kept in order and only its first one is polled.
#pragma once

#include "tile.h"

#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <vector>

namespace tenon::tiled {

class StreamUses {
 public:
  /// `tile` is handed out, and its heap locked.
  static void add(Tile* tile, StreamRef stream);
  /// No stream is named any more: for tiles whose heap goes.
  static void drop(Tile* tile) noexcept;

  // The rest under one lock.

  /// Marks every stream that uses the tile, which then awaits them. A stream that cannot be marked keeps the tile until
  /// the whole device is synchronised.
  void defer(Tile* tile, MemorySource& source) noexcept;
  bool any_waiting() const { return waiting_.load(std::memory_order_relaxed) != 0; }
  /// The tiles that no stream uses any more.
  std::vector<Tile*> take_reached(MemorySource& source);
  /// Waits for all of them. A wait that fails throws, and leaves all waiting.
  std::vector<Tile*> take_all(MemorySource& source);

 private:
  struct Mark {
    Ticket ticket;
    Tile* tile;
  };
  void count_down(Tile* tile, std::vector<Tile*>& done);

  std::map<StreamRef, std::deque<Mark>> marks_;
  std::vector<Tile*> unmarked_;
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace tenon::tiled
