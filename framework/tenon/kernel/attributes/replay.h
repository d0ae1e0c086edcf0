// What differs between the runs of one captured graph.
#pragma once

#include <cstdint>

namespace tenon {

/// Attributes are copied into a graph when it is captured, so that a run of it would draw the same numbers and take the
/// same step again. Hence attributes with a position or a count point to these too: device memory that the owner of the
/// graph writes before each run, and that kernels add to what they hold by value. Null outside of a capture.
struct ReplayCounters {
  std::uint64_t seed = 0;    ///< of random numbers; sums wrap
  std::uint64_t offset = 0;  ///< of random numbers
  std::int64_t step = 0;     ///< of optimisers
};

}  // namespace tenon
