// What repeats in a history: groups of operations that come again and again, on the same blocks or on others.
#pragma once

#include <tenon/conformance/history.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::conformance {

/// A stretch of a history: a group of operations, and how often it comes.
struct Repeat {
  std::size_t at = 0, length = 1, times = 1;
  std::vector<std::int64_t> steps;  ///< by operation of the group: what is added to its block's number each time
  std::size_t covered() const { return length * times; }
  std::size_t lines() const { return times == 1 || length == 1 ? 1 : length + 1; }
};

/// Whether the operation is about a block.
bool is_of_block(const Operation& op);

/// The history in stretches, so that they are told in as few lines as possible. `sizes_may_differ`: allocations of
/// different sizes count as the same operation.
TENON_API std::vector<Repeat> repeats_of(const Operations& history, bool sizes_may_differ = false);

/// The lines of repeats_of.
std::size_t line_count(const Operations& history);

/// The same history with its blocks numbered so that it is told in the fewest lines.
TENON_API Operations numbered_for_reading(const Operations& history);

}  // namespace tenon::conformance
