// Slopes of a sum by a leaf, for tests of a few lines.
#pragma once

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <limits>
#include <vector>

namespace tenon::test {

inline constexpr double kInf64 = std::numeric_limits<double>::infinity();
inline constexpr double kNaN64 = std::numeric_limits<double>::quiet_NaN();

/// A float64 vector that requires a gradient.
inline Tensor leaf(const std::vector<double>& values) {
  return tensor(values, TensorOptions(kFloat64)).requires_grad_(true);
}

/// The gradient by x of the sum of y.
inline Tensor slope_of(const Tensor& y, const Tensor& x) { return autograd::grad({y.sum()}, {x})[0]; }

}  // namespace tenon::test
