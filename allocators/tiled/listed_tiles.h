// ListedTiles: free tiles by address, and of those that suffice the first. What it costs grows with their number.
#pragma once

#include "tile.h"

#include <cstddef>

namespace tenon::tiled {

class ListedTiles {
 public:
  Tile* find(std::size_t bytes) const {
    Tile* tile = first_;
    while (tile && tile->bytes < bytes) tile = tile->next;
    return tile;
  }
  Tile* find_hard(std::size_t bytes) const { return find(bytes); }

  void insert(Tile* tile) {
    Tile* before = nullptr;
    Tile* after = first_;
    while (after && after->address < tile->address) {
      before = after;
      after = after->next;
    }
    tile->previous = before;
    tile->next = after;
    (before ? before->next : first_) = tile;
    if (after) after->previous = tile;
  }
  void erase(Tile* tile) {
    (tile->previous ? tile->previous->next : first_) = tile->next;
    if (tile->next) tile->next->previous = tile->previous;
  }

  bool empty() const { return first_ == nullptr; }
  Tile* any() const { return first_; }
  bool holds(const Tile* wanted) const {
    const Tile* tile = first_;
    while (tile && tile != wanted) tile = tile->next;
    return tile != nullptr;
  }

 private:
  Tile* first_ = nullptr;
};

}  // namespace tenon::tiled
