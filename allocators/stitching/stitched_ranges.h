// StitchedRanges: ranges of addresses that map pieces of several primitive blocks behind each other (GMLake, section 3:
// sBlock). A range stays mapped when its block is given back, and serves again when all its pieces are free.
//
//   home       | used | 1 |  2  | used |          | used |  3  |4| used |
//   stitched   | | 1 |  2  |  3  |4| |            one range; whole chunks are mapped, so what lies before the first
//                                                 piece and behind the last one is somebody else's
#pragma once

#include "primitives.h"

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace tenon::stitching {

/// A block that was handed out: its record, and a Block's cookie. It stands in no extent.
struct LargeBlock : Tile {
  std::vector<Tile*> lent;  ///< the pieces while it is handed out, each with `next` pointing back here
  bool is_stitched = false;
};

struct StitchedRange final : LargeBlock {
  std::uintptr_t range = 0;  ///< the block begins within its first chunk
  std::size_t range_bytes = 0;
  std::vector<Piece> pieces;
  std::list<std::unique_ptr<StitchedRange>>::iterator turn;

  bool is_idle() const { return lent.empty(); }
};

class StitchedRanges {
 public:
  StitchedRanges(MemorySource& source, Addresses& addresses, Primitives& primitives)
      : source_(source), addresses_(addresses), primitives_(primitives) {}
  StitchedRanges(const StitchedRanges&) = delete;
  StitchedRanges& operator=(const StitchedRanges&) = delete;
  /// Before the primitive blocks go.
  ~StitchedRanges();

  /// Of the idle ranges of just so many bytes whose pieces are all free in this pool the one that was made first; null
  /// where there is none. With `address`: only the range whose blocks are there.
  StitchedRange* find(const Pool& pool, std::size_t bytes, std::uintptr_t address = 0) const;
  /// Maps these pieces, which are free, and between which whole chunks meet. Null when there is no address space.
  /// Throws what map throws.
  StitchedRange* make(std::size_t bytes, std::span<const Piece> pieces);
  /// It was used just now: of all it is forgotten last.
  void touch(StitchedRange& range) noexcept { ranges_.splice(ranges_.end(), ranges_, range.turn); }

  std::size_t count() const { return ranges_.size(); }
  /// Unmaps idle ranges, the one longest unused first, until so many are left. No stream uses them.
  void forget(std::size_t left) noexcept;
  /// Unmaps the ranges that have a piece in this extent; all of them are idle.
  void forget_those_of(std::uint32_t extent) noexcept;

  template <class Visit>
  void for_each_busy(Visit&& visit) const {
    for (const auto& range : ranges_)
      if (!range->is_idle()) visit(*range);
  }
  /// Throws Error naming what is broken.
  void check() const;

 private:
  using Ranges = std::list<std::unique_ptr<StitchedRange>>;

  void map(StitchedRange& range);
  void unmap(const StitchedRange& range) noexcept;
  Ranges::iterator drop(Ranges::iterator at) noexcept;
  /// The chunks that a piece lies on.
  Piece hull(const Piece& piece) const;

  MemorySource& source_;
  Addresses& addresses_;
  Primitives& primitives_;
  Ranges ranges_;                                                         ///< the one longest unused first
  std::unordered_map<std::size_t, std::vector<StitchedRange*>> of_size_;  ///< the one made first first
};

}  // namespace tenon::stitching
