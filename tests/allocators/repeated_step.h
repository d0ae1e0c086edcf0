// A training step as an allocator sees it, the same each time.
#pragma once

#include <tenon/core/units.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tenon::test {

/// Activations are kept until their gradients need them; `remembers`: what an optimizer remembers comes with this step,
/// and is kept.
inline void repeat_step(AllocatorStack& stack, std::uint64_t seed, bool remembers, std::vector<Block>& kept) {
  std::mt19937_64 random(seed);
  std::vector<Block> activations;
  for (int layer = 0; layer < 40; ++layer) {
    activations.push_back(stack.allocate({.bytes = 300 * KiB + random() % (9 * MiB)}));
    const Block workspace = stack.allocate({.bytes = 300 * KiB + random() % (20 * MiB)});
    stack.deallocate(workspace);
    if (random() % 3 == 0) {  // not needed by a gradient
      std::swap(activations[random() % activations.size()], activations.back());
      stack.deallocate(activations.back());
      activations.pop_back();
    }
  }
  if (remembers)
    for (int i = 0; i < 30; ++i) kept.push_back(stack.allocate({.bytes = (1 + i % 7) * 1400 * KiB}));
  for (const Block& block : activations) stack.deallocate(block);
}

}  // namespace tenon::test
