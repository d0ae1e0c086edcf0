// Timeline: time in sections. A section begins where a buffer begins after another one has ended, so that all that
// live at some moment of it live at one moment together; what else happens in time decides nothing.
//
//   time       0  1  2  3  4  5  6
//   a          [--------)                 sections: 0 = {a, b}, 1 = {b, c}
//   b             [-----------)
//   c                    [-------)
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/problem.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::packing {

/// In the sections [begin, end) the bytes [low, high) above the buffer's offset are in use.
struct Piece {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

class TENON_API Timeline {
 public:
  /// Of a problem that check_problem has passed.
  explicit Timeline(std::span<const Buffer> buffers);

  std::uint32_t sections() const { return sections_; }
  /// One for a buffer without gaps.
  std::span<const Piece> pieces(std::size_t buffer) const {
    return std::span(pieces_).subspan(first_piece_[buffer], first_piece_[buffer + 1] - first_piece_[buffer]);
  }
  /// Bytes in use at once, by section.
  const std::vector<std::uint64_t>& load() const { return load_; }
  /// No packing is lower: the largest load, with what alignments add to it.
  std::uint64_t lower_bound() const { return lower_bound_; }
  bool has_gaps() const { return has_gaps_; }

 private:
  std::uint32_t sections_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> first_piece_;
  std::vector<std::uint64_t> load_;
  std::uint64_t lower_bound_ = 0;
  bool has_gaps_ = false;
};

/// Groups of buffers that no buffer outside of them lives together with; each in the order of the indices. They can
/// be packed apart from each other.
TENON_API std::vector<std::vector<std::uint32_t>> components(std::span<const Buffer> buffers);

}  // namespace tenon::packing
