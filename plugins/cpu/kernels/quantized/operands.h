// What the ways to convolve integers of 8 bits share: the operands, and how a sum becomes a result.
#pragma once

#include <tenon/kernel/attributes/quantization.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/nn/convolution.h"

namespace tenon::cpu {

/// x and y are channels-last, w is (O, C / groups, kernel…) contiguous.
struct QuantizedOperands {
  const ConvShape& s;
  const TensorView &x, &w, &y;
  float *multipliers, *addends;  ///< of each output channel: y = sum of products * multiplier + addend
  const QuantizedConvAttributes& a;
  bool gathered;  ///< x has windows that must be made rows
};

/// Writes the result of `sum` of products at element `at` of y, whose channel is `channel`.
inline void store(const QuantizedOperands& o, std::int64_t at, std::int64_t channel, float sum) {
  float y = sum * o.multipliers[channel] + o.addends[channel];
  if (o.a.relu) y = std::max(y, 0.0F);
  if (o.y.dtype == Dtype::kFloat32) {
    o.y.as<float>()[at] = y;
    return;
  }
  const bool is_signed = o.y.dtype == Dtype::kInt8;
  const float rounded = std::nearbyint(y) + static_cast<float>(o.a.y_zero_point);
  const float held = std::clamp(rounded, is_signed ? -128.0F : 0.0F, is_signed ? 127.0F : 255.0F);
  o.y.as<char>()[at] = static_cast<char>(static_cast<std::int32_t>(held));
}

/// Any convolution, exact on every processor: windows as rows of 16 bits, a product of them by the weights.
/// Multipliers and addends are without x's zero point.
void convolve_by_products(KernelContext& context, const QuantizedOperands& operands);

}  // namespace tenon::cpu
