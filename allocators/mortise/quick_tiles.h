// QuickTiles: small tiles of one stream that wait as they are for a request of just their size.
#pragma once

#include "free_tiles.h"
#include "shared_bytes.h"
#include "tile.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenon::mortise {

/// Tiles of up to kLargest bytes, a stack for each size.
class QuickTiles {
 public:
  static constexpr std::size_t kLargest = 1 * MiB;

  Tile* pop(std::size_t bytes) noexcept { return pop(size_of(bytes), bytes); }
  /// False where enough of that size are there. `bytes` are the tile's, known before it has come to the processor's
  /// cache.
  bool push(Tile* tile, std::size_t bytes) noexcept {
    const std::size_t size = size_of(bytes);
    if (counts_[size] >= depth_) return passed();
    tile->state = TileState::kQuick;
    tile->next = tops_[size];
    tops_[size] = tile;
    ++counts_[size];
    bytes_.add(bytes);
    return true;
  }
  /// Takes one by one whatever is there; null when nothing is left.
  Tile* pop_any() noexcept {
    while (bytes_.get() != 0) {
      if (next_ >= kSizes) next_ = 0;
      if (counts_[next_] != 0) return pop(next_, bytes_of(next_));
      next_ += are_eight_empty(next_) ? 8 : 1;
    }
    return nullptr;
  }
  std::size_t bytes() const { return bytes_.get(); }
  /// pop_any() has taken `count`, all that were there. Where far fewer have served a request since the last time, as
  /// where no size comes again, none is kept for a while: what waits is merged later, and costs more then.
  void were_taken(std::size_t count) noexcept {
    const std::size_t served = popped_ - count;
    popped_ = 0;
    if (count < kEnoughToJudge || served >= count / 2) return;
    depth_ = 0;
    pause_ = kPause;
  }

 private:
  static constexpr std::uint8_t kDepth = 16;
  static constexpr std::size_t kEnoughToJudge = 64;
  static constexpr std::uint32_t kPause = 8192;
  /// What sizes of the coarse grain are counted from.
  static constexpr std::size_t kCoarseFrom = kLongestOfGrain / kGrain - kLongestOfGrain / kCoarseGrain;
  static constexpr std::size_t kSizes = kCoarseFrom + kLargest / kCoarseGrain + 1;

  /// The first up to kLongestOfGrain, then the second, which is less from there on.
  static std::size_t size_of(std::size_t bytes) { return std::min(bytes / kGrain, kCoarseFrom + bytes / kCoarseGrain); }
  static std::size_t bytes_of(std::size_t size) {
    return size <= kLongestOfGrain / kGrain ? size * kGrain : (size - kCoarseFrom) * kCoarseGrain;
  }
  [[gnu::always_inline]] Tile* pop(std::size_t size, std::size_t bytes) noexcept {
    Tile* tile = tops_[size];
    if (tile == nullptr) return nullptr;
    tops_[size] = tile->next;
    --counts_[size];
    ++popped_;
    bytes_.subtract(bytes);
    return tile;
  }

  /// False: it is not kept.
  bool passed() noexcept {
    if (depth_ == 0 && --pause_ == 0) depth_ = kDepth;
    return false;
  }
  bool are_eight_empty(std::size_t first) const noexcept {
    std::uint64_t counts = 0;
    std::memcpy(&counts, &counts_[first], sizeof counts);
    return counts == 0;
  }

  std::array<Tile*, kSizes> tops_{};               ///< by size; null where there is none
  std::array<std::uint8_t, kSizes + 7> counts_{};  ///< the last ones of no size: eight are looked at together
  SharedBytes bytes_;
  std::size_t popped_ = 0;       ///< since all were taken
  std::uint8_t depth_ = kDepth;  ///< of each stack; 0 in a pause
  std::uint32_t pause_ = 0;      ///< so many more are not kept
  std::size_t next_ = 0;         ///< where pop_any goes on
};

}  // namespace tenon::mortise
