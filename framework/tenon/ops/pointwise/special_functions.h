// Special functions out of other operators, and powers in float64. torch::special's names are in ops/special.h.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// pow() in float64, whatever the dtypes. Broadcast; throws Error for sizes that do not.
TENON_API Tensor float_power(const Tensor& self, const Tensor& exponent);
TENON_API Tensor float_power(const Tensor& self, const Scalar& exponent);
TENON_API Tensor float_power(const Scalar& self, const Tensor& exponent);
/// The logarithm of the multivariate gamma function of `p` dimensions: the sum of lgamma(x - i / 2) for i below p, and
/// p (p - 1) / 4 log(pi). Integers give the default dtype. Throws Error for bool, and p below 1.
TENON_API Tensor mvlgamma(const Tensor& self, std::int64_t p);

// Of each below: integers give the default dtype.

/// x * log(1 + y); 0 where x is 0, unless y is NaN. Broadcast.
TENON_API Tensor special_xlog1py(const Tensor& self, const Tensor& other);
TENON_API Tensor special_xlog1py(const Tensor& self, const Scalar& other);
TENON_API Tensor special_xlog1py(const Scalar& self, const Tensor& other);
/// exp(x^2) erfc(x), also where its factors leave the dtype.
TENON_API Tensor special_erfcx(const Tensor& self);
/// The logarithm of the distribution function of the standard normal distribution.
TENON_API Tensor special_log_ndtr(const Tensor& self);
/// The x whose special_ndtr() is the element; infinite at 0 and 1, NaN outside of them.
TENON_API Tensor special_ndtri(const Tensor& self);

}  // namespace tenon
