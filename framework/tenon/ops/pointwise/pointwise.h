// Pointwise operators: one result element from one element of each operand.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

#define TENON_DECLARE_UNARY(name)            \
  TENON_API Tensor name(const Tensor& self); \
  TENON_API Tensor& name##_(Tensor& self);
TENON_UNARY_METHODS(TENON_DECLARE_UNARY)
#undef TENON_DECLARE_UNARY

#define TENON_DECLARE_BINARY(name)                                \
  TENON_API Tensor name(const Tensor& self, const Tensor& other); \
  TENON_API Tensor name(const Tensor& self, const Scalar& other);
TENON_BINARY_METHODS(TENON_DECLARE_BINARY)
TENON_COMPARISON_METHODS(TENON_DECLARE_BINARY)
#undef TENON_DECLARE_BINARY
TENON_API Tensor pow(const Scalar& base, const Tensor& exponent);
/// self + alpha * other, broadcast; dtypes are promoted. Throws Error for alpha that the result's dtype cannot hold.
TENON_API Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
/// self - alpha * other, broadcast; dtypes are promoted. Throws Error for bool.
TENON_API Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
TENON_API Tensor rsub(const Tensor& self, const Scalar& other);
/// self / other, broadcast: true division, or rounded: "trunc", "floor". Throws Error for another rounding mode.
TENON_API Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
/// The maximum of all elements; along `dim` the maxima and their positions (int64). NaN counts as the largest.
inline Tensor max(const Tensor& self, const Tensor& other) { return maximum(self, other); }
/// The minimum of all elements; along `dim` the minima and their positions (int64). NaN counts as the smallest.
inline Tensor min(const Tensor& self, const Tensor& other) { return minimum(self, other); }
inline Tensor negative(const Tensor& self) { return neg(self); }
inline Tensor absolute(const Tensor& self) { return abs(self); }

TENON_API Tensor logical_not(const Tensor& self);
/// Every bit of an integer turned; logical_not() of bool. Throws Error for floating dtypes.
TENON_API Tensor bitwise_not(const Tensor& self);
TENON_API Tensor isnan(const Tensor& self);
TENON_API Tensor isinf(const Tensor& self);
TENON_API Tensor isfinite(const Tensor& self);
TENON_API Tensor signbit(const Tensor& self);
TENON_API Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);
/// Whether isclose() holds for every pair of elements.
TENON_API bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
/// Whether sizes and all elements are equal. NaN equals nothing.
TENON_API bool equal(const Tensor& self, const Tensor& other);

TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
TENON_API Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
TENON_API Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
TENON_API std::vector<Tensor> where(const Tensor& condition);
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);
TENON_API Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
TENON_API Tensor clamp(const Tensor& self, const std::optional<Scalar>& low,
                       const std::optional<Scalar>& high = std::nullopt);
TENON_API Tensor clamp(const Tensor& self, const std::optional<Tensor>& low, const std::optional<Tensor>& high);
TENON_API Tensor clamp_min(const Tensor& self, const Scalar& low);
TENON_API Tensor clamp_max(const Tensor& self, const Scalar& high);
TENON_API Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                            std::optional<double> posinf = std::nullopt, std::optional<double> neginf = std::nullopt);
/// self + value * a * b, broadcast.
TENON_API Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
/// self + value * a / b, broadcast; floating dtypes only.
TENON_API Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1);
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);
TENON_API Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);

/// The dtype that an operation on both gives.
TENON_API Dtype result_type(const Tensor& a, const Tensor& b);
/// Whether a value of `from` may be written to `to`: not from floating to integer, not from anything else to bool.
TENON_API bool can_cast(Dtype from, Dtype to);

/// Results into a tensor of the caller's, which is resized where its sizes differ. Not differentiable.
TENON_API Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
TENON_API Tensor& mul_out(Tensor& out, const Tensor& self, const Tensor& other);
TENON_API Tensor& div_out(Tensor& out, const Tensor& self, const Tensor& other);

// Activations.
TENON_API Tensor& relu_(Tensor& self);
/// The n-th derivative of digamma; n = 0 is digamma itself.
TENON_API Tensor polygamma(std::int64_t n, const Tensor& self);
TENON_API Tensor relu6(const Tensor& self);
TENON_API Tensor silu(const Tensor& self);
TENON_API Tensor mish(const Tensor& self);
TENON_API Tensor gelu(const Tensor& self, std::string_view approximate = "none");
TENON_API Tensor selu(const Tensor& self);
TENON_API Tensor& selu_(Tensor& self);
TENON_API Tensor celu(const Tensor& self, const Scalar& alpha = 1.0);
TENON_API Tensor& celu_(Tensor& self, const Scalar& alpha = 1.0);
TENON_API Tensor elu(const Tensor& self, const Scalar& alpha = 1.0, const Scalar& scale = 1.0,
                     const Scalar& input_scale = 1.0);
TENON_API Tensor& elu_(Tensor& self, const Scalar& alpha = 1.0, const Scalar& scale = 1.0,
                       const Scalar& input_scale = 1.0);
TENON_API Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01);
TENON_API Tensor& leaky_relu_(Tensor& self, const Scalar& negative_slope = 0.01);
TENON_API Tensor hardtanh(const Tensor& self, const Scalar& low = -1.0, const Scalar& high = 1.0);
TENON_API Tensor& hardtanh_(Tensor& self, const Scalar& low = -1.0, const Scalar& high = 1.0);
TENON_API Tensor hardsigmoid(const Tensor& self);
TENON_API Tensor hardswish(const Tensor& self);
TENON_API Tensor hardshrink(const Tensor& self, const Scalar& lambda = 0.5);
TENON_API Tensor softshrink(const Tensor& self, const Scalar& lambda = 0.5);
TENON_API Tensor tanhshrink(const Tensor& self);
TENON_API Tensor softsign(const Tensor& self);
TENON_API Tensor softplus(const Tensor& self, const Scalar& beta = 1.0, const Scalar& threshold = 20.0);
TENON_API Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
TENON_API Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value);
TENON_API Tensor log_sigmoid(const Tensor& self);
inline Tensor logsigmoid(const Tensor& self) { return log_sigmoid(self); }
TENON_API Tensor prelu(const Tensor& self, const Tensor& weight);
TENON_API Tensor rrelu(const Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                       bool training = false);
TENON_API Tensor& rrelu_(Tensor& self, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
                         bool training = false);
TENON_API Tensor glu(const Tensor& self, std::int64_t dim = -1);

}  // namespace tenon
