// A history as lines for people: what repeats is one line with a count, and of a long one both ends are shown.
#pragma once

#include <tenon/conformance/history.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::conformance {

/// One line an operation, without an indent. Equal operations in a row, and allocations or frees of one block after
/// the other, are one line that ends in "×985"; a few operations that repeat as a group stand under a line "×985:".
/// `sizes_may_differ`: of such a line or group the sizes may be "1 to 4096 bytes".
TENON_API std::vector<std::string> folded_lines(const Operations& history, bool sizes_may_differ = false);

/// The folded lines, indented. Of more than `most` those are folded too that differ in sizes alone; of what is still
/// more the middle is left out, and said to be.
TENON_API std::string history_text(const Operations& history, std::size_t most = 40);

}  // namespace tenon::conformance
