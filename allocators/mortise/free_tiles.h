// FreeTiles: the free tiles of one region on one stream, by size: a small number of tries finds one that fits well.
//
//   up to 16 KiB one list for each multiple of 128 bytes, above 128 lists per power of two. Two levels of bits say
//   which lists hold something.
//
// Note [Without branches]
// Whether a tile is the first or the last of its list, and whether another one is left there, no processor can guess:
// a guess that is wrong costs more than all else that is done here. So a list ends with a tile that may be written to,
// and bits are set to what they have to be instead of being changed where they have to.
#pragma once

#include "tile.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tenon::mortise {

/// What sizes and places are multiples of: those of short blocks, of which there may be very many. Longer ones are
/// multiples of kCoarseGrain, so that blocks of nearly one size can be put in each other's place.
inline constexpr std::size_t kGrain = 128, kCoarseGrain = 512;
/// The longest of the short ones.
inline constexpr std::size_t kLongestOfGrain = 4096;

/// Without a branch, since no processor can guess it, and without a division.
inline std::size_t rounded(std::size_t bytes) {
  const std::size_t within = bytes <= kLongestOfGrain ? kGrain - 1 : kCoarseGrain - 1;
  return (bytes + within) & ~within;
}

class FreeTiles {
 public:
  FreeTiles() {
    lists_.fill(&end_);
    words_[kNone / 64] = kLastBit;
  }
  FreeTiles(const FreeTiles&) = delete;
  FreeTiles& operator=(const FreeTiles&) = delete;

  /// A tile of at least so many bytes, a multiple of kGrain; null where there is none. Of the list in which some
  /// suffice and some do not only the first tiles are looked at, of the next one the first.
  [[gnu::always_inline]] Tile* find(std::size_t bytes) const {
    const std::size_t index = list_of(bytes);
    if (Tile* tile = fittest(lists_[index], bytes); tile != nullptr) return tile;
    Tile* tile = lists_[first_from(index + 1)];
    return tile != &end_ ? tile : nullptr;
  }

  /// The tiles that find() is going to look at first, as far as can be told before another one has come.
  [[gnu::always_inline]] void prefetch(std::size_t bytes) const {
    const std::size_t index = list_of(bytes);
    __builtin_prefetch(lists_[index], 1);
    __builtin_prefetch(lists_[first_from(index + 1)], 1);
  }

  // See Note [Without branches].

  [[gnu::always_inline]] void insert(Tile* tile) noexcept {
    const std::size_t index = list_of(tile->bytes);
    Tile* const next = lists_[index];
    tile->link = &lists_[index];
    tile->next = next;
    next->link = &tile->next;
    lists_[index] = tile;
    words_[index / 64] |= std::uint64_t{1} << (index % 64);
    summary_ |= std::uint64_t{1} << (index / 64);
  }

  [[gnu::always_inline]] void erase(Tile* tile) noexcept {
    const std::size_t index = list_of(tile->bytes);
    Tile* const next = tile->next;
    next->link = tile->link;
    *tile->link = next;
    const std::uint64_t word = words_[index / 64] & ~(std::uint64_t{lists_[index] == &end_} << (index % 64));
    words_[index / 64] = word;
    summary_ &= ~(std::uint64_t{word == 0} << (index / 64));
  }

  /// The shortest tile of at least `bytes` of which `serves` is true, null where there is none; of tiles that are
  /// longer than `longest_bytes` it may be false. Every tile in between may be looked at.
  template <class Serves>
  Tile* shortest(std::size_t bytes, std::size_t longest_bytes, Serves&& serves) const {
    Tile* best = nullptr;
    const std::size_t last = std::min(list_of(longest_bytes), kNone - 1);
    for (std::size_t index = first_from(list_of(bytes)); index <= last && best == nullptr;
         index = first_from(index + 1))
      for (Tile* tile = lists_[index]; tile != &end_; tile = tile->next)
        if (tile->bytes >= bytes && (best == nullptr || tile->bytes < best->bytes) && serves(*tile)) best = tile;
    return best;
  }

  /// `visit` must not change the index.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_from(0, visit);
  }
  /// Every tile of at least `least_bytes`, and some that are a little shorter.
  template <class Visit>
  void for_each_from(std::size_t least_bytes, Visit&& visit) const {
    const std::size_t first = first_from(list_of(least_bytes));
    std::size_t ahead = first;  // most lists are short: what is waited for is their first tile
    for (int lists = 0; lists < kListsAhead && ahead != kNone; ++lists) ahead = prefetch_list(ahead);
    for (std::size_t index = first; index != kNone; index = first_from(index + 1)) {
      if (ahead != kNone) ahead = prefetch_list(ahead);
      for (Tile* tile = lists_[index]; tile != &end_; tile = tile->next) visit(tile);
    }
  }

  /// Some tile; null where there is none.
  Tile* any() const {
    Tile* tile = lists_[first_from(0)];
    return tile != &end_ ? tile : nullptr;
  }

 private:
  static constexpr std::size_t kPerPower = 128, kPowers = 31;  // the last one ends at 32 TiB
  static constexpr std::size_t kLists = kPerPower * (kPowers + 1);
  /// Always empty, and said to hold something: a search ends here.
  static constexpr std::size_t kNone = kLists - 1;
  static constexpr std::size_t kWords = kLists / 64;
  static constexpr std::uint64_t kLastBit = std::uint64_t{1} << 63;
  static constexpr int kTries = 4, kListsAhead = 16;
  static_assert(kWords == 64);

  static std::size_t list_of(std::size_t bytes) {
    const std::size_t units = bytes / kGrain;
    const auto power = static_cast<std::size_t>(std::bit_width(units | kPerPower)) - 8;  // up to 255 units: 0
    return power * kPerPower + (units >> power);
  }

  /// Returns the next list that holds something.
  std::size_t prefetch_list(std::size_t index) const {
    __builtin_prefetch(lists_[index]);
    return first_from(index + 1);
  }

  Tile* fittest(Tile* tile, std::size_t bytes) const {
    Tile* best = nullptr;
    std::size_t best_bytes = ~std::size_t{0};
    for (int tries = kTries; tile != &end_ && tries > 0; tile = tile->next, --tries) {
      if (tile->bytes == bytes) return tile;
      if (tile->bytes < bytes || tile->bytes >= best_bytes) continue;
      best = tile;
      best_bytes = tile->bytes;
    }
    return best;
  }

  /// From there on the first list that holds something; kNone when no other does.
  std::size_t first_from(std::size_t index) const {
    const std::size_t word = index / 64;
    const std::uint64_t here = words_[word] >> (index % 64) << (index % 64);
    const auto later = static_cast<std::size_t>(std::countr_zero((summary_ & ~std::uint64_t{1} << word) | kLastBit));
    const std::size_t found = here != 0 ? word : later;
    const std::uint64_t bits = here != 0 ? here : words_[later];
    return found * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  Tile end_;  ///< of every list
  std::array<Tile*, kLists> lists_;
  std::array<std::uint64_t, kWords> words_{};
  std::uint64_t summary_ = kLastBit;
};

}  // namespace tenon::mortise
