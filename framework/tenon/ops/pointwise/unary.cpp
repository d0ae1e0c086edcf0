// Unary pointwise operators: every row of kernel/rows/unary.inl through one function, and those of its operators that
// have a signature or conversions of their own.
#include <tenon/autograd/kept_results.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/unary.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <cmath>
#include <deque>
#include <limits>
#include <sstream>

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

Tensor compute(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes);

/// The result for a slope that reads it, in a backward pass.
Tensor result_again(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  const autograd::KeptResultsGuard computes(nullptr);  // it is no operator of a checkpointed part
  return compute(rule, self, attributes);
}

Recording record_unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  return record<1>(rule.node_name, {&self}, [&rule, attributes](Backward& b) {
    Tensor saved = rule.saves == pointwise::Saves::kNothing ? Tensor() : b.saved(0);
    if (rule.reads != rule.saves) saved = result_again(rule, saved, attributes);
    const Tensor& gradient = b.grad();
    // Of sinc the formula is a difference of nearly equal numbers near 0, which the series is not.
    static const UnaryRule& sinc = rule_of<pointwise::Sinc>();
    if (differentiating_twice() || &rule == &sinc) {
      b.set(0, rule.symbolic(gradient, saved, attributes));
      return;
    }
    Tensor result = allocate_preserving(gradient, gradient.scalar_type());
    run(rule.backward, state_of(gradient), {view_of(result)}, {view_of(gradient), view_of(saved)}, &attributes);
    b.set(0, std::move(result));
  });
}

}  // namespace

namespace {

[[noreturn]] void refuse(const UnaryRule& rule, Dtype dtype) {
  throw Error(std::string("\"") + rule.text + "_cpu\" not implemented for '" + toString(dtype) + "'");
}
[[noreturn]] void refuse_cast(const UnaryRule& rule, Dtype result, Dtype out) {
  throw Error(std::string("result type ") + toString(result) + " can't be cast to the desired output type " +
              toString(out) + " (in-place operator " + rule.text + "_)");
}

pointwise::Integers what_becomes_of(const UnaryRule& rule, Dtype dtype) {
  return dtype == Dtype::kBool ? rule.bools : rule.integers;
}

Tensor compute(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  Recording recording = record_unary(rule, self, attributes);
  if (recording && rule.saves == pointwise::Saves::kInput) recording.save(0, self);
  Tensor result;
  autograd::computed_once(rule.text, {&result}, [&] {
    result = rule.is_contiguous ? allocate_like(self, self.impl().sizes(), self.scalar_type())
                                : allocate_preserving(self, self.scalar_type());
    run(rule.forward, state_of(self), {view_of(result)}, {view_of(self)}, &attributes);
  });
  if (recording) {
    recording.output(result);
    if (rule.saves == pointwise::Saves::kOutput) recording.save_output(0, result);
  }
  return result;
}

Tensor of_integers(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  const Dtype dtype = self.scalar_type();
  switch (what_becomes_of(rule, dtype)) {
    case pointwise::Integers::kConverted:
      return compute(rule, self.to(floating_default(name_of(rule.forward))), attributes);
    case pointwise::Integers::kRefused:
      refuse(rule, dtype);
    case pointwise::Integers::kKept:
      return self.clone();
    default:
      return compute(rule, dtype == Dtype::kBool ? self.to(Dtype::kInt64) : self, attributes);
  }
}

}  // namespace

Tensor unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  if (rule.autocast && autograd::modes.autocast.kinds != 0) [[unlikely]] {
    if (const auto cast = autocast::cast_for(*rule.autocast, self)) {
      return autocast::call(
          cast, [&](const Tensor& operand) { return unary(rule, operand, attributes); }, self);
    }
  }
  rule.check(self, attributes);
  return is_floating_point(self.scalar_type()) ? compute(rule, self, attributes) : of_integers(rule, self, attributes);
}

Tensor& unary_inplace(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes) {
  Tensor& handle = const_cast<Tensor&>(self);
  const Dtype dtype = self.scalar_type();
  rule.check(self, attributes);
  if (!is_floating_point(dtype)) {
    const pointwise::Integers what = what_becomes_of(rule, dtype);
    if (what == pointwise::Integers::kKept) {
      check_written(self);
      return handle;
    }
    if (what == pointwise::Integers::kRefused) refuse(rule, dtype);
    if (what == pointwise::Integers::kConverted) refuse_cast(rule, default_dtype(), dtype);
    if (dtype == Dtype::kBool) refuse_cast(rule, Dtype::kInt64, dtype);
  }
  autograd::check_inplace(self);
  Recording recording = record_unary(rule, self, attributes);
  if (recording && rule.saves == pointwise::Saves::kInput) recording.save(0, saved_self(self));
  check_written(self);
  run(rule.forward, state_of(self), {view_of(self)}, {view_of(self)}, &attributes);
  finish_inplace(self, recording);
  if (recording && rule.saves == pointwise::Saves::kOutput) recording.save_output(0, self);
  return handle;
}

template <>
Tensor unary<pointwise::Selu>(const Tensor& self, PointwiseAttributes attributes) {
  return unary(rule_saving_operand<pointwise::Selu>(), self, attributes);
}

template <>
Tensor symbolic_slope<pointwise::Sinc>(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes&) {
  constexpr double kPi = 3.14159265358979324, kNear = 0.5;
  constexpr int kTerms = 12;  // the next one is below float64's digits at kNear
  const Tensor x = saved.to(statistics_dtype(saved));
  const Tensor is_far = x.abs().lt(kNear).logical_not();  // NaN is
  // Each side sees harmless numbers where the other one counts, so that no NaN reaches the next derivative.
  const Tensor near = x.masked_fill(is_far, 0), far = x.masked_fill(is_far.logical_not(), 1);
  // The slope is the sum of c_n x^(2n - 1), c_n = (-1)^n 2n pi^2n / (2n + 1)!.
  double coefficients[kTerms], term = 1;
  for (int n = 1; n <= kTerms; ++n) {
    term *= -kPi * kPi / (2 * n * (2 * n + 1));
    coefficients[n - 1] = 2 * n * term;
  }
  const Tensor square = near * near;
  Tensor series = square * coefficients[kTerms - 1];
  for (int n = kTerms - 2; n > 0; --n) series = (series + coefficients[n]) * square;
  series = (series + coefficients[0]) * near;
  const Symbolic formula = pointwise::Sinc::slope<Symbolic>(Symbolic(far), Symbolic(far));
  return (gradient * where(is_far, formula.tensor, series)).to(gradient.scalar_type());
}

/// The largest finite number of a floating dtype.
double largest_of(Dtype dtype) {
  if (dtype == Dtype::kFloat32) return std::numeric_limits<float>::max();
  if (dtype == Dtype::kFloat16) return 65504;
  return dtype == Dtype::kBFloat16 ? 3.38953139e38 : std::numeric_limits<double>::max();
}

// --- what single rows refuse ----------------------------------------------------------------------------------------

template <>
void check_operand<pointwise::Neg>(const Tensor& self, const PointwiseAttributes&) {
  if (self.scalar_type() == Dtype::kBool) {
    throw Error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.");
  }
}
template <>
void check_operand<pointwise::Relu>(const Tensor& self, const PointwiseAttributes&) {
  if (self.scalar_type() == Dtype::kBool) throw Error("Boolean inputs not supported for relu");
}
template <>
void check_operand<pointwise::Relu6>(const Tensor& self, const PointwiseAttributes&) {
  if (self.scalar_type() == Dtype::kBool) throw Error("Bool inputs not supported for hardtanh");
}
template <>
void check_operand<pointwise::Hardtanh>(const Tensor& self, const PointwiseAttributes&) {
  if (self.scalar_type() == Dtype::kBool) throw Error("Bool inputs not supported for hardtanh");
}
template <>
void check_operand<pointwise::Celu>(const Tensor&, const PointwiseAttributes& alpha) {
  if (alpha.parameters[0].real == 0) throw Error("ZeroDivisionError: alpha cannot be 0 for CELU");
}
template <>
void check_operand<pointwise::Softshrink>(const Tensor& self, const PointwiseAttributes& lambda) {
  const double largest = largest_of(self.scalar_type());
  if (lambda.parameters[0].real >= 0 && lambda.parameters[0].real <= largest) return;
  std::ostringstream text;
  text << "lambda must be in range [0, " << largest << "] for input dtype " << toString(self.scalar_type())
       << ", but found " << lambda.parameters[0].real;
  throw Error(text.str());
}

}  // namespace tenon::ops

namespace tenon {

using namespace ops;

#define TENON_UNARY(Row, name, saves, integers, asks, ...)                                    \
  Tensor name(const Tensor& self) {                                                           \
    TENON_SCOPE(name, self)                                                                   \
    return ops::unary<pointwise::Row>(self);                                                  \
  }                                                                                           \
  Tensor& name##_(Tensor& self) { return static_cast<const Tensor&>(self).name##_(); }        \
  Tensor Tensor::name() const { return tenon::name(*this); }                                  \
  Tensor& Tensor::name##_() const {                                                           \
    TENON_SCOPE(name##_, *this)                                                               \
    return ops::unary_inplace<pointwise::Row>(*this);                                         \
  }                                                                                           \
  Tensor& name##_out(Tensor& out, const Tensor& self) {                                       \
    return detail::into(                                                                      \
        detail::out_rules::asks, #name, out, [](const Tensor& x) { return x.name(); }, self); \
  }
#define TENON_UNARY_WITH(Row, name, saves, integers, asks, count, list, ...)                                           \
  Tensor Tensor::name(TENON_DEFINED_##count list) const {                                                              \
    TENON_SCOPE(name, *this, TENON_NAMED_##count list)                                                                 \
    return ops::unary<pointwise::Row>(*this, parameters_for<pointwise::Row>(*this, TENON_NAMED_##count list));         \
  }                                                                                                                    \
  Tensor& Tensor::name##_(TENON_DEFINED_##count list) const {                                                          \
    TENON_SCOPE(name##_, *this, TENON_NAMED_##count list)                                                              \
    return ops::unary_inplace<pointwise::Row>(*this, parameters_for<pointwise::Row>(*this, TENON_NAMED_##count list)); \
  }                                                                                                                    \
  Tensor name(const Tensor& self, TENON_DEFINED_##count list) { return self.name(TENON_NAMED_##count list); }          \
  Tensor& name##_(Tensor& self, TENON_DEFINED_##count list) { return self.name##_(TENON_NAMED_##count list); }         \
  Tensor& name##_out(Tensor& out, const Tensor& self, TENON_DEFINED_##count list) {                                    \
    return detail::into(                                                                                               \
        detail::out_rules::asks, #name, out, [&](const Tensor& x) { return x.name(TENON_NAMED_##count list); }, self); \
  }
#include <tenon/kernel/rows/unary.inl>

namespace {

Tensor predicate(OperatorId op, const Tensor& self) {
  Tensor result = allocate_preserving(self, Dtype::kBool);
  run(op, state_of(self), {view_of(result)}, {view_of(self)});
  return result;
}

}  // namespace

#define TENON_PREDICATE(Row, name, asks, ...)                                                                    \
  Tensor name(const Tensor& self) {                                                                              \
    TENON_SCOPE(name, self)                                                                                      \
    return predicate(TENON_OP(#name), self);                                                                     \
  }                                                                                                              \
  Tensor Tensor::name() const { return tenon::name(*this); }                                                     \
  Tensor& name##_out(Tensor& out, const Tensor& self) {                                                          \
    return detail::into(                                                                                         \
        detail::without_gradient(detail::out_rules::asks), #name, out, [](const Tensor& x) { return x.name(); }, \
        self);                                                                                                   \
  }
#include <tenon/kernel/rows/relations.inl>

Tensor bitwise_not(const Tensor& self) {
  TENON_SCOPE(bitwise_not, self)
  if (self.is_floating_point())
    throw Error("\"bitwise_not\" not implemented for '" + std::string(toString(self.scalar_type())) + "'");
  Tensor result = allocate_preserving(self, self.scalar_type());
  run(TENON_OP("bitwise_not"), state_of(self), {view_of(result)}, {view_of(self)});
  return result;
}
Tensor Tensor::bitwise_not() const { return tenon::bitwise_not(*this); }
Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator~() const { return bitwise_not(); }

namespace {

/// Clamping an integer tensor by a fractional bound gives a floating one.
Tensor promoted(const Tensor& self, const Scalar& bound) {
  const Dtype dtype = result_type(self, bound);
  return dtype == self.scalar_type() ? self : self.to(dtype);
}
/// Throws Error where the dtype of a bound would change that of `self`, which an in-place form cannot.
void check_bound(const Tensor& self, const Scalar& bound) {
  const Dtype dtype = result_type(self, bound);
  if (!can_cast(dtype, self.scalar_type())) {
    throw Error(std::string("result type ") + toString(dtype) + " can't be cast to the desired output type " +
                toString(self.scalar_type()) + " (in operator clamp_)");
  }
}

Dtype ordered(const char* op, Dtype dtype) {
  if (dtype == kBool) throw NotImplementedError(std::string("\"") + op + "\" not implemented for 'Bool'");
  return dtype;
}
PointwiseAttributes low_bound(const Tensor& x, const Scalar& low) {
  return {{bound_of(low, ordered("clamp_min_scalar_cpu", x.scalar_type()), Bound::kLow)}};
}
PointwiseAttributes high_bound(const Tensor& x, const Scalar& high) {
  return {{bound_of(high, ordered("clamp_max_scalar_cpu", x.scalar_type()), Bound::kHigh)}};
}
PointwiseAttributes both_bounds(const Tensor& x, const Scalar& low, const Scalar& high) {
  const Dtype dtype = ordered("clamp_scalar_cpu", x.scalar_type());
  return {{bound_of(low, dtype, Bound::kLow), bound_of(high, dtype, Bound::kHigh)}};
}
bool is_nan(const Scalar& bound) { return bound.isFloatingPoint() && std::isnan(bound.toDouble()); }
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Tensor clamp(const Tensor& self, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  TENON_SCOPE(clamp, self, low, high)
  if (!low && !high) throw Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!high) return clamp_min(self, *low);
  if (!low) return clamp_max(self, *high);
  const Tensor x = promoted(promoted(self, *low), *high);
  if (is_nan(*low) || is_nan(*high)) return x.mul(0).add(kNaN);  // a NaN bound makes every element NaN
  return ops::unary<pointwise::Clamp>(x, both_bounds(x, *low, *high));
}
Tensor clamp_min(const Tensor& self, const Scalar& low) {
  TENON_SCOPE(clamp_min, self, low)
  const Tensor x = promoted(self, low);
  return is_nan(low) ? x.mul(0).add(kNaN) : ops::unary<pointwise::ClampMin>(x, low_bound(x, low));
}
Tensor clamp_max(const Tensor& self, const Scalar& high) {
  TENON_SCOPE(clamp_max, self, high)
  const Tensor x = promoted(self, high);
  return is_nan(high) ? x.mul(0).add(kNaN) : ops::unary<pointwise::ClampMax>(x, high_bound(x, high));
}
Tensor Tensor::clamp(const std::optional<Scalar>& low, const std::optional<Scalar>& high) const {
  return tenon::clamp(*this, low, high);
}
Tensor Tensor::clamp_min(const Scalar& low) const { return tenon::clamp_min(*this, low); }
Tensor Tensor::clamp_max(const Scalar& high) const { return tenon::clamp_max(*this, high); }
Tensor& Tensor::clamp_(const std::optional<Scalar>& low, const std::optional<Scalar>& high) const {
  TENON_SCOPE(clamp_, *this, low, high)
  if (!low && !high) throw Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!high) return clamp_min_(*low);
  if (!low) return clamp_max_(*high);
  check_bound(*this, *low);
  check_bound(*this, *high);
  if (is_nan(*low) || is_nan(*high)) return mul_(0).add_(kNaN);
  return ops::unary_inplace<pointwise::Clamp>(*this, both_bounds(*this, *low, *high));
}
Tensor& Tensor::clamp_min_(const Scalar& low) const {
  TENON_SCOPE(clamp_min_, *this, low)
  check_bound(*this, low);
  return is_nan(low) ? mul_(0).add_(kNaN) : ops::unary_inplace<pointwise::ClampMin>(*this, low_bound(*this, low));
}
Tensor& Tensor::clamp_max_(const Scalar& high) const {
  TENON_SCOPE(clamp_max_, *this, high)
  check_bound(*this, high);
  return is_nan(high) ? mul_(0).add_(kNaN) : ops::unary_inplace<pointwise::ClampMax>(*this, high_bound(*this, high));
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  TENON_SCOPE(nan_to_num, self, nan, posinf, neginf)
  if (!self.is_floating_point()) return self.clone();
  const double largest = largest_of(self.scalar_type());
  return ops::unary<pointwise::NanToNum>(
      self, parameters(nan.value_or(0), posinf.value_or(largest), neginf.value_or(-largest)));
}

Tensor polygamma(std::int64_t n, const Tensor& self) {
  TENON_SCOPE(polygamma, n, self)
  if (n < 0) throw Error("polygamma(n, x) does not support negative n, but got n = " + std::to_string(n));
  return n == 0 ? digamma(self) : ops::unary<pointwise::Polygamma>(self, parameters(Scalar(static_cast<double>(n))));
}

}  // namespace tenon
