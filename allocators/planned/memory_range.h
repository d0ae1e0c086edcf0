// MemoryRange: one range of addresses with its tiles: blocks that are out, ones that wait for streams, free ones.
//
//   | active | free, stream 1 | active | waiting |         free, no memory yet        |
//   |<---- page ---->|<---- page ---->|                                                 a range with virtual memory
//
// With virtual memory a range is addresses, and pages are put behind what is handed out for the first time; without, it
// is one piece of memory from the device. Free neighbours are merged, unless work of different streams still uses them.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tenon::planned {

class MemoryRange;

struct Tile {
  MemoryRange* range = nullptr;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  BlockState state = BlockState::kFree;
  std::size_t requested_bytes = 0;
  StreamRef stream;                      ///< whose work may still use it
  bool is_settled = true;                ///< free: no work uses it any more
  std::optional<Ticket> ticket;          ///< free, not settled: when that will be so; none: nobody has asked yet
  std::vector<StreamRef> other_streams;  ///< active: that use it as well
  std::vector<Ticket> awaited;           ///< waiting: for these
  std::uint64_t recorded = 0;            ///< number of its request in a recording

  void* data() const;
};

class MemoryRange {
 public:
  /// `bytes` is a multiple of the source's page where `is_virtual`. The memory at `base` is this object's from now on.
  MemoryRange(MemorySource& source, void* base, std::size_t bytes, bool is_virtual);
  /// Gives it back, whoever still uses it.
  ~MemoryRange();
  MemoryRange(const MemoryRange&) = delete;
  MemoryRange& operator=(const MemoryRange&) = delete;

  /// Takes [offset, offset + bytes); null where that is in use, or by work of other streams, or where the device has no
  /// page left.
  Tile* take_at(std::size_t offset, std::size_t bytes, StreamRef stream);
  /// The same from the smallest free tile that has room.
  Tile* take(std::size_t bytes, std::size_t alignment, StreamRef stream);
  /// An active or waiting tile becomes free; work on its stream may still use it. `ticket`: made on it just now.
  void give(Tile* tile, std::optional<Ticket> ticket) noexcept;

  /// No work uses anything free: the caller has waited for all streams.
  void settle();
  /// Takes pages from under free tiles, from the top, until `bytes` are given back; a range of one piece as a whole,
  /// which is then empty(). All is settled. Pages of [kept_offset, kept_offset + kept_bytes) stay. Returns the bytes.
  std::size_t shrink(std::size_t bytes, std::size_t kept_offset = 0, std::size_t kept_bytes = 0);
  /// Of the pages of [offset, offset + bytes), those without memory.
  std::size_t missing_bytes(std::size_t offset, std::size_t bytes) const;
  /// Nothing is handed out, and there is no memory behind it.
  bool is_empty() const { return active_ == 0 && reserved_ == 0; }

  std::size_t bytes() const { return bytes_; }
  std::size_t reserved_bytes() const { return reserved_; }
  std::size_t active_bytes() const { return active_; }  ///< with those that wait
  std::size_t largest_free_bytes() const;

  void walk(SegmentVisitor& visitor) const;
  void check_invariants() const;

 private:
  friend struct Tile;
  using Tiles = std::map<std::size_t, Tile>;
  using FreeTiles = std::set<std::pair<std::size_t, std::size_t>>;

  bool is_usable(Tile& tile, StreamRef stream);
  bool has_page(std::size_t page) const { return page < pages_.size() && pages_[page] != 0; }
  bool put_pages(std::size_t offset, std::size_t bytes);
  void drop_page(std::size_t page);
  Tile* carve(std::size_t offset, std::size_t bytes, StreamRef stream);
  void provide(std::size_t tiles);
  Tile& add(std::size_t offset, std::size_t bytes) noexcept;
  Tiles::iterator remove(Tiles::iterator tile) noexcept;
  void index(const Tile& tile) noexcept;
  void unindex(const Tile& tile) noexcept { unindex(tile.bytes, tile.offset); }
  void unindex(std::size_t bytes, std::size_t offset) noexcept {
    spare_free_.push_back(free_.extract({bytes, offset}));
  }
  static bool merge_into(Tile& left, const Tile& right);
  template <class Visit>
  void for_each_part(const Tile& tile, Visit&& visit) const;

  MemorySource& source_;
  char* const base_;
  const std::size_t bytes_;
  const std::size_t page_bytes_;      ///< 0: memory of one piece
  std::vector<std::uint64_t> pages_;  ///< their physicals, up to the last there is; 0: none
  Tiles tiles_;                       ///< by offset
  FreeTiles free_;                    ///< by size and offset
  // What the two above have had and will have again, with room for all of it: giving a block back needs no memory of
  // the host.
  std::vector<Tiles::node_type> spare_tiles_;
  std::vector<FreeTiles::node_type> spare_free_;
  std::size_t reserved_ = 0;
  std::size_t active_ = 0;
};

}  // namespace tenon::planned
