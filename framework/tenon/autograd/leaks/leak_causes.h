// From blocks that grow to the leaks that they are signs of: one cause may hold the blocks of many lines.
#pragma once

#include <tenon/autograd/leaks/leak_watch.h>

#include <cstdint>
#include <set>
#include <vector>

namespace tenon::memory {

/// Live blocks of one stack, purpose and label that become more.
struct GrowingBlocks {
  double bytes_per_step = 0;
  std::vector<LiveBlock> blocks;
};

/// What other threads than the one that steps have made and that lives at a look. A step of theirs may be on: only
/// what is there at the look before, too, stays.
struct MadeElsewhere {
  std::uint32_t thread = 0;             ///< the one that steps: scopes::thread_number()
  std::set<std::uint64_t> before, now;  ///< numbers of tensors
};

/// Also what does not grow and yet lives at the end of a step: histories that still keep something for backward, and
/// gradients of results. While a LiveRecording lives.
/// `nodes_per_step`: by which the graph grows; a history that grows without keeping memory of tensors is one of them.
std::vector<Leak> causes_of(const std::vector<GrowingBlocks>& growing, double nodes_per_step, Device device,
                            MadeElsewhere& elsewhere);

}  // namespace tenon::memory
