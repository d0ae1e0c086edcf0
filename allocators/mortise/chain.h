// Chain: the tiles of one stream in one range, in the order of their addresses. Between two of them there may be other
// streams' tiles, or no memory.
#pragma once

#include "stripes.h"
#include "tile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tenon::mortise {

class Chain {
 public:
  /// Tiles up to `end` may come. Throws std::bad_alloc.
  void cover(std::uintptr_t address, std::uintptr_t end) {
    if (first_ == nullptr) *this = Chain();  // another range may have had its number
    stripes_.cover(address, end - address);
    address_ = address;
    end_ = std::max(end_, end);
  }
  std::uintptr_t address() const { return address_; }  ///< of the range
  bool covers(std::uintptr_t address) const { return first_ != nullptr && address >= address_ && address < end_; }

  Tile* first() const { return first_; }
  Tile* last() const { return last_; }
  /// The last one that begins there or before; null where there is none.
  Tile* at_or_before(std::uintptr_t address) noexcept {
    if (last_ == nullptr || last_->address <= address) return last_;
    return stripes_.at_or_before(address, first_);
  }

  /// `left` null: as the first one.
  [[gnu::always_inline]] void insert_after(Tile* left, Tile* tile) noexcept {
    Tile*& follows = left != nullptr ? left->right : first_;
    tile->left = left;
    tile->right = follows;
    (follows != nullptr ? follows->left : last_) = tile;
    follows = tile;
    stripes_.came(tile);
  }
  [[gnu::always_inline]] void erase(Tile* tile) noexcept {
    stripes_.goes(tile);
    (tile->left != nullptr ? tile->left->right : first_) = tile->right;
    (tile->right != nullptr ? tile->right->left : last_) = tile->left;
  }

  bool agrees() const { return stripes_.agrees_with(first_); }

 private:
  std::uintptr_t address_ = 0, end_ = 0;
  Tile* first_ = nullptr;
  Tile* last_ = nullptr;
  Stripes stripes_;
};

}  // namespace tenon::mortise
