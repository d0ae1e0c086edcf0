// Functional linear maps.
#pragma once

#include <tenon/ops/linalg/linear.h>

namespace tenon::nn::functional {

inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return tenon::linear(input, weight, bias);
}
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {}) {
  return tenon::bilinear(input1, input2, weight, bias);
}

}  // namespace tenon::nn::functional
