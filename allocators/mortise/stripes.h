// Stripes: which tile of a stream's in a range contains an address. Of each stripe of addresses the last tile that
// begins in it is known.
//
// Note [Unasked]
// To know it costs every split and every merge a line of memory. A program that repeats itself asks at nearly every
// request, another one never does: for that one nothing is kept. The first question after a while walks all tiles; a
// while is as many splits and merges as there are tiles, so that a walk costs each of them little.
#pragma once

#include "tile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::mortise {

class Stripes {
 public:
  /// Tiles that begin beyond these bytes are not looked for.
  void cover(std::uintptr_t address, std::size_t bytes) {
    address_ = address;
    last_.resize(std::max(last_.size(), ((bytes - 1) >> kShift) + 1));
  }

  /// A tile begins here from now on.
  void came(Tile* tile) noexcept {
    ++tiles_;
    if (!is_kept()) return;
    const std::size_t stripe = of(tile->address);
    if (stripe >= last_.size()) return;
    if (last_[stripe] == nullptr || last_[stripe]->address < tile->address) last_[stripe] = tile;
  }
  /// None does any more; its left neighbour is known.
  void goes(const Tile* tile) noexcept {
    if (tiles_ != 0) --tiles_;
    if (!is_kept()) return;
    const std::size_t stripe = of(tile->address);
    if (stripe >= last_.size() || last_[stripe] != tile) return;
    Tile* before = tile->left;
    last_[stripe] = before != nullptr && of(before->address) == stripe ? before : nullptr;
  }

  /// The last tile that begins at this address or before it; null where none does. `first`: the stream's in the range.
  Tile* at_or_before(std::uintptr_t address, Tile* first) noexcept {
    if (first == nullptr || address < first->address) return nullptr;
    changes_ = 0;
    if (!is_known_) [[unlikely]]
      learn(first);
    std::size_t stripe = std::min(of(address), last_.size() - 1);
    while (last_[stripe] == nullptr) --stripe;  // the first one begins somewhere
    Tile* tile = last_[stripe];
    while (tile->address > address) tile = tile->left;
    return tile;
  }

  /// Whether what is known is so.
  bool agrees_with(Tile* first) const {
    if (!is_known_) return true;
    Stripes fresh(*this);
    fresh.learn(first);
    return fresh.last_ == last_;
  }

 private:
  static constexpr int kShift = 21;
  static constexpr std::size_t kWhile = 4096;

  std::size_t of(std::uintptr_t address) const { return (address - address_) >> kShift; }
  bool is_kept() noexcept {
    if (is_known_ && ++changes_ > kWhile + tiles_) [[unlikely]]
      is_known_ = false;
    return is_known_;
  }
  [[gnu::noinline, gnu::cold]] void learn(Tile* first) noexcept {
    is_known_ = true;
    std::ranges::fill(last_, nullptr);
    for (Tile* tile = first; tile != nullptr && of(tile->address) < last_.size(); tile = tile->right)
      last_[of(tile->address)] = tile;
  }

  std::uintptr_t address_ = 0;
  std::vector<Tile*> last_;  ///< of each stripe; null where none begins
  std::size_t tiles_ = 0;
  std::size_t changes_ = 0;  ///< since the last question
  bool is_known_ = true;     ///< see Note [Unasked]
};

}  // namespace tenon::mortise
