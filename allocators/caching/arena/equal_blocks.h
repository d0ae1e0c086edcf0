// EqualBlocks: the free blocks of one and the same size by order. One block, or a heap of four branches per node whose
// top is the first; each block knows its place in it, so that one which is merged away leaves without being looked for.
//
//   line 0   | count … | 0 |        one cache line holds a node's four children,
//   line 1   | 1 | 2 | 3 | 4 |      whose own are in lines 2 to 5, and so on
//
// Small fragments crowd in a few sizes, and most of them come and go by splitting and merging without ever being the
// one that a request takes: coming costs a look at one parent, going a move of the last entry.
#pragma once

#include "block_record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::caching {

/// Heaps of one index, reused; the owner locks.
class HeapStore;

class EqualBlocks {
 public:
  BlockRecord* first() const { return is_single() ? single() : entries(heap())[0].block; }
  /// The block with the least order above the given one, null when there is none. Costs what is before it.
  BlockRecord* after(std::uint64_t order) const;
  /// Nothing is inside: whatever was before is forgotten.
  void set_single(BlockRecord* block) { root_ = reinterpret_cast<std::uintptr_t>(block); }
  /// Something is inside.
  void insert_beside(BlockRecord* block, HeapStore& heaps);
  /// Not the only one inside.
  void erase(BlockRecord* block, HeapStore& heaps);
  bool is_single() const { return (root_ & 1) == 0; }
  /// By order.
  std::vector<BlockRecord*> in_order() const;

 private:
  friend class HeapStore;
  struct Entry {
    std::uint64_t order;
    BlockRecord* block;
  };
  struct alignas(64) Heap {
    std::size_t count;
    std::size_t level;  ///< room for 1 + 4 << level entries, which follow from byte 48 on
    Heap* next_spare;
  };
  static constexpr std::size_t kEntriesAt = 48;
  static constexpr std::size_t kBranches = 4;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  ///< order of the missing of four children

  static Entry* entries(Heap* heap) {
    return reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(heap) + kEntriesAt);
  }
  static std::size_t room(std::size_t level) { return 1 + (kBranches << level); }
  static void put(Entry* entries, std::size_t place, Entry entry) {
    entries[place] = entry;
    entry.block->place = place;
  }
  static void rise(Entry* entries, std::size_t place, Entry entry);
  static void sink(Entry* entries, std::size_t count, std::size_t place, Entry entry);
  static const Entry* least_above(const Entry* entries, std::size_t count, std::size_t place, std::uint64_t order,
                                  const Entry* best);

  BlockRecord* single() const { return reinterpret_cast<BlockRecord*>(root_); }
  Heap* heap() const { return reinterpret_cast<Heap*>(root_ - 1); }

  std::uintptr_t root_ = 0;  // a BlockRecord*, or a Heap* with bit 0 set
};

class HeapStore {
 public:
  HeapStore() = default;
  HeapStore(const HeapStore&) = delete;
  HeapStore& operator=(const HeapStore&) = delete;

  EqualBlocks::Heap* take(std::size_t level);
  void give(EqualBlocks::Heap* heap) {
    heap->next_spare = spare_[heap->level];
    spare_[heap->level] = heap;
  }

 private:
  struct Line {
    alignas(64) std::byte bytes[64];
  };
  static constexpr std::size_t kLevels = 40;
  std::vector<std::unique_ptr<Line[]>> owned_;
  std::array<EqualBlocks::Heap*, kLevels> spare_{};
};

}  // namespace tenon::caching
