// x to the power of a number.
#pragma once

#include <tenon/tensor/scalar.h>
#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// Recorded where x requires a gradient. Throws Error for an integer to the power of a negative one.
Tensor power(const Tensor& self, const Scalar& exponent);
/// As power(), into x.
Tensor& power_inplace(const Tensor& self, const Scalar& exponent);

}  // namespace tenon::ops
