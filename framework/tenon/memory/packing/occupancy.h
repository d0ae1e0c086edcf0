// Occupancy: which addresses are taken in which sections, for first fit over time.
//
// A tree over the sections. Each node has two lists of taken addresses, as runs that touch nobody:
//   across   what is taken in all of its sections
//   within   what is taken in any of its sections
// A piece is entered in O(log sections) nodes. The lowest free offset for sections [b, e) lies beside the runs of as
// many lists: `within` of the nodes that make up [b, e), `across` of those above them. Packed buffers lie close, so
// runs are few: this is fast where going through all buffers that live at the same time is not.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/timeline.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tenon::packing {

class TENON_API Occupancy {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  explicit Occupancy(std::uint32_t sections);

  /// Nothing is taken.
  void clear();
  /// Takes what a buffer at `offset` uses.
  void add(std::span<const Piece> pieces, std::uint64_t offset);
  /// The lowest multiple of `alignment` from `from` on at which nothing of what the buffer uses is taken; kNone if
  /// that is above `last`.
  std::uint64_t lowest(std::span<const Piece> pieces, std::uint64_t alignment, std::uint64_t from = 0,
                       std::uint64_t last = kNone - 1) const;

 private:
  struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  using Runs = std::vector<Run>;
  struct Node {
    Runs across;
    Runs within;
  };
  /// A list that a search looks at, with its place there, which only rises.
  struct Look {
    const Run* next;
    const Run* end;
    std::uint64_t low;
    std::uint64_t high;
  };

  static void enter(Runs& runs, Run run);
  void enter(std::size_t node, std::uint32_t begin, std::uint32_t end, const Piece& piece, Run run);
  void look(std::size_t node, std::uint32_t begin, std::uint32_t end, const Piece& piece, std::uint64_t from) const;
  void look(const Runs& runs, const Piece& piece, std::uint64_t from) const;

  std::uint32_t width_ = 1;  ///< leaves of the tree, a power of two
  std::vector<Node> nodes_;
  std::vector<std::size_t> touched_;  ///< nodes that are not empty
  mutable std::vector<Look> looks_;
};

}  // namespace tenon::packing
