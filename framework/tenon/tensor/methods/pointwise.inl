// Methods of Tensor that compute element by element: those that ops/pointwise defines. Included by tensor.h inside
// the class; what a method without a comment does is said at the function of its name.

// Those of the rows of kernel/rows.
#define TENON_UNARY(Row, name, ...) \
  TENON_API Tensor name() const;    \
  TENON_API Tensor& name##_() const;
#define TENON_UNARY_WITH(Row, name, saves, integers, out, count, parameters, ...) \
  TENON_API Tensor name(TENON_DECLARED_##count parameters) const;                 \
  TENON_API Tensor& name##_(TENON_DECLARED_##count parameters) const;
#include <tenon/kernel/rows/unary.inl>

#define TENON_METHOD_OF_TWO(Row, name, ...)             \
  TENON_API Tensor name(const Tensor& other) const;     \
  TENON_API Tensor name(const Scalar& other) const;     \
  TENON_API Tensor& name##_(const Tensor& other) const; \
  TENON_API Tensor& name##_(const Scalar& other) const;
#define TENON_BINARY TENON_METHOD_OF_TWO
#include <tenon/kernel/rows/binary.inl>
#define TENON_COMPARISON TENON_METHOD_OF_TWO
#define TENON_BITWISE TENON_METHOD_OF_TWO
#define TENON_PREDICATE(Row, name, ...) TENON_API Tensor name() const;
#include <tenon/kernel/rows/relations.inl>
#undef TENON_METHOD_OF_TWO

// Of one operand.
TENON_API Tensor bitwise_not() const;
TENON_API Tensor& bitwise_not_() const;
TENON_API Tensor& logical_not_() const;
TENON_API Tensor isreal() const;
TENON_API Tensor positive() const;
TENON_API Tensor operator-() const;
TENON_API Tensor operator~() const;

// Of two operands.
TENON_API Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
TENON_API Tensor add(const Scalar& other, const Scalar& alpha = 1) const;
TENON_API Tensor& add_(const Tensor& other, const Scalar& alpha = 1) const;
TENON_API Tensor& add_(const Scalar& other, const Scalar& alpha = 1) const;
TENON_API Tensor sub(const Tensor& other, const Scalar& alpha = 1) const;
TENON_API Tensor sub(const Scalar& other, const Scalar& alpha = 1) const;
TENON_API Tensor& sub_(const Tensor& other, const Scalar& alpha = 1) const;
TENON_API Tensor& sub_(const Scalar& other, const Scalar& alpha = 1) const;
TENON_API Tensor div(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
TENON_API Tensor div(const Scalar& other, std::optional<std::string_view> rounding_mode) const;
TENON_API Tensor& operator+=(const Tensor& other);
TENON_API Tensor& operator+=(const Scalar& other);
TENON_API Tensor& operator-=(const Tensor& other);
TENON_API Tensor& operator-=(const Scalar& other);
TENON_API Tensor& operator*=(const Tensor& other);
TENON_API Tensor& operator*=(const Scalar& other);
TENON_API Tensor& operator/=(const Tensor& other);
TENON_API Tensor& operator/=(const Scalar& other);
TENON_API Tensor& operator&=(const Tensor& other);
TENON_API Tensor& operator|=(const Tensor& other);

// Truth values of two operands.
TENON_API bool equal(const Tensor& other) const;
TENON_API bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
TENON_API Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;

// Of three operands.
TENON_API Tensor masked_fill(const Tensor& mask, const Scalar& value) const;
TENON_API Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
TENON_API Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const;
TENON_API Tensor& masked_fill_(const Tensor& mask, const Tensor& value) const;
TENON_API Tensor addcmul(const Tensor& a, const Tensor& b, const Scalar& value = 1) const;
TENON_API Tensor& addcmul_(const Tensor& a, const Tensor& b, const Scalar& value = 1) const;
TENON_API Tensor addcdiv(const Tensor& a, const Tensor& b, const Scalar& value = 1) const;
TENON_API Tensor& addcdiv_(const Tensor& a, const Tensor& b, const Scalar& value = 1) const;
TENON_API Tensor lerp(const Tensor& end, const Tensor& weight) const;
TENON_API Tensor lerp(const Tensor& end, const Scalar& weight) const;
TENON_API Tensor& lerp_(const Tensor& end, const Scalar& weight) const;
TENON_API Tensor& lerp_(const Tensor& end, const Tensor& weight) const;

// Kept between bounds.
TENON_API Tensor clamp(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const;
TENON_API Tensor clamp(const std::optional<Tensor>& low = std::nullopt,
                       const std::optional<Tensor>& high = std::nullopt) const;
TENON_API Tensor& clamp_(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const;
TENON_API Tensor& clamp_(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const;
TENON_API Tensor clamp_min(const Scalar& low) const;
TENON_API Tensor clamp_min(const Tensor& low) const;
TENON_API Tensor& clamp_min_(const Scalar& low) const;
TENON_API Tensor& clamp_min_(const Tensor& low) const;
TENON_API Tensor clamp_max(const Scalar& high) const;
TENON_API Tensor clamp_max(const Tensor& high) const;
TENON_API Tensor& clamp_max_(const Scalar& high) const;
TENON_API Tensor& clamp_max_(const Tensor& high) const;

// With a signature of their own.
TENON_API Tensor where(const Tensor& condition, const Tensor& other) const;
TENON_API Tensor where(const Tensor& condition, const Scalar& other) const;
TENON_API Tensor& operator^=(const Tensor& other);
TENON_API Tensor nan_to_num(std::optional<double> nan = std::nullopt, std::optional<double> posinf = std::nullopt,
                            std::optional<double> neginf = std::nullopt) const;
TENON_API Tensor& nan_to_num_(std::optional<double> nan = std::nullopt, std::optional<double> posinf = std::nullopt,
                              std::optional<double> neginf = std::nullopt) const;
TENON_API Tensor logit(std::optional<double> eps = std::nullopt) const;
TENON_API Tensor& logit_(std::optional<double> eps = std::nullopt) const;
Tensor sgn() const { return sign(); }
Tensor& sgn_() const { return sign_(); }
TENON_API Tensor xlogy(const Tensor& other) const;
TENON_API Tensor xlogy(const Scalar& other) const;
TENON_API Tensor& xlogy_(const Tensor& other) const;
TENON_API Tensor& xlogy_(const Scalar& other) const;
TENON_API Tensor heaviside(const Tensor& values) const;
TENON_API Tensor& heaviside_(const Tensor& values) const;
TENON_API Tensor gcd(const Tensor& other) const;
TENON_API Tensor& gcd_(const Tensor& other) const;
TENON_API Tensor lcm(const Tensor& other) const;
TENON_API Tensor& lcm_(const Tensor& other) const;
TENON_API Tensor fmax(const Tensor& other) const;
TENON_API Tensor fmin(const Tensor& other) const;
TENON_API Tensor nextafter(const Tensor& other) const;
TENON_API Tensor& nextafter_(const Tensor& other) const;
TENON_API Tensor round(std::int64_t decimals) const;
TENON_API Tensor& round_(std::int64_t decimals) const;
TENON_API Tensor& div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
TENON_API Tensor& div_(const Scalar& other, std::optional<std::string_view> rounding_mode) const;
TENON_API Tensor bitwise_left_shift(const Tensor& other) const;
TENON_API Tensor bitwise_left_shift(const Scalar& other) const;
TENON_API Tensor& bitwise_left_shift_(const Tensor& other) const;
TENON_API Tensor& bitwise_left_shift_(const Scalar& other) const;
TENON_API Tensor bitwise_right_shift(const Tensor& other) const;
TENON_API Tensor bitwise_right_shift(const Scalar& other) const;
TENON_API Tensor& bitwise_right_shift_(const Tensor& other) const;
TENON_API Tensor& bitwise_right_shift_(const Scalar& other) const;
TENON_API Tensor isposinf() const;
TENON_API Tensor isneginf() const;
Tensor __lshift__(const Tensor& other) const { return bitwise_left_shift(other); }
Tensor __lshift__(const Scalar& other) const { return bitwise_left_shift(other); }
Tensor& __ilshift__(const Tensor& other) const { return bitwise_left_shift_(other); }
Tensor& __ilshift__(const Scalar& other) const { return bitwise_left_shift_(other); }
Tensor __rshift__(const Tensor& other) const { return bitwise_right_shift(other); }
Tensor __rshift__(const Scalar& other) const { return bitwise_right_shift(other); }
Tensor& __irshift__(const Tensor& other) const { return bitwise_right_shift_(other); }
Tensor& __irshift__(const Scalar& other) const { return bitwise_right_shift_(other); }

TENON_API Tensor float_power(const Tensor& exponent) const;
TENON_API Tensor float_power(const Scalar& exponent) const;
/// float_power() into the tensor. Throws Error unless it is of float64.
TENON_API Tensor& float_power_(const Tensor& exponent) const;
TENON_API Tensor& float_power_(const Scalar& exponent) const;
TENON_API Tensor mvlgamma(std::int64_t p) const;
TENON_API Tensor& mvlgamma_(std::int64_t p) const;

// Other names of methods above.
Tensor negative() const { return neg(); }
Tensor& negative_() const { return neg_(); }
Tensor multiply(const Tensor& other) const { return mul(other); }
Tensor& multiply_(const Tensor& other) const { return mul_(other); }
Tensor subtract(const Tensor& other) const { return sub(other); }
Tensor divide(const Tensor& other) const { return div(other); }
Tensor true_divide(const Tensor& other) const { return div(other); }
Tensor clip(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const {
  return clamp(low, high);
}
Tensor clip(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const {
  return clamp(low, high);
}
Tensor& clip_(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const {
  return clamp_(low, high);
}
Tensor& clip_(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const {
  return clamp_(low, high);
}
Tensor absolute() const { return abs(); }
Tensor& absolute_() const { return abs_(); }
Tensor arccos() const { return acos(); }
Tensor arcsin() const { return asin(); }
Tensor arctan() const { return atan(); }
Tensor arccosh() const { return acosh(); }
Tensor arcsinh() const { return asinh(); }
Tensor arctanh() const { return atanh(); }
Tensor arctan2(const Tensor& other) const { return atan2(other); }
Tensor fix() const { return trunc(); }
Tensor& fix_() const { return trunc_(); }
Tensor& subtract_(const Tensor& other, const Scalar& alpha = 1) const { return sub_(other, alpha); }
Tensor& divide_(const Tensor& other) const { return div_(other); }
Tensor& true_divide_(const Tensor& other) const { return div_(other); }
#define TENON_OTHER_NAME(other_name, name)                                    \
  Tensor other_name(const Tensor& other) const { return name(other); }        \
  Tensor other_name(const Scalar& other) const { return name(other); }        \
  Tensor& other_name##_(const Tensor& other) const { return name##_(other); } \
  Tensor& other_name##_(const Scalar& other) const { return name##_(other); }
TENON_OTHER_NAME(less, lt)
TENON_OTHER_NAME(less_equal, le)
TENON_OTHER_NAME(greater, gt)
TENON_OTHER_NAME(greater_equal, ge)
TENON_OTHER_NAME(not_equal, ne)
#undef TENON_OTHER_NAME
