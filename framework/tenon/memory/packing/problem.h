// Packing: buffers whose lifetimes are known get offsets in one range of addresses, so that no two that live at once
// share a byte and the range is short (offline dynamic storage allocation).
//
//   offset
//     ^      +-----+ +--------+
//     |      |  b  | |   d    |        a.lower = 0, a.upper = 6: lives are half open
//     |   +--+-----+-+----+---+
//     |   |      a        | e |        height: the top of the highest buffer
//     +---+---------------+---+--> time
//
//   Problem ──pack()──> PackResult        (pack.h)
//
// It knows neither allocators nor files: `tenon plan` and the allocator `planned` both stand on it.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::packing {

/// From lower to upper a buffer uses no more than the bytes from low to high above its offset; none where they are
/// equal. minimalloc's gaps.
struct Gap {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// Lives in [lower, upper), which is not empty; size > 0.
struct Buffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;          ///< of its offset; > 0
  std::optional<std::uint64_t> offset;  ///< where it has to lie
  std::optional<std::uint64_t> hint;    ///< where it would rather lie: buffers are also tried in the order of these
  std::vector<Gap> gaps;                ///< within its life, in order, disjoint
};

/// Sizes of all buffers together, offsets and their sizes, stay below this.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;

/// Why no packing can hold this buffer: an empty life, no bytes, an alignment of 0, a gap outside of its life, a fixed
/// offset that its alignment forbids; "ends at 3, not after its start 5". Empty: one can.
TENON_API std::string flaw_of(const Buffer& buffer);

/// Throws ValueError naming the first buffer (by its index) that has a flaw, or sizes that pass
/// kMaxBytes together.
TENON_API void check_problem(std::span<const Buffer> buffers);

/// The top of the highest buffer.
TENON_API std::uint64_t height_of(std::span<const Buffer> buffers, std::span<const std::uint64_t> offsets);

/// What is wrong with a packing: two buffers that overlap, a misaligned or a moved one, by index; empty: nothing.
TENON_API std::string flaw_of(std::span<const Buffer> buffers, std::span<const std::uint64_t> offsets);

}  // namespace tenon::packing
