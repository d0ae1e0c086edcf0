// From blocks that grow to the leaks that they are signs of: one cause may hold the blocks of many lines.
#pragma once

#include <tenon/autograd/leaks/leak_watch.h>

#include <cstdint>
#include <vector>

namespace tenon::memory {

/// Live blocks of one stack, purpose and label that become more.
struct GrowingBlocks {
  double bytes_per_step = 0;
  std::vector<LiveBlock> blocks;
};

/// Also what does not grow and yet lives at the end of a step: histories that still keep something for backward, and
/// gradients of results, of the thread that steps (scopes::thread_number()): others may be in the middle of one. While
/// a LiveRecording lives. `nodes_per_step`: by which the graph grows; a history that grows without keeping memory of
/// tensors is one of them.
std::vector<Leak> causes_of(const std::vector<GrowingBlocks>& growing, double nodes_per_step, Device device,
                            std::uint32_t thread);

}  // namespace tenon::memory
