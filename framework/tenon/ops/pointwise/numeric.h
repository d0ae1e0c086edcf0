// Functions of single elements beyond the rows of kernel/rows, out of these.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

namespace tenon {

inline Tensor& nan_to_num_(Tensor& self, std::optional<double> nan = std::nullopt,
                           std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt) {
  return self.nan_to_num_(nan, posinf, neginf);
}
/// log(x / (1 - x)) of x, with `eps` kept between eps and 1 - eps.
inline Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return self.logit(eps); }
inline Tensor& logit_(Tensor& self, std::optional<double> eps = std::nullopt) { return self.logit_(eps); }
inline Tensor sgn(const Tensor& self) { return self.sign(); }
/// x * log(y), 0 where x is 0 unless y is NaN.
inline Tensor xlogy(const Tensor& self, const Tensor& other) { return self.xlogy(other); }
inline Tensor xlogy(const Tensor& self, const Scalar& other) { return self.xlogy(other); }
TENON_API Tensor xlogy(const Scalar& self, const Tensor& other);
inline Tensor& xlogy_(Tensor& self, const Tensor& other) { return self.xlogy_(other); }
inline Tensor& xlogy_(Tensor& self, const Scalar& other) { return self.xlogy_(other); }
/// 0 below 0, 1 above, `values` at 0 and of the dtype of both. No gradient.
inline Tensor heaviside(const Tensor& self, const Tensor& values) { return self.heaviside(values); }
/// The largest common divisor, and the smallest common multiple, of integers; never negative.
inline Tensor gcd(const Tensor& self, const Tensor& other) { return self.gcd(other); }
inline Tensor& gcd_(Tensor& self, const Tensor& other) { return self.gcd_(other); }
/// The least common multiple of each pair of integers.
inline Tensor lcm(const Tensor& self, const Tensor& other) { return self.lcm(other); }
inline Tensor& lcm_(Tensor& self, const Tensor& other) { return self.lcm_(other); }
/// maximum() and minimum() that prefer a number to NaN.
inline Tensor fmax(const Tensor& self, const Tensor& other) { return self.fmax(other); }
/// The smaller one of each pair, and of a NaN and a number the number; fmax() is its like.
inline Tensor fmin(const Tensor& self, const Tensor& other) { return self.fmin(other); }
/// To `decimals` places behind the point, which may be negative.
inline Tensor round(const Tensor& self, std::int64_t decimals) { return self.round(decimals); }
inline Tensor& round_(Tensor& self, std::int64_t decimals) { return self.round_(decimals); }
inline Tensor div(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode) {
  return self.div(other, rounding_mode);
}
/// What floor division leaves, of the sign of `other`, as Python's %.
TENON_API Tensor remainder(const Scalar& self, const Tensor& other);
/// Bits of integers moved; by a negative number of places, or by more than there are, nothing is left but the sign.
inline Tensor bitwise_left_shift(const Tensor& self, const Tensor& other) { return self.bitwise_left_shift(other); }
inline Tensor bitwise_left_shift(const Tensor& self, const Scalar& other) { return self.bitwise_left_shift(other); }
TENON_API Tensor bitwise_left_shift(const Scalar& self, const Tensor& other);
/// The bits of each integer moved right, the sign kept.
inline Tensor bitwise_right_shift(const Tensor& self, const Tensor& other) { return self.bitwise_right_shift(other); }
inline Tensor bitwise_right_shift(const Tensor& self, const Scalar& other) { return self.bitwise_right_shift(other); }
TENON_API Tensor bitwise_right_shift(const Scalar& self, const Tensor& other);
inline Tensor __lshift__(const Tensor& self, const Tensor& other) { return self.bitwise_left_shift(other); }
inline Tensor __lshift__(const Tensor& self, const Scalar& other) { return self.bitwise_left_shift(other); }
inline Tensor __rshift__(const Tensor& self, const Tensor& other) { return self.bitwise_right_shift(other); }
inline Tensor __rshift__(const Tensor& self, const Scalar& other) { return self.bitwise_right_shift(other); }
/// Whether an element is plus infinity; bool.
inline Tensor isposinf(const Tensor& self) { return self.isposinf(); }
/// Whether an element is minus infinity; bool.
inline Tensor isneginf(const Tensor& self) { return self.isneginf(); }

// Other names.
inline Tensor arccos(const Tensor& self) { return self.acos(); }
inline Tensor arcsin(const Tensor& self) { return self.asin(); }
inline Tensor arctan(const Tensor& self) { return self.atan(); }
inline Tensor arccosh(const Tensor& self) { return self.acosh(); }
inline Tensor arcsinh(const Tensor& self) { return self.asinh(); }
inline Tensor arctanh(const Tensor& self) { return self.atanh(); }
inline Tensor arctan2(const Tensor& self, const Tensor& other) { return self.atan2(other); }
inline Tensor fix(const Tensor& self) { return self.trunc(); }
/// The tensor itself.
inline Tensor positive(const Tensor& self) { return self; }
inline Tensor multiply(const Tensor& self, const Tensor& other) { return self.mul(other); }
inline Tensor multiply(const Tensor& self, const Scalar& other) { return self.mul(other); }
inline Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha = 1) {
  return self.sub(other, alpha);
}
inline Tensor subtract(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) {
  return self.sub(other, alpha);
}
inline Tensor divide(const Tensor& self, const Tensor& other) { return self.div(other); }
inline Tensor divide(const Tensor& self, const Scalar& other) { return self.div(other); }
inline Tensor true_divide(const Tensor& self, const Tensor& other) { return self.div(other); }
inline Tensor true_divide(const Tensor& self, const Scalar& other) { return self.div(other); }
inline Tensor less(const Tensor& self, const Tensor& other) { return self.lt(other); }
inline Tensor less(const Tensor& self, const Scalar& other) { return self.lt(other); }
inline Tensor less_equal(const Tensor& self, const Tensor& other) { return self.le(other); }
inline Tensor less_equal(const Tensor& self, const Scalar& other) { return self.le(other); }
inline Tensor greater(const Tensor& self, const Tensor& other) { return self.gt(other); }
inline Tensor greater(const Tensor& self, const Scalar& other) { return self.gt(other); }
inline Tensor greater_equal(const Tensor& self, const Tensor& other) { return self.ge(other); }
inline Tensor greater_equal(const Tensor& self, const Scalar& other) { return self.ge(other); }
inline Tensor not_equal(const Tensor& self, const Tensor& other) { return self.ne(other); }
inline Tensor not_equal(const Tensor& self, const Scalar& other) { return self.ne(other); }

}  // namespace tenon
