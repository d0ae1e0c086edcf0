// ExactSearch: whether buffers without gaps fit under a capacity. Branch and bound over the canonical packings alone
// (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023):
// buffers are placed from the bottom up, each at the lowest offset that those below it leave, and what no better
// packing can follow from is cut off.
//
// What is kept for each node, and undone by a trail when the search comes back: the lowest offset of each buffer that
// is not placed, the floor of each section (the lowest of those of its buffers) and the bytes that are still to come
// in it. A node costs what the buffer's neighbours cost, so millions are visited in a second or two.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/timeline.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tenon::packing {

enum class SearchEnd : std::uint8_t {
  kFound,
  kInfeasible,  ///< proven
  kStopped,     ///< by the limit of nodes, or from outside
};

/// In which order buffers of equal lowest offsets are tried: different ones find different packings fast.
enum class Preorder : std::uint8_t {
  kWidth,      ///< the longest life first, then the largest area
  kLoad,       ///< what lives in the fullest section first, then the largest area
  kLoadWidth,  ///< what lives in the fullest section first, then the longest life
  kSpan,       ///< these three with lives counted in sections
  kLoadOfSpans,
  kLoadSpan,
  kArea,
};
/// The most useful first.
inline constexpr Preorder kPreorders[] = {Preorder::kLoadWidth, Preorder::kLoad, Preorder::kWidth,
                                          Preorder::kLoadSpan,  Preorder::kSpan, Preorder::kLoadOfSpans,
                                          Preorder::kArea};

class TENON_API ExactSearch {
 public:
  /// No buffer has gaps; fixed offsets are kept. Memory: a word for each two buffers that live together.
  ExactSearch(std::span<const Buffer> buffers, const Timeline& timeline);

  /// Looks for offsets that end at `capacity` at most, at `nodes` nodes at most.
  SearchEnd run(std::uint64_t capacity, Preorder preorder, std::uint64_t nodes);
  /// Of the last run that ended with kFound.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  std::uint64_t visited() const { return visited_; }

  /// Asked now and then; true ends a run.
  std::function<bool()> is_stopping;

 private:
  struct Item {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint64_t size = 0;
    std::uint64_t alignment = 1;
    std::uint32_t buffer = 0;
    std::uint32_t twin = 0;  ///< the item before it that is equal in all; itself: there is none
    std::uint64_t fixed = 0;
    bool is_fixed = false;
  };
  struct Change {
    std::uint64_t value;
    std::uint32_t index;
  };
  /// Where the last buffer was placed: what follows is not below it.
  struct Last {
    std::uint64_t offset = 0;
    std::uint32_t rank = 0;
  };
  using Key = std::array<double, 3>;
  /// Items that are to be placed in the sections [begin, end), by rank: those at [first, first + count) of todo_.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  Key key_of(const Item& item, Preorder preorder, std::span<const std::uint64_t> loads) const;
  void link();
  SearchEnd search(Part part, Last last);
  bool is_told_to_stop();
  SearchEnd descend(const Part& part, Last last, std::uint32_t item);
  SearchEnd search_apart(const Part& part, Last last, std::uint32_t item);
  bool place(std::uint32_t item, bool& has_neighbours);
  bool raise_floors();
  void mark_sections(const Item& item, std::uint64_t floor);
  void undo(std::size_t lowest_mark, std::size_t floor_mark);

  std::span<const Buffer> buffers_;
  std::span<const std::uint64_t> load_;
  const std::uint32_t sections_;
  std::uint64_t capacity_ = 0;
  std::uint64_t visited_ = 0;
  std::uint64_t nodes_left_ = 0;
  std::uint64_t work_ = 0;  ///< since it was asked whether to stop

  std::vector<Item> items_;                ///< in the order that the whole problem begins with
  std::vector<std::uint32_t> neighbours_;  ///< of all items, one after the other
  std::vector<std::size_t> first_neighbour_;
  std::vector<std::uint32_t> members_;  ///< of all sections
  std::vector<std::size_t> first_member_;

  Preorder preorder_ = Preorder::kWidth;
  std::vector<std::uint32_t> rank_;    ///< by item: its place in the order of the part it is in
  std::vector<std::uint64_t> lowest_;  ///< by item; kPlaced for one that is placed
  std::vector<std::uint64_t> placed_at_;
  std::vector<std::uint64_t> floor_;     ///< by section; kPlaced: nothing is to come
  std::vector<std::uint64_t> to_come_;   ///< by section, bytes
  std::vector<std::uint32_t> crossing_;  ///< items to come that live in a section and in the next
  std::vector<Change> lowest_trail_, floor_trail_;
  std::vector<std::uint32_t> todo_;    ///< a stack: the lists of the parts under way
  std::vector<Change> candidates_;     ///< a stack likewise
  std::vector<std::uint32_t> marked_;  ///< sections whose floor has to be looked at
  std::vector<std::uint8_t> is_marked_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace tenon::packing
