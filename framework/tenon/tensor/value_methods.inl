// Methods of Tensor that compute values; included by tensor.h inside the class. Each group names the file that defines it;
// what a method does stands there.

// ops/pointwise/numeric.cpp: element by element.
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
Tensor __lshift__(const Tensor& other) const { return bitwise_left_shift(other); }
Tensor __lshift__(const Scalar& other) const { return bitwise_left_shift(other); }
Tensor& __ilshift__(const Tensor& other) const { return bitwise_left_shift_(other); }
Tensor& __ilshift__(const Scalar& other) const { return bitwise_left_shift_(other); }
Tensor __rshift__(const Tensor& other) const { return bitwise_right_shift(other); }
Tensor __rshift__(const Scalar& other) const { return bitwise_right_shift(other); }
Tensor& __irshift__(const Tensor& other) const { return bitwise_right_shift_(other); }
Tensor& __irshift__(const Scalar& other) const { return bitwise_right_shift_(other); }
TENON_API Tensor isposinf() const;
TENON_API Tensor isneginf() const;

// ops/pointwise/clamp.cpp: kept between bounds.
TENON_API Tensor& clamp_(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const;
TENON_API Tensor clamp_min(const Tensor& low) const;
TENON_API Tensor& clamp_min_(const Tensor& low) const;
TENON_API Tensor clamp_max(const Tensor& high) const;
TENON_API Tensor& clamp_max_(const Tensor& high) const;
Tensor clip(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const { return clamp(low, high); }
Tensor clip(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const { return clamp(low, high); }
Tensor& clip_(const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) const { return clamp_(low, high); }
Tensor& clip_(const std::optional<Tensor>& low, const std::optional<Tensor>& high = std::nullopt) const { return clamp_(low, high); }

// ops/reduce/summary.cpp: reductions.
TENON_API std::tuple<Tensor, Tensor> aminmax(std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false) const;
TENON_API Tensor nansum(OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                        std::optional<Dtype> dtype = std::nullopt) const;
TENON_API Tensor nanmean(OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                         std::optional<Dtype> dtype = std::nullopt) const;
TENON_API Tensor trace() const;
TENON_API Tensor dist(const Tensor& other, const Scalar& p = 2) const;
TENON_API Tensor renorm(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const;
TENON_API Tensor& renorm_(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const;

// ops/linalg/products.cpp: sums of products.
TENON_API Tensor addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor addr(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addr_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor addbmm(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addbmm_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& baddbmm_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor inner(const Tensor& other) const;
TENON_API Tensor vdot(const Tensor& other) const;
Tensor ger(const Tensor& other) const { return outer(other); }
TENON_API Tensor kron(const Tensor& other) const;
TENON_API Tensor cross(const Tensor& other, std::optional<std::int64_t> dim = std::nullopt) const;
TENON_API Tensor matrix_power(std::int64_t n) const;

// Other names of methods above.
Tensor positive() const { return *this; }
Tensor& negative_() const { return neg_(); }
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
Tensor& multiply_(const Tensor& other) const { return mul_(other); }
Tensor& subtract_(const Tensor& other, const Scalar& alpha = 1) const { return sub_(other, alpha); }
Tensor& divide_(const Tensor& other) const { return div_(other); }
Tensor& true_divide_(const Tensor& other) const { return div_(other); }
#define TENON_OTHER_NAME(other_name, name)                                     \
  Tensor other_name(const Tensor& other) const { return name(other); }         \
  Tensor other_name(const Scalar& other) const { return name(other); }         \
  Tensor& other_name##_(const Tensor& other) const { return name##_(other); }  \
  Tensor& other_name##_(const Scalar& other) const { return name##_(other); }
TENON_OTHER_NAME(less, lt)
TENON_OTHER_NAME(less_equal, le)
TENON_OTHER_NAME(greater, gt)
TENON_OTHER_NAME(greater_equal, ge)
TENON_OTHER_NAME(not_equal, ne)
#undef TENON_OTHER_NAME
