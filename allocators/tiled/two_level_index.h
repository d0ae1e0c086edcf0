// TwoLevelIndex: free tiles by size class, up to 32 KiB one for each multiple of 512 bytes, above 32 for each power of
// two. Two levels of bitmaps find the next class that holds something, however many tiles there are.
#pragma once

#include "tile.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tenon::tiled {

class TwoLevelIndex {
 public:
  [[gnu::always_inline]] Tile* find(std::size_t bytes) const {
    const std::size_t own = class_of(bytes);
    if (holds_something(own) && classes_[own].first()->bytes >= bytes) return classes_[own].first();
    const std::size_t next = next_class(own + 1);
    return next == kClasses ? nullptr : classes_[next].first();
  }
  /// The tiles that find() is going to look at, as far as can be told before another one has come.
  [[gnu::always_inline]] void prefetch(std::size_t bytes) const {
    const std::size_t own = class_of(bytes), next = next_class(own + 1);
    if (holds_something(own)) __builtin_prefetch(classes_[own].first(), 1);
    if (next != kClasses) __builtin_prefetch(classes_[next].first(), 1);
  }
  Tile* find_hard(std::size_t bytes) const {
    if (Tile* const tile = find(bytes)) return tile;
    for (Tile* tile = classes_[class_of(bytes)].first(); tile; tile = tile->next)
      if (tile->bytes >= bytes) return tile;
    return nullptr;
  }

  [[gnu::always_inline]] void insert(Tile* tile) {
    const std::size_t index = class_of(tile->bytes);
    classes_[index].insert(tile);
    words_[index / 64] |= std::uint64_t{1} << index % 64;
    summary_ |= std::uint64_t{1} << index / 64;
  }
  [[gnu::always_inline]] void erase(Tile* tile) {
    const std::size_t index = class_of(tile->bytes);
    classes_[index].erase(tile);
    if (!classes_[index].empty()) return;
    words_[index / 64] &= ~(std::uint64_t{1} << index % 64);
    if (words_[index / 64] == 0) summary_ &= ~(std::uint64_t{1} << index / 64);
  }

  bool empty() const { return summary_ == 0; }
  Tile* any() const { return empty() ? nullptr : classes_[next_class(0)].first(); }
  bool holds(const Tile* wanted) const {
    const Tile* tile = classes_[class_of(wanted->bytes)].first();
    while (tile && tile != wanted) tile = tile->next;
    return tile != nullptr;
  }

 private:
  static constexpr std::size_t kUnitBits = 9, kFinenessBits = 5;
  static constexpr std::size_t kPerMagnitude = std::size_t{1} << kFinenessBits;
  static constexpr std::size_t kClasses = kPerMagnitude * (64 - kUnitBits - kFinenessBits + 1);
  static constexpr std::size_t kWords = (kClasses + 63) / 64;
  static_assert(kWords <= 64);

  static std::size_t class_of(std::size_t bytes) {
    const std::size_t units = bytes >> kUnitBits;
    if (units < kPerMagnitude) return units;
    const auto shift = static_cast<std::size_t>(std::bit_width(units)) - 1 - kFinenessBits;
    return shift * kPerMagnitude + (units >> shift);
  }
  bool holds_something(std::size_t index) const { return words_[index / 64] >> index % 64 & 1; }
  /// The first class from `index` on that holds something, kClasses when there is none.
  std::size_t next_class(std::size_t index) const {
    const std::size_t word = index / 64;
    if (word >= kWords) return kClasses;
    if (const std::uint64_t rest = words_[word] >> index % 64)
      return index + static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t later = summary_ & (~std::uint64_t{1} << word);
    if (later == 0) return kClasses;
    const auto next = static_cast<std::size_t>(std::countr_zero(later));
    return next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next]));
  }

  std::uint64_t summary_ = 0;
  std::array<std::uint64_t, kWords> words_{};
  std::array<TileList, kClasses> classes_{};
};

}  // namespace tenon::tiled
