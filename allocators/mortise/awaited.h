// Awaited: blocks that other streams use. A block that was given back waits until each of them has come past that
// moment. All of it under the lock over all streams, but for what says so.
#pragma once

#include "tile.h"

#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace tenon::mortise {

class Awaited {
 public:
  explicit Awaited(MemorySource& source) : source_(source) {}

  void add_use(Tile* tile, StreamRef stream) {
    std::vector<StreamRef>& uses = used_[tile].uses;
    used_count_.store(used_.size(), std::memory_order_relaxed);
    for (const StreamRef known : uses)
      if (known == stream) return;
    uses.push_back(stream);
    tile->has_uses = true;
  }

  /// Marks every stream that uses the tile. A stream that cannot be marked keeps it until the device is synchronised.
  void defer(Tile* tile) noexcept {
    tile->state = TileState::kAwaiting;
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    try {
      Used& used = used_.find(tile)->second;
      for (const StreamRef stream : used.uses) {
        marks_[stream].push_back({source_.mark(stream), tile});
        ++used.pending;
      }
    } catch (...) {
      ++used_.find(tile)->second.pending;  // for good: only take_all finds it
      unmarked_.push_back(tile);
    }
  }

  /// Asked without the lock: whoever misses what another thread gave back just now finds it at its next request.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  /// Whether add_use() named any tile that has not been free since. Asked without the lock, by who knows whether it
  /// named its own.
  bool knows_any() const { return used_count_.load(std::memory_order_relaxed) != 0; }

  /// Calls give_back(tile) for each that no stream uses any more. Of each stream only the first mark is polled.
  template <class GiveBack>
  void take_reached(GiveBack&& give_back) {
    for (auto& [stream, marks] : marks_) {
      while (!marks.empty() && source_.reached(marks.front().ticket)) {
        Tile* tile = marks.front().tile;
        marks.pop_front();
        pass(tile, give_back);
      }
    }
  }

  /// All streams of the device have come past everything.
  template <class GiveBack>
  void take_all(GiveBack&& give_back) {
    for (auto& [stream, marks] : marks_) {
      for (const Mark& mark : marks) pass(mark.tile, give_back);
      marks.clear();
    }
    for (Tile* tile : unmarked_) pass(tile, give_back);
    unmarked_.clear();
  }

 private:
  struct Mark {
    Ticket ticket;
    Tile* tile;
  };
  /// The streams of a tile that was handed out.
  struct Used {
    std::vector<StreamRef> uses;
    std::size_t pending = 0;  ///< marks that are not reached yet, once it was given back
  };
  /// One of its marks was reached.
  template <class GiveBack>
  void pass(Tile* tile, GiveBack&& give_back) {
    const auto used = used_.find(tile);
    if (--used->second.pending != 0) return;
    used_.erase(used);
    used_count_.store(used_.size(), std::memory_order_relaxed);
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    tile->has_uses = false;
    give_back(tile);
  }

  MemorySource& source_;
  std::unordered_map<Tile*, Used> used_;
  std::map<StreamRef, std::deque<Mark>> marks_;
  std::vector<Tile*> unmarked_;
  std::atomic<std::size_t> count_{0};       ///< that wait
  std::atomic<std::size_t> used_count_{0};  ///< in used_
};

}  // namespace tenon::mortise
