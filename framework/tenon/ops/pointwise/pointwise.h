// Pointwise operators: one result element from one element of each operand.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

// Those of kernel/rows; out forms put the result into a tensor of the caller's, which is resized where its sizes
// differ, and are not differentiable.
#define TENON_UNARY(Row, name, ...)          \
  TENON_API Tensor name(const Tensor& self); \
  TENON_API Tensor& name##_(Tensor& self);   \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self);
#define TENON_UNARY_WITH(Row, name, saves, integers, count, parameters, ...)    \
  TENON_API Tensor name(const Tensor& self, TENON_DECLARED_##count parameters); \
  TENON_API Tensor& name##_(Tensor& self, TENON_DECLARED_##count parameters);   \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, TENON_DECLARED_##count parameters);
#include <tenon/kernel/rows/unary.inl>

#define TENON_FUNCTION_OF_TWO(Row, name, ...)                                         \
  TENON_API Tensor name(const Tensor& self, const Tensor& other);                     \
  TENON_API Tensor name(const Tensor& self, const Scalar& other);                     \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other); \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other);
#define TENON_BINARY TENON_FUNCTION_OF_TWO
#include <tenon/kernel/rows/binary.inl>
#define TENON_COMPARISON TENON_FUNCTION_OF_TWO
#define TENON_BITWISE TENON_FUNCTION_OF_TWO
#define TENON_PREDICATE(Row, name, ...)      \
  TENON_API Tensor name(const Tensor& self); \
  TENON_API Tensor& name##_out(Tensor& out, const Tensor& self);
#include <tenon/kernel/rows/relations.inl>
#undef TENON_FUNCTION_OF_TWO

// Those with a signature of their own.
/// A number to the power of each element.
TENON_API Tensor pow(const Scalar& base, const Tensor& exponent);
/// self + alpha * other, broadcast; dtypes are promoted. Throws Error for alpha that the result's dtype cannot hold.
TENON_API Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// self - alpha * other, broadcast; dtypes are promoted. Throws Error for bool.
TENON_API Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// other - self.
TENON_API Tensor rsub(const Tensor& self, const Scalar& other);
/// self / other, broadcast: true division, or rounded: "trunc", "floor". Throws Error for another rounding mode.
TENON_API Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
inline Tensor max(const Tensor& self, const Tensor& other) { return maximum(self, other); }
/// The minimum of all elements; along `dim` the minima and their positions (int64). NaN counts as the smallest.
inline Tensor min(const Tensor& self, const Tensor& other) { return minimum(self, other); }
inline Tensor negative(const Tensor& self) { return neg(self); }
inline Tensor absolute(const Tensor& self) { return abs(self); }

/// Every bit of an integer turned; logical_not() of bool. Throws Error for floating dtypes.
TENON_API Tensor bitwise_not(const Tensor& self);
/// Whether |self - other| is at most atol + rtol * |other|, element by element; bool. NaN is close to NaN where
/// `equal_nan`.
TENON_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
/// Whether isclose() holds for every pair of elements.
TENON_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
/// Whether sizes and all elements are equal. NaN equals nothing.
TENON_API bool equal(const Tensor& self, const Tensor& other);

/// self where the condition (bool) is true, else other; all are broadcast, dtypes promoted. With a condition alone: the
/// positions where it is true.
TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
TENON_API std::vector<Tensor> where(const Tensor& condition);
/// A copy of `self` with `value` where the mask, broadcast, is true. Throws Error for a mask of another dtype than
/// bool.
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
TENON_API Tensor clamp(const Tensor& self, const std::optional<Scalar>& low,
                       const std::optional<Scalar>& high = std::nullopt);
TENON_API Tensor clamp(const Tensor& self, const std::optional<Tensor>& low, const std::optional<Tensor>& high);
TENON_API Tensor clamp_min(const Tensor& self, const Scalar& low);
TENON_API Tensor clamp_max(const Tensor& self, const Scalar& high);
/// NaN and the infinities replaced: by 0 and by the dtype's extremes where nothing is given.
TENON_API Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                            std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt);
/// self + value * a * b, broadcast.
TENON_API Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
/// self + value * a / b, broadcast; floating dtypes only.
TENON_API Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
/// self + weight * (end - self), exact at both ends.
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);

/// The dtype that an operation on both gives.
TENON_API Dtype result_type(const Tensor& a, const Tensor& b);
TENON_API bool can_cast(Dtype from, Dtype to);

TENON_API Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);

/// The n-th derivative of digamma; n = 0 is digamma itself.
TENON_API Tensor polygamma(std::int64_t n, const Tensor& self);

}  // namespace tenon
