// Attributes of normalisations and losses.
//
// Kernels of normalisations take x, y and their gradients in one floating dtype; weight, bias and their gradients in
// the same, or in float32 beside 16 bits.
#pragma once

#include <cstdint>

namespace tenon {

struct LayerNormAttributes {
  std::int64_t normalized = 1;  ///< elements per row: the product of the trailing normalised sizes
  double eps = 1e-5;
};

struct GroupNormAttributes {
  std::int64_t groups = 1;
  double eps = 1e-5;
};

struct BatchNormAttributes {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
};

enum class LossReduction : std::int8_t { kNone = 0, kMean = 1, kSum = 2 };

struct NllLossAttributes {
  LossReduction reduction = LossReduction::kMean;
  std::int64_t ignore_index = -100;
};

}  // namespace tenon
