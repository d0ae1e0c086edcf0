// Pointwise operators: one result element from one element of each operand.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

// Those of kernel/rows, whose formulas stand there. In-place forms throw Error where the result has other sizes than
// self, or a dtype of a higher category. Out forms put the result into a tensor of the caller's, which is resized where
// its sizes differ; they throw Error where an argument requires a gradient that the function has, and where `out` has
// not the dtype that the row asks for.
#define TENON_UNARY(Row, name, ...)                                                                                \
  /** The row's formula of each element: self's sizes, and self's dtype where that is floating. Integers and bool  \
   * become the default dtype in kConverted rows. In kSigned and kKept rows integers keep their dtype, in kRefused \
   * rows they throw Error. Bool throws Error in all three, but for square (int64) and sign (bool). */             \
  TENON_API Tensor name(const Tensor& self);                                                                       \
  TENON_API Tensor& name##_(Tensor& self);                                                                         \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self);
#define TENON_UNARY_WITH(Row, name, saves, integers, out, count, parameters, ...)                                   \
  /** The row's formula of each element with these numbers; sizes and dtypes as of the rows above. Throws Error for \
   * celu's alpha of 0 and a negative lambda of softshrink. */                                                      \
  TENON_API Tensor name(const Tensor& self, TENON_DECLARED_##count parameters);                                     \
  TENON_API Tensor& name##_(Tensor& self, TENON_DECLARED_##count parameters);                                       \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, TENON_DECLARED_##count parameters);
#include <tenon/kernel/rows/unary.inl>

#define TENON_FUNCTION_OF_TWO(name)                                                   \
  TENON_API Tensor name(const Tensor& self, const Tensor& other);                     \
  TENON_API Tensor name(const Tensor& self, const Scalar& other);                     \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other); \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other);
#define TENON_BINARY(Row, name, ...)                                                                                   \
  /** The row's formula of each pair of elements, broadcast; dtypes are promoted. Integers become the default dtype in \
   * kConverted rows; they throw Error in kRefused rows, and where kDivided rows divide them by 0. pow of integers     \
   * throws Error for a negative integer number. Throws Error for sizes that do not broadcast. */                      \
  TENON_FUNCTION_OF_TWO(name)
#include <tenon/kernel/rows/binary.inl>
#define TENON_COMPARISON(Row, name, ...)                                                                              \
  /** Whether the row's formula holds for each pair of elements, broadcast and promoted to one dtype: bool, without a \
   * gradient. Throws Error for sizes that do not broadcast. */                                                       \
  TENON_FUNCTION_OF_TWO(name)
#define TENON_BITWISE(Row, name, ...)                                                                                \
  /** The row's formula of each pair of integers or bools, broadcast; dtypes are promoted. Throws Error for floating \
   * dtypes, and for sizes that do not broadcast. */                                                                 \
  TENON_FUNCTION_OF_TWO(name)
#define TENON_PREDICATE(Row, name, ...)                                                                             \
  /** Whether the row's formula holds for each element, of any dtype: bool, of self's sizes, without a gradient. */ \
  TENON_API Tensor name(const Tensor& self);                                                                        \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self);
#include <tenon/kernel/rows/relations.inl>
#undef TENON_FUNCTION_OF_TWO

// Those with a signature of their own.
/// `base` to the power of each element, in exponent's sizes; dtypes are promoted, the number counting last.
TENON_API Tensor pow(const Scalar& base, const Tensor& exponent);
/// self + alpha * other, broadcast; dtypes are promoted. Throws Error for an alpha that the result's dtype cannot hold:
/// a floating number for integers, a bool for other dtypes than bool, a number that is too large.
TENON_API Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// self - alpha * other, broadcast; dtypes are promoted. Throws Error where an operand is bool, and for an alpha that
/// the result's dtype cannot hold, as add().
TENON_API Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// other - self, in self's sizes; dtypes are promoted. Throws Error where either is bool.
TENON_API Tensor rsub(const Tensor& self, const Scalar& other);
/// self / other, broadcast. Without a rounding mode true division, which gives the default dtype for integers; "trunc"
/// rounds towards 0 and "floor" down, and both keep integers, whose division by 0 throws Error. So does another mode.
TENON_API Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
/// The larger one of each pair, NaN where either is NaN; broadcast, dtypes are promoted. Equal ones share the gradient.
inline Tensor max(const Tensor& self, const Tensor& other) { return maximum(self, other); }
/// The smaller one of each pair, NaN where either is NaN; broadcast, dtypes are promoted. Equal ones share the
/// gradient.
inline Tensor min(const Tensor& self, const Tensor& other) { return minimum(self, other); }
inline Tensor negative(const Tensor& self) { return neg(self); }
inline Tensor absolute(const Tensor& self) { return abs(self); }

/// Every bit of an integer inverted; logical_not() of bool. Throws Error for floating dtypes.
TENON_API Tensor bitwise_not(const Tensor& self);
/// Whether two elements are equal, or |self - other| is finite and at most atol + rtol * |other|; broadcast, bool. NaN
/// is close to NaN where `equal_nan` is set. Throws Error where the dtypes differ, or a tolerance is negative.
TENON_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
/// Whether isclose() holds for every pair of elements; broadcast. Throws Error as isclose().
TENON_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
/// Whether sizes and all elements are equal; dtypes may differ. NaN equals nothing. Throws Error for tensors on
/// different devices.
TENON_API bool equal(const Tensor& self, const Tensor& other);

/// self where the condition (bool or uint8) is true, else other; all three are broadcast, the dtypes of self and other
/// promoted. Throws Error for a condition of another dtype. With a condition alone, of any dtype: a vector of positions
/// (int64) for each dim, the columns of nonzero().
TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
TENON_API std::vector<Tensor> where(const Tensor& condition);
/// A copy of `self` with `value` where the mask (bool or uint8) is true; self and mask are broadcast to one another.
/// Throws Error for a mask of another dtype, a number that self's dtype cannot hold, and a `value` tensor with dims.
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
/// min(max(self, low), high): high where low is above it. The bounds are numbers, or tensors that are broadcast; one
/// may be left out. dtypes are promoted. NaN stays, and where a bound is NaN so is the result. Throws Error where no
/// bound is given, for bool with numbers, and for a number that lies on the wrong side of all integers of self's dtype.
TENON_API Tensor clamp(const Tensor& self, const std::optional<Scalar>& low,
                       const std::optional<Scalar>& high = std::nullopt);
TENON_API Tensor clamp(const Tensor& self, const std::optional<Tensor>& low, const std::optional<Tensor>& high);
TENON_API Tensor clamp_min(const Tensor& self, const Scalar& low);
TENON_API Tensor clamp_max(const Tensor& self, const Scalar& high);
/// A copy with NaN, infinity and -infinity replaced, by default with 0 and the largest and the lowest number of the
/// dtype. Integers, which have none of them, stay as they are.
TENON_API Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                            std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt);
/// self + value * a * b; the three are broadcast, dtypes are promoted. Throws Error for sizes that do not broadcast.
TENON_API Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
/// self + value * a / b; the three are broadcast. Throws Error where neither a nor b has a floating dtype.
TENON_API Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
/// self + weight * (end - self), broadcast: exactly self where the weight is 0, and exactly `end` where it is 1. Throws
/// Error where the dtypes differ, or are not floating.
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);

/// The dtype that two operands are promoted to: the category (bool, integer, floating) of tensors without dims, and
/// last of numbers, counts only where it is higher than that of tensors with dims.
TENON_API Dtype result_type(const Tensor& a, const Tensor& b);
/// Whether a result of dtype `from` may be written into a tensor of dtype `to`: not floating to integer or bool, and
/// not integer to bool; all else may, also to fewer bits.
TENON_API bool can_cast(Dtype from, Dtype to);

TENON_API Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);

/// The n-th derivative of digamma, in self's sizes; n = 0 is digamma itself. Integers give the default dtype. Throws
/// Error for a negative n.
TENON_API Tensor polygamma(std::int64_t n, const Tensor& self);

}  // namespace tenon
