// FreeIndex: the cached pieces of one pool on one stream. Finds the smallest that suffices, exactly, and of equal ones
// the first by order, without looking at the others.
//
//   words_     one bit per size class that holds something      class 0 … 4096: one per 512 bytes up to 2 MiB,
//   summary_   one bit per word that is not zero                then 512 per power of two
//   classes_   the pieces of each class, ordered
#pragma once

#include "ordered_pieces.h"
#include "piece.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace tenon::caching {

class FreeIndex {
 public:
  Piece* at_least(std::size_t bytes) const { return at_least(PieceKey{bytes, 0}); }
  /// The piece that follows in (bytes, order).
  Piece* after(const Piece* piece) const { return at_least(PieceKey{piece->bytes, piece->order + 1}); }

  void insert(Piece* piece) {
    const std::size_t index = class_of(piece->bytes);
    // Free runs of an expandable small pool outgrow its segments.
    classes_[index].insert(piece, nodes_);
    words_[index / 64] |= std::uint64_t{1} << (index % 64);
    summary_[index / 4096] |= std::uint64_t{1} << (index / 64 % 64);
    bytes_ += piece->bytes;
    ++count_;
  }

  void erase(Piece* piece) {
    const std::size_t index = class_of(piece->bytes);
    classes_[index].erase(piece, nodes_);
    bytes_ -= piece->bytes;
    --count_;
    if (!classes_[index].empty()) return;
    words_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    if (words_[index / 64] == 0) summary_[index / 4096] &= ~(std::uint64_t{1} << (index / 64 % 64));
  }

  /// All pieces in (bytes, order).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t index = next_class(0); index < kClasses; index = next_class(index + 1))
      classes_[index].for_each(visit);
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t count() const { return count_; }
  std::size_t largest_bytes() const {
    std::size_t largest = 0;
    for_each([&](const Piece* piece) { largest = std::max(largest, piece->bytes); });
    return largest;
  }

 private:
  static constexpr std::size_t kLinearClasses = 2 * MiB / 512 + 1;
  static constexpr int kFinenessBits = 9;
  static constexpr std::size_t kPerMagnitude = std::size_t{1} << kFinenessBits;
  static constexpr int kFirstMagnitude = 21, kLastMagnitude = 44;  // above 32 TiB all share the last class
  static constexpr std::size_t kClasses = kLinearClasses + kPerMagnitude * (kLastMagnitude - kFirstMagnitude + 1);
  static constexpr std::size_t kWords = (kClasses + 63) / 64;

  static std::size_t class_of(std::size_t bytes) {
    if (bytes < 2 * MiB + 512) return bytes / 512;
    const int magnitude = std::bit_width(bytes) - 1;
    if (magnitude > kLastMagnitude) return kClasses - 1;
    return kLinearClasses + kPerMagnitude * static_cast<std::size_t>(magnitude - kFirstMagnitude) +
           (bytes >> (magnitude - kFinenessBits) & (kPerMagnitude - 1));
  }

  /// The first class from `index` on that holds something, kClasses when there is none.
  std::size_t next_class(std::size_t index) const {
    if (index >= kClasses) return kClasses;
    std::size_t word = index / 64;
    if (const std::uint64_t rest = words_[word] >> (index % 64))
      return index + static_cast<std::size_t>(std::countr_zero(rest));
    ++word;
    for (std::size_t group = word / 64; group < summary_.size(); ++group, word = group * 64) {
      const std::uint64_t rest = word % 64 == 0 ? summary_[group] : summary_[group] >> (word % 64) << (word % 64);
      if (rest == 0) continue;
      word = group * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      return word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word]));
    }
    return kClasses;
  }

  Piece* at_least(PieceKey key) const {
    const std::size_t index = class_of(key.bytes);
    if (!classes_[index].empty())
      if (Piece* piece = classes_[index].at_least(key)) return piece;
    const std::size_t next = next_class(index + 1);
    return next < kClasses ? classes_[next].first() : nullptr;
  }

  std::array<std::uint64_t, kWords> words_{};
  std::array<std::uint64_t, (kWords + 63) / 64> summary_{};
  struct Free {
    void operator()(OrderedPieces* classes) const { std::free(classes); }
  };
  /// From calloc: all empty, and no page of it resident before a class on it is used.
  static OrderedPieces* make_classes() {
    static_assert(std::is_trivially_destructible_v<OrderedPieces>);
    auto* classes = static_cast<OrderedPieces*>(std::calloc(kClasses, sizeof(OrderedPieces)));
    if (!classes) throw std::bad_alloc();
    return classes;
  }
  std::unique_ptr<OrderedPieces[], Free> classes_{make_classes()};
  NodeStore nodes_;
  std::size_t bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace tenon::caching
