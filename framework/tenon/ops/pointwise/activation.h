// Activations beyond the rows of pointwise.h: with other arguments, or of several operands.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

#include <string_view>

namespace tenon {

/// x * Phi(x) with the normal distribution Phi; `approximate` is "none", or "tanh" for its approximation.
TENON_API Tensor gelu(const Tensor& self, std::string_view approximate = "none");
/// x above `threshold`, else `value`.
TENON_API Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
TENON_API Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value);
inline Tensor logsigmoid(const Tensor& self) { return log_sigmoid(self); }
/// x where it is positive, else weight * x: one weight, or one for each channel of dim 1.
TENON_API Tensor prelu(const Tensor& self, const Tensor& weight);
/// leaky_relu() with a slope drawn from [lower, upper) for each element in training, else with their mean.
TENON_API Tensor rrelu(const Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                       bool training = false);
TENON_API Tensor& rrelu_(Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                         bool training = false);
/// The first half of `dim` times the sigmoid of the second.
TENON_API Tensor glu(const Tensor& self, std::int64_t dim = -1);

}  // namespace tenon
