// tenon::special: the special functions under the names that torch::special gives them. Each is an operator that stands
// elsewhere, with its gradient.
#pragma once

#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>

#include <cstdint>
#include <optional>

namespace tenon::special {

using tenon::digamma;
using tenon::erf;
using tenon::erfc;
using tenon::erfinv;
using tenon::exp2;
using tenon::expm1;
using tenon::log1p;
using tenon::log_softmax;
using tenon::logit;
using tenon::logsumexp;
using tenon::polygamma;
using tenon::round;
using tenon::sinc;
using tenon::softmax;
using tenon::xlogy;

/// The distribution function of the standard normal distribution. Here and below: any sizes, and integers give the
/// default dtype.
inline Tensor ndtr(const Tensor& self) { return special_ndtr(self); }
/// -x log(x); 0 where x is 0, and -infinity where x is negative.
inline Tensor entr(const Tensor& self) { return special_entr(self); }
/// log |gamma(x)|: lgamma().
inline Tensor gammaln(const Tensor& self) { return lgamma(self); }
/// digamma(x), the derivative of log gamma(x).
inline Tensor psi(const Tensor& self) { return digamma(self); }
/// 1 / (1 + exp(-x)): sigmoid().
inline Tensor expit(const Tensor& self) { return sigmoid(self); }

}  // namespace tenon::special
