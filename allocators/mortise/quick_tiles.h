// QuickTiles: small tiles of one stream that wait as they are for a request of just their size.
#pragma once

#include "free_tiles.h"
#include "shared_bytes.h"
#include "tile.h"

#include <tenon/core/units.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tenon::mortise {

/// Tiles of up to kLargest bytes, a stack for each size.
class QuickTiles {
 public:
  static constexpr std::size_t kLargest = 1 * MiB;

  Tile* pop(std::size_t bytes) noexcept {
    const std::size_t size = bytes / kGrain;
    Tile* tile = tops_[size];
    if (tile == nullptr) return nullptr;
    tops_[size] = tile->next;
    --counts_[size];
    bytes_.subtract(bytes);
    return tile;
  }
  /// False where enough of that size are there. `bytes` are the tile's, known before it has come to the processor's
  /// cache.
  bool push(Tile* tile, std::size_t bytes) noexcept {
    const std::size_t size = bytes / kGrain;
    if (counts_[size] == kDepth) return false;
    tile->state = TileState::kQuick;
    tile->next = tops_[size];
    tops_[size] = tile;
    ++counts_[size];
    bytes_.add(bytes);
    return true;
  }
  /// Takes one by one whatever is there; null when nothing is left.
  Tile* pop_any() noexcept {
    for (; bytes_.get() != 0; ++next_) {
      if (next_ == tops_.size()) next_ = 0;
      if (Tile* tile = pop(next_ * kGrain)) return tile;
    }
    return nullptr;
  }
  std::size_t bytes() const { return bytes_.get(); }

 private:
  static constexpr std::uint8_t kDepth = 16;
  std::array<Tile*, kLargest / kGrain + 1> tops_{};  ///< by size; null where there is none
  std::array<std::uint8_t, kLargest / kGrain + 1> counts_{};
  SharedBytes bytes_;
  std::size_t next_ = 0;  ///< where pop_any goes on
};

}  // namespace tenon::mortise
