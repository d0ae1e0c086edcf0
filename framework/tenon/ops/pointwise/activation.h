// Activations beyond the rows of pointwise.h: with other arguments, or of several operands.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

#include <string_view>

namespace tenon {

/// x * Phi(x), with the standard normal distribution function Phi: Hendrycks and Gimpel, "Gaussian error linear units",
/// 2016. `approximate` is "none", or "tanh" for their formula with a tanh. Throws Error for another word and for a
/// dtype that is not floating.
TENON_API Tensor gelu(const Tensor& self, std::string_view approximate = "none");
/// x where it is above `threshold` or NaN, else `value`; self's sizes and dtype, integers too, for which the two
/// numbers are cut to whole ones. Throws Error for bool.
TENON_API Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
TENON_API Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value);
inline Tensor logsigmoid(const Tensor& self) { return log_sigmoid(self); }
/// x where it is positive, else weight * x: He et al., "Delving deep into rectifiers", 2015. `weight` has one element,
/// or one for each channel (dim 1); the result has self's sizes. Throws Error for another number of weights.
TENON_API Tensor prelu(const Tensor& self, const Tensor& weight);
/// x where it is positive, else slope * x: in training a slope for each element, drawn from [lower, upper), otherwise
/// the mean of the two for all; self's sizes. Throws Error for a dtype that is not floating. Xu et al., "Empirical
/// evaluation of rectified activations", 2015.
TENON_API Tensor rrelu(const Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                       bool training = false);
TENON_API Tensor& rrelu_(Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                         bool training = false);
/// The first half of `dim` times the sigmoid of the second: Dauphin et al., "Language modeling with gated convolutional
/// networks", 2017. Throws Error where the size of `dim` is odd, and for a dtype that is not floating.
TENON_API Tensor glu(const Tensor& self, std::int64_t dim = -1);

}  // namespace tenon
