// Functional linear maps.
#pragma once

#include <tenon/ops/linalg/linear.h>

namespace tenon::nn::functional {

/// input (…, in) times weight (out, in) transposed, plus bias (out).
inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return tenon::linear(input, weight, bias);
}
/// input1 (…, m), weight (n, m, k), input2 (…, k) -> (…, n).
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {}) {
  return tenon::bilinear(input1, input2, weight, bias);
}

}  // namespace tenon::nn::functional
