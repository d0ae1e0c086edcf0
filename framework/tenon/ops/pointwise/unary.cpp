// Unary pointwise operators: every row of pointwise.h through one function.
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/unary.h>
#include <tenon/ops/support/scalar_operand.h>

#include <cmath>
#include <deque>

namespace tenon::ops {

const char* backward_name(const char* op) {
  static auto* names = new std::deque<std::string>();  // as long as the process: nodes keep the pointers
  std::string name;
  bool upper = true;
  for (const char* letter = op; *letter; ++letter) {
    if (*letter == '_') {
      upper = true;
      continue;
    }
    name += upper && *letter >= 'a' && *letter <= 'z' ? static_cast<char>(*letter - 32) : *letter;
    upper = false;
  }
  names->push_back(name + "Backward0");
  return names->back().c_str();
}

namespace {

Recording record_unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  return record<1>(rule.node_name, {&self}, [&rule, attributes](Backward& b) {
    const Tensor saved = rule.saves == pointwise::Saves::kNothing ? Tensor() : b.saved(0);
    const Tensor& gradient = b.grad();
    if (differentiating_twice()) {
      b.set(0, rule.symbolic(gradient, saved, attributes));
      return;
    }
    Tensor result = allocate_preserving(gradient, gradient.scalar_type());
    run(rule.backward, state_of(gradient), {view_of(result)}, {view_of(gradient), view_of(saved)}, &attributes);
    b.set(0, std::move(result));
  });
}

}  // namespace

Tensor unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  const Dtype dtype = self.scalar_type();
  if (!is_floating_point(dtype) && (!rule.integers || dtype == Dtype::kBool)) {
    return unary(
        rule, self.to(dtype == Dtype::kBool && rule.integers ? Dtype::kInt64 : floating_default(name_of(rule.forward))),
        attributes);
  }
  Recording recording = record_unary(rule, self, attributes);
  if (recording && rule.saves == pointwise::Saves::kInput) recording.save(0, self);
  Tensor result = allocate_preserving(self, dtype);
  run(rule.forward, state_of(self), {view_of(result)}, {view_of(self)}, &attributes);
  if (recording) {
    recording.output(result);
    if (rule.saves == pointwise::Saves::kOutput) recording.save_output(0, result);
  }
  return result;
}

Tensor& unary_inplace(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  Tensor& handle = const_cast<Tensor&>(self);
  const Dtype dtype = self.scalar_type();
  if (!is_floating_point(dtype) && (!rule.integers || dtype == Dtype::kBool)) {
    throw Error(std::string("result type ") + toString(default_dtype()) + " can't be cast to the desired output type " +
                toString(dtype) + " (in-place operator " + std::string(name_of(rule.forward)) + "_)");
  }
  autograd::check_inplace(self);
  Recording recording = record_unary(rule, self, attributes);
  if (recording && rule.saves == pointwise::Saves::kInput) {
    recording.save(0, self.clone());  // the values before the write, with their history for a second derivative
  }
  check_written(self);
  run(rule.forward, state_of(self), {view_of(self)}, {view_of(self)}, &attributes);
  finish_inplace(self, recording);
  if (recording && rule.saves == pointwise::Saves::kOutput) recording.save_output(0, self);
  return handle;
}

}  // namespace tenon::ops

namespace tenon {

using namespace ops;
namespace rows = pointwise;

#define TENON_UNARY_FUNCTIONS(name, Row)                                        \
  Tensor name(const Tensor& self) { return ops::unary<rows::Row>(self); }       \
  Tensor& name##_(Tensor& self) { return ops::unary_inplace<rows::Row>(self); } \
  Tensor Tensor::name() const { return ops::unary<rows::Row>(*this); }          \
  Tensor& Tensor::name##_() const { return ops::unary_inplace<rows::Row>(*this); }

TENON_UNARY_FUNCTIONS(abs, Abs)
TENON_UNARY_FUNCTIONS(square, Square)
TENON_UNARY_FUNCTIONS(exp, Exp)
TENON_UNARY_FUNCTIONS(exp2, Exp2)
TENON_UNARY_FUNCTIONS(expm1, Expm1)
TENON_UNARY_FUNCTIONS(log, Log)
TENON_UNARY_FUNCTIONS(log2, Log2)
TENON_UNARY_FUNCTIONS(log10, Log10)
TENON_UNARY_FUNCTIONS(log1p, Log1p)
TENON_UNARY_FUNCTIONS(sqrt, Sqrt)
TENON_UNARY_FUNCTIONS(rsqrt, Rsqrt)
TENON_UNARY_FUNCTIONS(reciprocal, Reciprocal)
TENON_UNARY_FUNCTIONS(sin, Sin)
TENON_UNARY_FUNCTIONS(cos, Cos)
TENON_UNARY_FUNCTIONS(tan, Tan)
TENON_UNARY_FUNCTIONS(asin, Asin)
TENON_UNARY_FUNCTIONS(acos, Acos)
TENON_UNARY_FUNCTIONS(atan, Atan)
TENON_UNARY_FUNCTIONS(sinh, Sinh)
TENON_UNARY_FUNCTIONS(cosh, Cosh)
TENON_UNARY_FUNCTIONS(tanh, Tanh)
TENON_UNARY_FUNCTIONS(asinh, Asinh)
TENON_UNARY_FUNCTIONS(acosh, Acosh)
TENON_UNARY_FUNCTIONS(atanh, Atanh)
TENON_UNARY_FUNCTIONS(erf, Erf)
TENON_UNARY_FUNCTIONS(erfc, Erfc)
TENON_UNARY_FUNCTIONS(erfinv, Erfinv)
TENON_UNARY_FUNCTIONS(frac, Frac)
TENON_UNARY_FUNCTIONS(sigmoid, Sigmoid)
TENON_UNARY_FUNCTIONS(sinc, Sinc)
TENON_UNARY_FUNCTIONS(lgamma, Lgamma)
TENON_UNARY_FUNCTIONS(digamma, Digamma)
TENON_UNARY_FUNCTIONS(deg2rad, Deg2rad)
TENON_UNARY_FUNCTIONS(rad2deg, Rad2deg)

namespace {

const Tensor& negatable(const Tensor& self) {
  if (self.scalar_type() == Dtype::kBool) {
    throw Error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.");
  }
  return self;
}
const Tensor& rectifiable(const Tensor& self) {
  if (self.scalar_type() == Dtype::kBool) throw Error("Boolean inputs not supported for relu");
  return self;
}

}  // namespace

// True is its own sign.
Tensor sign(const Tensor& self) { return self.scalar_type() == kBool ? self.clone() : ops::unary<rows::Sign>(self); }
Tensor& sign_(Tensor& self) { return self.scalar_type() == kBool ? self : ops::unary_inplace<rows::Sign>(self); }
Tensor Tensor::sign() const { return tenon::sign(*this); }
Tensor& Tensor::sign_() const { return tenon::sign_(const_cast<Tensor&>(*this)); }

Tensor neg(const Tensor& self) { return ops::unary<rows::Neg>(negatable(self)); }
Tensor& neg_(Tensor& self) { return ops::unary_inplace<rows::Neg>(negatable(self)); }
Tensor Tensor::neg() const { return tenon::neg(*this); }
Tensor& Tensor::neg_() const { return ops::unary_inplace<rows::Neg>(negatable(*this)); }
Tensor relu(const Tensor& self) { return ops::unary<rows::Relu>(rectifiable(self)); }
Tensor& relu_(Tensor& self) { return ops::unary_inplace<rows::Relu>(rectifiable(self)); }
Tensor Tensor::relu() const { return tenon::relu(*this); }
Tensor& Tensor::relu_() const { return ops::unary_inplace<rows::Relu>(rectifiable(*this)); }

// Integers are whole already.
#define TENON_ROUNDING_FUNCTIONS(name, Row)                                                            \
  Tensor Tensor::name() const { return is_floating_point() ? ops::unary<rows::Row>(*this) : clone(); } \
  Tensor& Tensor::name##_() const {                                                                    \
    return is_floating_point() ? ops::unary_inplace<rows::Row>(*this) : const_cast<Tensor&>(*this);    \
  }                                                                                                    \
  Tensor name(const Tensor& self) { return self.name(); }                                              \
  Tensor& name##_(Tensor& self) { return self.name##_(); }
TENON_ROUNDING_FUNCTIONS(ceil, Ceil)
TENON_ROUNDING_FUNCTIONS(floor, Floor)
TENON_ROUNDING_FUNCTIONS(round, Round)
TENON_ROUNDING_FUNCTIONS(trunc, Trunc)

namespace {

Tensor predicate(OperatorId op, const Tensor& self) {
  Tensor result = allocate_preserving(self, Dtype::kBool);
  run(op, state_of(self), {view_of(result)}, {view_of(self)});
  return result;
}

}  // namespace

Tensor isnan(const Tensor& self) { return predicate(TENON_OP("isnan"), self); }
Tensor isinf(const Tensor& self) { return predicate(TENON_OP("isinf"), self); }
Tensor isfinite(const Tensor& self) { return predicate(TENON_OP("isfinite"), self); }
Tensor signbit(const Tensor& self) { return predicate(TENON_OP("signbit"), self); }
Tensor logical_not(const Tensor& self) { return predicate(TENON_OP("logical_not"), self); }
Tensor bitwise_not(const Tensor& self) {
  if (self.is_floating_point())
    throw Error("\"bitwise_not\" not implemented for '" + std::string(toString(self.scalar_type())) + "'");
  Tensor result = allocate_preserving(self, self.scalar_type());
  run(TENON_OP("bitwise_not"), state_of(self), {view_of(result)}, {view_of(self)});
  return result;
}
Tensor Tensor::isnan() const { return tenon::isnan(*this); }
Tensor Tensor::isinf() const { return tenon::isinf(*this); }
Tensor Tensor::isfinite() const { return tenon::isfinite(*this); }
Tensor Tensor::logical_not() const { return tenon::logical_not(*this); }
Tensor Tensor::bitwise_not() const { return tenon::bitwise_not(*this); }
Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator~() const { return bitwise_not(); }

namespace {

PointwiseAttributes parameters(const Scalar& a, const Scalar& b = 0, const Scalar& c = 0) {
  return {{a.value(), b.value(), c.value()}};
}

/// Clamping an integer tensor by a fractional bound gives a floating one.
Tensor promoted(const Tensor& self, const Scalar& bound) {
  const Dtype dtype = result_type(self, bound);
  return dtype == self.scalar_type() ? self : self.to(dtype);
}
/// In place there is no other dtype to give.
void check_bound(const Tensor& self, const Scalar& bound) {
  const Dtype dtype = result_type(self, bound);
  if (!can_cast(dtype, self.scalar_type())) {
    throw Error(std::string("result type ") + toString(dtype) + " can't be cast to the desired output type " +
                toString(self.scalar_type()) + " (in operator clamp_)");
  }
}

PointwiseAttributes bounds(Dtype dtype, const Scalar& a, const Scalar& b = 0) {
  return {{element_of(a, dtype), element_of(b, dtype), {}}};
}
bool is_nan(const Scalar& bound) { return bound.isFloatingPoint() && std::isnan(bound.toDouble()); }
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Tensor clamp(const Tensor& self, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  if (!low && !high) throw Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!high) return clamp_min(self, *low);
  if (!low) return clamp_max(self, *high);
  const Tensor x = promoted(promoted(self, *low), *high);
  if (is_nan(*low) || is_nan(*high)) return x.mul(0).add(kNaN);  // a bound that is no number bounds to none
  return ops::unary<rows::Clamp>(x, bounds(x.scalar_type(), *low, *high));
}
Tensor clamp_min(const Tensor& self, const Scalar& low) {
  const Tensor x = promoted(self, low);
  return is_nan(low) ? x.mul(0).add(kNaN) : ops::unary<rows::ClampMin>(x, bounds(x.scalar_type(), low));
}
Tensor clamp_max(const Tensor& self, const Scalar& high) {
  const Tensor x = promoted(self, high);
  return is_nan(high) ? x.mul(0).add(kNaN) : ops::unary<rows::ClampMax>(x, bounds(x.scalar_type(), high));
}
Tensor Tensor::clamp(const std::optional<Scalar>& low, const std::optional<Scalar>& high) const {
  return tenon::clamp(*this, low, high);
}
Tensor Tensor::clamp_min(const Scalar& low) const { return tenon::clamp_min(*this, low); }
Tensor Tensor::clamp_max(const Scalar& high) const { return tenon::clamp_max(*this, high); }
Tensor& Tensor::clamp_(const std::optional<Scalar>& low, const std::optional<Scalar>& high) const {
  if (!low && !high) throw Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!high) return clamp_min_(*low);
  if (!low) return clamp_max_(*high);
  check_bound(*this, *low);
  check_bound(*this, *high);
  if (is_nan(*low) || is_nan(*high)) return mul_(0).add_(kNaN);
  return ops::unary_inplace<rows::Clamp>(*this, bounds(scalar_type(), *low, *high));
}
Tensor& Tensor::clamp_min_(const Scalar& low) const {
  check_bound(*this, low);
  return is_nan(low) ? mul_(0).add_(kNaN) : ops::unary_inplace<rows::ClampMin>(*this, bounds(scalar_type(), low));
}
Tensor& Tensor::clamp_max_(const Scalar& high) const {
  check_bound(*this, high);
  return is_nan(high) ? mul_(0).add_(kNaN) : ops::unary_inplace<rows::ClampMax>(*this, bounds(scalar_type(), high));
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!self.is_floating_point()) return self.clone();
  double largest = std::numeric_limits<double>::max();
  if (self.scalar_type() == kFloat32) largest = std::numeric_limits<float>::max();
  if (self.scalar_type() == kFloat16) largest = 65504;
  if (self.scalar_type() == kBFloat16) largest = 3.38953139e38;
  return ops::unary<rows::NanToNum>(self,
                                    parameters(nan.value_or(0), posinf.value_or(largest), neginf.value_or(-largest)));
}

Tensor polygamma(std::int64_t n, const Tensor& self) {
  if (n < 0) throw Error("polygamma(n, x) does not support negative n, but got n = " + std::to_string(n));
  return n == 0 ? digamma(self) : ops::unary<rows::Polygamma>(self, parameters(Scalar(static_cast<double>(n))));
}

Tensor relu6(const Tensor& self) {
  return self.is_floating_point() ? ops::unary<rows::Relu6>(self) : hardtanh(self, 0, 6);
}
Tensor silu(const Tensor& self) {
  check_floating("silu_cpu", self);
  return ops::unary<rows::Silu>(self);
}
Tensor mish(const Tensor& self) { return ops::unary<rows::Mish>(self); }
Tensor gelu(const Tensor& self, std::string_view approximate) {
  check_floating("GeluKernelImpl", self);
  if (approximate == "tanh") return ops::unary<rows::GeluTanh>(self);
  if (approximate != "none")
    throw Error("approximate argument must be either none or tanh, got '" + std::string(approximate) + "'");
  return ops::unary<rows::Gelu>(self);
}
Tensor selu(const Tensor& self) { return ops::unary<rows::Selu>(self); }
Tensor& selu_(Tensor& self) { return ops::unary_inplace<rows::Selu>(self); }
Tensor celu(const Tensor& self, const Scalar& alpha) {
  if (alpha.toDouble() == 0) throw Error("ZeroDivisionError: alpha cannot be 0 for CELU");
  return ops::unary<rows::Celu>(self, parameters(alpha));
}
Tensor& celu_(Tensor& self, const Scalar& alpha) { return ops::unary_inplace<rows::Celu>(self, parameters(alpha)); }
Tensor elu(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  check_floating("elu_cpu", self);
  return ops::unary<rows::Elu>(self, parameters(alpha, scale, input_scale));
}
Tensor& elu_(Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  return ops::unary_inplace<rows::Elu>(self, parameters(alpha, scale, input_scale));
}
Tensor leaky_relu(const Tensor& self, const Scalar& slope) {
  check_floating("leaky_relu_cpu", self);
  return ops::unary<rows::LeakyRelu>(self, parameters(slope));
}
Tensor& leaky_relu_(Tensor& self, const Scalar& slope) {
  return ops::unary_inplace<rows::LeakyRelu>(self, parameters(slope));
}
Tensor hardtanh(const Tensor& self, const Scalar& low, const Scalar& high) {
  if (self.scalar_type() == kBool) throw Error("Bool inputs not supported for hardtanh");
  if (!self.is_floating_point()) {  // bounds do not make integers fractional
    if (self.scalar_type() == kUInt8 && (low.toDouble() < 0 || high.toDouble() < 0)) {
      throw Error("cannot do hardtanh on an unsigned type with negative limits");
    }
    return tenon::clamp(self, Scalar(low.toLong()), Scalar(high.toLong()));
  }
  return ops::unary<rows::Hardtanh>(self, parameters(low, high));
}
Tensor& hardtanh_(Tensor& self, const Scalar& low, const Scalar& high) {
  return ops::unary_inplace<rows::Hardtanh>(self, parameters(low, high));
}
Tensor hardsigmoid(const Tensor& self) { return ops::unary<rows::Hardsigmoid>(self); }
Tensor hardswish(const Tensor& self) { return ops::unary<rows::Hardswish>(self); }
Tensor hardshrink(const Tensor& self, const Scalar& lambda) {
  return ops::unary<rows::Hardshrink>(self, parameters(lambda));
}
Tensor softshrink(const Tensor& self, const Scalar& lambda) {
  if (lambda.toDouble() < 0)
    throw Error("lambda must be greater or equal to 0, but found to be " + std::to_string(lambda.toDouble()) + ".");
  return ops::unary<rows::Softshrink>(self, parameters(lambda));
}
Tensor tanhshrink(const Tensor& self) { return ops::unary<rows::Tanhshrink>(self); }
Tensor softsign(const Tensor& self) { return ops::unary<rows::Softsign>(self); }
Tensor softplus(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  check_floating("softplus_cpu", self);
  return ops::unary<rows::Softplus>(self, parameters(beta, threshold));
}
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  if (!self.is_floating_point()) {
    const Dtype dtype = self.scalar_type();
    return self.masked_fill(self.le(Scalar(element_of(threshold, dtype).integer)), value);
  }
  return ops::unary<rows::Threshold>(self, parameters(threshold, value));
}
Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value) {
  return ops::unary_inplace<rows::Threshold>(self, parameters(threshold, value));
}
Tensor log_sigmoid(const Tensor& self) { return ops::unary<rows::LogSigmoid>(self); }

}  // namespace tenon
