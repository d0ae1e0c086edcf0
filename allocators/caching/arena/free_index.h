// FreeIndex: the cached blocks of one pool on one stream. Finds the smallest that suffices, exactly, and of equal ones
// the first by order, without looking at the others.
//
//   words_     two bits per size class: holds something, holds several
//   summary_   one bit per word in which a class holds something
//   classes_   the blocks of each class, ordered: up to 2 MiB one class for each multiple of 512 bytes (its blocks are
//              equal) and one for what lies between two of them; above 2 MiB 512 classes per power of two
//
// The words stay in the processor's first cache, the classes do not: a block that is alone in its class comes and goes
// without a look at the class.
#pragma once

#include "block_record.h"
#include "equal_blocks.h"
#include "ordered_blocks.h"

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
  /// A block, the class that holds it, and its size, which is known before the block has come to the cache.
  struct Place {
    BlockRecord* block = nullptr;
    std::size_t index = 0;
    std::size_t bytes = 0;
  };

  /// The smallest block of at least so many bytes; Place::block is null when there is none.
  Place find(std::size_t bytes) const {
    std::size_t index = class_of(bytes);
    // All of a class of equal blocks suffices, or none: nothing needs to be compared.
    if (!is_equal(index)) {
      if (bit(words_[index / 64].something, index))
        if (BlockRecord* block = classes_[index].mixed.at_least({bytes, 0})) return {block, index, block->bytes};
      ++index;
    }
    return first_from(index);
  }
  BlockRecord* at_least(std::size_t bytes) const { return find(bytes).block; }

  Place place_of(BlockRecord* block) const { return {block, class_of(block->bytes), block->bytes}; }

  /// The block that follows in (bytes, order), null when there is none.
  BlockRecord* after(const BlockRecord* block) const {
    const std::size_t index = class_of(block->bytes);
    if (bit(words_[index / 64].several, index)) {
      BlockRecord* next = is_equal(index) ? classes_[index].equal.after(block->order)
                                          : classes_[index].mixed.at_least({block->bytes, block->order + 1});
      if (next) return next;
    }
    return first_from(index + 1).block;
  }

  void insert(BlockRecord* block) {
    const std::size_t index = class_of(block->bytes);
    Word& word = words_[index / 64];
    const std::uint64_t mask = std::uint64_t{1} << (index % 64);
    if (word.something & mask) {
      insert_beside(block, index);
      word.several |= mask;
      return;
    }
    word.something |= mask;
    summary_[index / 4096] |= std::uint64_t{1} << (index / 64 % 64);
    classes_[index].equal.set_single(block);
  }

  void erase(BlockRecord* block) { erase(place_of(block)); }
  void erase(Place place) {
    Word& word = words_[place.index / 64];
    const std::uint64_t mask = std::uint64_t{1} << (place.index % 64);
    if (word.several & mask) {
      if (erase_from_several(place)) word.several &= ~mask;
      return;
    }
    word.something &= ~mask;
    if (word.something == 0) summary_[place.index / 4096] &= ~(std::uint64_t{1} << (place.index / 64 % 64));
  }

  /// All blocks in (bytes, order).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t index = next_class(0); index < kClasses; index = next_class(index + 1)) {
      if (is_equal(index))
        for (BlockRecord* block : classes_[index].equal.in_order()) visit(block);
      else
        classes_[index].mixed.for_each(visit);
    }
  }

  /// Of the largest block; 0 when there is none.
  std::size_t largest_bytes() const {
    std::size_t largest = 0;
    for_each([&](const BlockRecord* block) { largest = std::max(largest, block->bytes); });
    return largest;
  }

 private:
  static constexpr std::size_t kLinearClasses = 2 * (2 * MiB / 512 + 1);
  static constexpr std::size_t kFinenessBits = 9;
  static constexpr std::size_t kPerMagnitude = std::size_t{1} << kFinenessBits;
  static constexpr std::size_t kFirstMagnitude = 21, kLastMagnitude = 44;  // above 32 TiB all share the last class
  static constexpr std::size_t kClasses = kLinearClasses + kPerMagnitude * (kLastMagnitude - kFirstMagnitude + 1);
  static constexpr std::size_t kWords = (kClasses + 63) / 64;
  static constexpr std::size_t kGroups = (kWords + 63) / 64;

  static std::size_t class_of(std::size_t bytes) {
    if (bytes < 2 * MiB + 512) return bytes / 512 * 2 + (bytes % 512 != 0);
    const std::size_t magnitude = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
    if (magnitude > kLastMagnitude) return kClasses - 1;
    return kLinearClasses - kPerMagnitude * (kFirstMagnitude + 1) + kPerMagnitude * magnitude +
           (bytes >> (magnitude - kFinenessBits));
  }

  static bool is_equal(std::size_t index) { return index < kLinearClasses && index % 2 == 0; }
  static bool bit(std::uint64_t bits, std::size_t index) { return bits >> (index % 64) & 1; }

  void insert_beside(BlockRecord* block, std::size_t index) {
    if (is_equal(index))
      classes_[index].equal.insert_beside(block, heaps_);
    else
      classes_[index].mixed.insert_beside(block, nodes_);
  }
  /// Whether only one is left.
  bool erase_from_several(Place place) {
    Class& from = classes_[place.index];
    if (is_equal(place.index))
      from.equal.erase(place.block, heaps_);
    else
      from.mixed.erase(place.block, nodes_);
    return from.equal.is_single();
  }

  /// The first class from `index` on that holds something, kClasses when there is none.
  std::size_t next_class(std::size_t index) const {
    if (index >= kClasses) return kClasses;
    const std::size_t word = index / 64;
    if (const std::uint64_t rest = words_[word].something >> (index % 64))
      return index + static_cast<std::size_t>(std::countr_zero(rest));
    // Of its group of words the later ones, then the groups that follow.
    std::size_t group = word / 64;
    std::uint64_t rest = summary_[group] & ~std::uint64_t{1} << (word % 64);
    while (rest == 0) {
      if (++group == kGroups) return kClasses;
      rest = summary_[group];
    }
    const std::size_t next = group * 64 + static_cast<std::size_t>(std::countr_zero(rest));
    return next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next].something));
  }

  Place first_from(std::size_t index) const {
    const std::size_t next = next_class(index);
    if (next == kClasses) return {};
    const Class& holder = classes_[next];
    if (is_equal(next)) return {holder.equal.first(), next, next / 2 * 512};
    BlockRecord* first = holder.mixed.first();
    return {first, next, first->bytes};
  }

  /// Either way a pointer, to the block itself where there is only one.
  union Class {
    EqualBlocks equal;
    OrderedBlocks mixed;
  };

  struct Word {
    std::uint64_t something, several;
  };
  std::array<Word, kWords> words_{};
  std::array<std::uint64_t, kGroups> summary_{};
  struct Free {
    void operator()(Class* classes) const { std::free(classes); }
  };
  /// From calloc: no page of it is resident before a class on it is used.
  static Class* make_classes() {
    static_assert(std::is_trivially_destructible_v<Class>);
    auto* classes = static_cast<Class*>(std::calloc(kClasses, sizeof(Class)));
    if (!classes) throw std::bad_alloc();
    return classes;
  }
  std::unique_ptr<Class[], Free> classes_{make_classes()};
  HeapStore heaps_;
  NodeStore nodes_;
};

}  // namespace tenon::caching
