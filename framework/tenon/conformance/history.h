// A history as data: what a random test does to an allocator, so that a failing one can be run again and made shorter.
// Not replay's Trace, which is in a layer above and holds what a recording can: the kit also varies alignments, the
// last user that a free names, and what a trim may keep, and its operations mean something with any of them left out.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::conformance {

struct Operation {
  enum Kind : std::uint8_t { kAllocate, kFree, kUse, kComplete, kTrim };
  Kind kind = kAllocate;
  std::uint32_t slot = 0;  ///< which block; an operation on an empty (allocate: a full) slot does nothing
  std::size_t bytes = 0;   ///< of an allocation; of a trim: how much may stay
  std::size_t alignment = 64;
  std::uint64_t stream = 0;  ///< of an allocation, a use, a completion; of a free: the last user

  bool operator==(const Operation&) const = default;
};

using Operations = std::vector<Operation>;

TENON_API std::string to_string(const Operations& history);

/// A history from a seed: sizes from bytes to tens of MiB, a few streams, at most so many blocks alive, frees in any
/// order.
Operations make_history(std::uint64_t seed, int length, int streams, int blocks = 48);

}  // namespace tenon::conformance
