// Awaited: blocks that other streams use. A block that was given back waits until each of them has come past that
// moment.
#pragma once

#include "tile.h"

#include <tenon/memory/memory_source.h>

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
    for (const StreamRef known : uses)
      if (known == stream) return;
    uses.push_back(stream);
    tile->has_uses = true;
  }

  /// Marks every stream that uses the tile. A stream that cannot be marked keeps it until the device is synchronised.
  void defer(Tile* tile) noexcept {
    tile->state = TileState::kAwaiting;
    ++count_;
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

  bool empty() const { return count_ == 0; }
  /// Whether add_use() named any tile that has not been free since.
  bool knows_any() const { return !used_.empty(); }

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
    --count_;
    tile->has_uses = false;
    give_back(tile);
  }

  MemorySource& source_;
  std::unordered_map<Tile*, Used> used_;
  std::map<StreamRef, std::deque<Mark>> marks_;
  std::vector<Tile*> unmarked_;
  std::size_t count_ = 0;
};

}  // namespace tenon::mortise
