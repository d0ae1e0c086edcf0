// JoinedRanges: blocks that are put together out of pieces of the home space, and the ranges of such blocks that were
// given back. A range stays mapped to its pieces, and serves again when all of them are free.
//
// What there is has a lock of its own, which is taken last: a stream takes a range again, or gives one back, under it
// and its own lock. Ranges are made and forgotten under the lock over all streams.
#pragma once

#include "home.h"
#include "joint.h"

#include <tenon/memory/concurrent/biased_lock.h>

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tenon::mortise {

struct JoinedRange {
  std::uintptr_t address = 0;  ///< of the range; the block begins within its first page
  std::size_t range_bytes = 0;
  std::size_t bytes = 0;     ///< of the block
  std::uint64_t serial = 0;  ///< no two ranges have the same
  std::vector<Piece> pieces;
  std::vector<Tile*> lent;                  ///< the pieces while a block is there
  Tile* tile = nullptr;                     ///< the block's own record; null while nothing is there
  std::list<JoinedRange*>::iterator place;  ///< in `of_size` or `busy`
  std::list<JoinedRange*>::iterator turn;   ///< in `turns`
};

class JoinedRanges {
 public:
  JoinedRanges(MemorySource& source, Home& home) : source_(source), home_(home) {}
  JoinedRanges(const JoinedRanges&) = delete;
  JoinedRanges& operator=(const JoinedRanges&) = delete;
  /// Before the home goes.
  ~JoinedRanges();

  /// A range that waits for a block of just so many bytes and whose pieces are all free on this stream; null where none
  /// is.
  Tile* take_waiting(StreamCache& cache, std::size_t bytes);
  /// The range of that serial again, if it still exists for a block of so many bytes and its pieces are free; null
  /// otherwise.
  Tile* take_again(StreamCache& cache, std::uint64_t serial, std::size_t bytes);
  /// Maps these pieces, which are parts of free tiles of that stream. Null when there is no address space. Throws what
  /// map throws.
  Tile* make(StreamCache& cache, std::size_t bytes, std::vector<Piece> pieces);
  /// The block's pieces go back to the home space, and its range waits.
  void give_back(Tile* tile) noexcept;
  /// Where its block begins: within its first page.
  static std::uintptr_t begin_of(const JoinedRange& range, std::size_t page_bytes) {
    return range.address + range.pieces.front().address % page_bytes;
  }
  std::size_t waiting() const {
    const BiasedLock::Guard lock(mutex_);
    return waiting_locked();
  }
  /// Unmaps those that wait longest until so many are left. No stream uses them.
  void forget_waiting(std::size_t left) noexcept;

  template <class Visit>
  void for_each_block(Visit&& visit) const {
    const BiasedLock::Guard lock(mutex_);
    for (const auto& [serial, range] : ranges_)
      if (range->tile != nullptr) visit(*range);
  }
  void check() const;

 private:
  Tile* take(StreamCache& cache, JoinedRange& range);
  void unmap(const JoinedRange& range) noexcept;
  static void prepare(StreamCache& cache, JoinedRange& range);
  Tile* occupy(StreamCache& cache, JoinedRange& range);
  static bool is_free(StreamCache& cache, const JoinedRange& range);
  void map_pieces(JoinedRange& range);
  std::size_t waiting_locked() const { return ranges_.size() - busy_.size(); }

  MemorySource& source_;
  Home& home_;
  std::uint64_t made_ = 0;  ///< under the lock over all streams, as are the home's addresses

  mutable BiasedLock mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<JoinedRange>> ranges_;  ///< by serial
  std::unordered_map<std::size_t, std::list<JoinedRange*>> of_size_;  ///< that wait, the one that waits longest first
  std::list<JoinedRange*> turns_;                                     ///< all, the one longest unused first
  std::list<JoinedRange*> busy_;
};

}  // namespace tenon::mortise
