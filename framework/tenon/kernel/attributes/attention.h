// Attributes of fused attention.
#pragma once

#include <tenon/kernel/attributes/replay.h>

#include <cstdint>

namespace tenon {

/// attention and attention_backward. Element (b, h, i, j) of the weights, in row-major order, is kept where the word
/// that Note [Same numbers on every device] gives it is at least dropout * 2^32, and scaled by 1 / (1 - dropout).
struct AttentionAttributes {
  double scale = 1;     ///< of the scores
  bool causal = false;  ///< query i sees keys 0 … i
  double dropout = 0;   ///< in [0, 1)
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  const ReplayCounters* replay = nullptr;  ///< adds to seed and offset; null: nothing does
};

}  // namespace tenon
