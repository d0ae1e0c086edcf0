// Functions of single elements beyond the rows of kernel/rows, out of these.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

namespace tenon {

inline Tensor& nan_to_num_(Tensor& self, std::optional<double> nan = std::nullopt,
                           std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt) {
  return self.nan_to_num_(nan, posinf, neginf);
}
/// log(x / (1 - x)), in self's sizes; integers give the default dtype. With `eps` x is first clamped to [eps, 1 - eps];
/// without, the result is NaN outside of [0, 1].
inline Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt) { return self.logit(eps); }
inline Tensor& logit_(Tensor& self, std::optional<double> eps = std::nullopt) { return self.logit_(eps); }
inline Tensor sgn(const Tensor& self) { return self.sign(); }
/// x * log(y); 0 where x is 0, unless y is NaN. Broadcast; integers give the default dtype.
inline Tensor xlogy(const Tensor& self, const Tensor& other) { return self.xlogy(other); }
inline Tensor xlogy(const Tensor& self, const Scalar& other) { return self.xlogy(other); }
TENON_API Tensor xlogy(const Scalar& self, const Tensor& other);
inline Tensor& xlogy_(Tensor& self, const Tensor& other) { return self.xlogy_(other); }
inline Tensor& xlogy_(Tensor& self, const Scalar& other) { return self.xlogy_(other); }
/// 0 where an element is negative or NaN, 1 where it is positive, `values` (broadcast) where it is 0. Throws Error
/// where the dtypes differ; backward through it throws Error, since PyTorch has no derivative either.
inline Tensor heaviside(const Tensor& self, const Tensor& values) { return self.heaviside(values); }
/// The greatest common divisor of each pair of integers, not negative; broadcast, dtypes are promoted. gcd(0, 0) is 0.
/// Throws Error for bool and floating dtypes.
inline Tensor gcd(const Tensor& self, const Tensor& other) { return self.gcd(other); }
inline Tensor& gcd_(Tensor& self, const Tensor& other) { return self.gcd_(other); }
/// The least common multiple of each pair of integers, not negative; 0 where either is 0. Throws Error as gcd().
inline Tensor lcm(const Tensor& self, const Tensor& other) { return self.lcm(other); }
inline Tensor& lcm_(Tensor& self, const Tensor& other) { return self.lcm_(other); }
/// The larger one of each pair; where one is NaN, the other. Broadcast, dtypes are promoted.
inline Tensor fmax(const Tensor& self, const Tensor& other) { return self.fmax(other); }
/// The smaller one of each pair; where one is NaN, the other. Broadcast, dtypes are promoted.
inline Tensor fmin(const Tensor& self, const Tensor& other) { return self.fmin(other); }
/// The neighbour of each element of `self` among the numbers of its dtype, towards `other`; `other` where they are
/// equal, NaN where either is. Broadcast, dtypes are promoted. The slope by `self` is 1, by `other` 0. Throws Error for
/// a dtype that is not floating.
inline Tensor nextafter(const Tensor& self, const Tensor& other) { return self.nextafter(other); }
/// True everywhere: there are no complex dtypes.
inline Tensor isreal(const Tensor& self) { return self.isreal(); }
/// Rounded to `decimals` digits after the decimal point, or with a negative number to tens, hundreds …; halves go to
/// the even neighbour. Throws Error for a dtype that is not floating.
inline Tensor round(const Tensor& self, std::int64_t decimals) { return self.round(decimals); }
inline Tensor& round_(Tensor& self, std::int64_t decimals) { return self.round_(decimals); }
inline Tensor div(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode) {
  return self.div(other, rounding_mode);
}
/// What floor division leaves, with the sign of `other`, as Python's %; dtypes are promoted, the number counting last.
/// Throws Error for an integer divisor of 0.
TENON_API Tensor remainder(const Scalar& self, const Tensor& other);
/// The bits of each integer moved left by `other` places, zeros coming in: 0 for a negative number of places, or one
/// that is not below the number of bits. Broadcast, dtypes are promoted. Throws Error for bool and floating dtypes.
inline Tensor bitwise_left_shift(const Tensor& self, const Tensor& other) { return self.bitwise_left_shift(other); }
inline Tensor bitwise_left_shift(const Tensor& self, const Scalar& other) { return self.bitwise_left_shift(other); }
TENON_API Tensor bitwise_left_shift(const Scalar& self, const Tensor& other);
/// The bits of each integer moved right by `other` places, the sign kept: for a negative number of places, or one that
/// is not below the number of bits, -1 of a negative integer and 0 of another. Throws Error for bool and floating
/// dtypes.
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

/// The dtype of an operation on a tensor and a number, which counts only where it is of a higher kind than the tensor.
TENON_API Dtype result_type(const Tensor& self, const Scalar& other);
inline Dtype result_type(const Scalar& self, const Tensor& other) { return result_type(other, self); }

// Other names.
inline Tensor arccos(const Tensor& self) { return self.acos(); }
inline Tensor arcsin(const Tensor& self) { return self.asin(); }
inline Tensor arctan(const Tensor& self) { return self.atan(); }
inline Tensor arccosh(const Tensor& self) { return self.acosh(); }
inline Tensor arcsinh(const Tensor& self) { return self.asinh(); }
inline Tensor arctanh(const Tensor& self) { return self.atanh(); }
inline Tensor arctan2(const Tensor& self, const Tensor& other) { return self.atan2(other); }
inline Tensor fix(const Tensor& self) { return self.trunc(); }
/// The tensor itself, no copy. Throws Error for bool.
inline Tensor positive(const Tensor& self) { return self.positive(); }
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
