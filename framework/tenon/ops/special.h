// tenon::special: the special functions under the names that torch::special gives them, and as special_name(). Each is
// an operator that stands elsewhere, with its gradient.
#pragma once

#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/special_functions.h>
#include <tenon/ops/reduce/reduction.h>

#include <cstdint>
#include <optional>

namespace tenon {

// Of one operand: any sizes; integers give the default dtype.
/// digamma(): the derivative of log gamma(x).
inline Tensor special_digamma(const Tensor& self) { return digamma(self); }
/// digamma(): the same by another name.
inline Tensor special_psi(const Tensor& self) { return digamma(self); }
/// erf(): the error function.
inline Tensor special_erf(const Tensor& self) { return erf(self); }
/// erfc(): 1 - erf(x).
inline Tensor special_erfc(const Tensor& self) { return erfc(self); }
/// erfinv(): the inverse of erf.
inline Tensor special_erfinv(const Tensor& self) { return erfinv(self); }
/// exp2(): 2 to the power of x.
inline Tensor special_exp2(const Tensor& self) { return exp2(self); }
/// sigmoid(): 1 / (1 + exp(-x)).
inline Tensor special_expit(const Tensor& self) { return sigmoid(self); }
/// expm1(): exp(x) - 1.
inline Tensor special_expm1(const Tensor& self) { return expm1(self); }
/// lgamma(): log |gamma(x)|.
inline Tensor special_gammaln(const Tensor& self) { return lgamma(self); }
/// log1p(): log(1 + x).
inline Tensor special_log1p(const Tensor& self) { return log1p(self); }
/// sinc(): sin(pi x) / (pi x).
inline Tensor special_sinc(const Tensor& self) { return sinc(self); }
/// polygamma(): the n-th derivative of digamma(x).
inline Tensor special_polygamma(std::int64_t n, const Tensor& self) { return polygamma(n, self); }
/// logit(): log(x / (1 - x)).
inline Tensor special_logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return logit(self, eps); }
/// round(): to `decimals` digits.
inline Tensor special_round(const Tensor& self, std::int64_t decimals = 0) { return round(self, decimals); }
/// xlogy(): x * log(y), 0 where x is 0.
inline Tensor special_xlogy(const Tensor& self, const Tensor& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Tensor& self, const Scalar& other) { return xlogy(self, other); }
inline Tensor special_xlogy(const Scalar& self, const Tensor& other) { return xlogy(self, other); }
/// mvlgamma().
inline Tensor special_multigammaln(const Tensor& self, std::int64_t p) { return mvlgamma(self, p); }
/// logsumexp() over the dims.
inline Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false) {
  return self.logsumexp(dim, keepdim);
}
/// softmax() along `dim`.
inline Tensor special_softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.softmax(dim, dtype);
}
/// log_softmax() along `dim`.
inline Tensor special_log_softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.log_softmax(dim, dtype);
}

}  // namespace tenon

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
/// exp(x^2) erfc(x).
inline Tensor erfcx(const Tensor& self) { return special_erfcx(self); }
/// The logarithm of ndtr(x).
inline Tensor log_ndtr(const Tensor& self) { return special_log_ndtr(self); }
/// The inverse of ndtr().
inline Tensor ndtri(const Tensor& self) { return special_ndtri(self); }
/// x * log(1 + y); 0 where x is 0, unless y is NaN. Broadcast.
inline Tensor xlog1py(const Tensor& self, const Tensor& other) { return special_xlog1py(self, other); }
inline Tensor xlog1py(const Tensor& self, const Scalar& other) { return special_xlog1py(self, other); }
inline Tensor xlog1py(const Scalar& self, const Tensor& other) { return special_xlog1py(self, other); }
/// mvlgamma(). Throws Error for bool, and p below 1.
inline Tensor multigammaln(const Tensor& self, std::int64_t p) { return mvlgamma(self, p); }

}  // namespace tenon::special
