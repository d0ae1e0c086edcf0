// OrderedTiles: free tiles by (bytes, address): exact best fit, of equal ones the lowest. A treap that hangs on the
// tiles themselves, so that a free needs no memory: `previous` is the child below, `next` the child above.
#pragma once

#include "tile.h"

#include <cstddef>
#include <cstdint>

namespace tenon::tiled {

class OrderedTiles {
 public:
  Tile* find(std::size_t bytes) const {
    Tile* found = nullptr;
    for (Tile* tile = root_; tile;) {
      const bool suffices = tile->bytes >= bytes;
      if (suffices) found = tile;
      tile = suffices ? tile->previous : tile->next;
    }
    return found;
  }
  Tile* find_hard(std::size_t bytes) const { return find(bytes); }

  void insert(Tile* tile) {
    Tile** at = &root_;
    while (*at && priority(*at) >= priority(tile)) at = below(tile, *at) ? &(*at)->previous : &(*at)->next;
    split(*at, tile, &tile->previous, &tile->next);
    *at = tile;
  }
  void erase(Tile* tile) {
    Tile** at = &root_;
    while (*at != tile) at = below(tile, *at) ? &(*at)->previous : &(*at)->next;
    Tile *lower = tile->previous, *upper = tile->next;
    while (lower && upper) {
      if (priority(lower) >= priority(upper)) {
        *at = lower;
        at = &lower->next;
        lower = *at;
      } else {
        *at = upper;
        at = &upper->previous;
        upper = *at;
      }
    }
    *at = lower ? lower : upper;
  }

  /// Each of them, the smallest first; `visit` must not change the index.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_of(root_, visit);
  }

  bool empty() const { return root_ == nullptr; }
  Tile* any() const { return root_; }
  bool holds(const Tile* wanted) const {
    const Tile* tile = root_;
    while (tile && tile != wanted) tile = below(wanted, tile) ? tile->previous : tile->next;
    return tile != nullptr;
  }

 private:
  template <class Visit>
  static void for_each_of(Tile* tree, Visit& visit) {
    if (!tree) return;
    for_each_of(tree->previous, visit);
    visit(tree);
    for_each_of(tree->next, visit);
  }
  static bool below(const Tile* a, const Tile* b) {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
  /// Of no tendency, so that the tree is flat; the same whenever it is asked for.
  static std::uint64_t priority(const Tile* tile) {
    std::uint64_t mixed = tile->address * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
    return mixed * 0xD6E8FEB86659FD93u;
  }
  /// What is below and above `tile` in a tree, as trees that hang at `lower` and `upper`.
  static void split(Tile* tree, const Tile* tile, Tile** lower, Tile** upper) {
    while (tree) {
      if (below(tree, tile)) {
        *lower = tree;
        lower = &tree->next;
        tree = tree->next;
      } else {
        *upper = tree;
        upper = &tree->previous;
        tree = tree->previous;
      }
    }
    *lower = *upper = nullptr;
  }

  Tile* root_ = nullptr;
};

}  // namespace tenon::tiled
