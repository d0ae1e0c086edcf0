// Functions of single elements out of the pointwise rows.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <cmath>
#include <limits>

namespace tenon {

using namespace ops;

namespace {

Dtype floating_of(const char* op, Dtype dtype) { return is_floating_point(dtype) ? dtype : floating_default(op); }

void check_integers(const char* op, Dtype dtype) {
  if (!is_integral(dtype)) throw Error(std::string("\"") + op + "\" not implemented for '" + toString(dtype) + "'");
}

}  // namespace

Tensor Tensor::nan_to_num(std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return tenon::nan_to_num(*this, nan, posinf, neginf);
}
Tensor& Tensor::nan_to_num_(std::optional<double> nan, std::optional<double> posinf,
                            std::optional<double> neginf) const {
  TENON_SCOPE(nan_to_num_, *this, nan, posinf, neginf)
  return overwrite("nan_to_num_", *this, before_write(*this).nan_to_num(nan, posinf, neginf));
}

Tensor Tensor::logit(std::optional<double> eps) const {
  TENON_SCOPE(logit, *this, eps)
  const Tensor input = to(floating_of("logit", scalar_type()));
  const double low = eps.value_or(0), high = 1 - low;
  const bool bounded = eps.has_value();
  Recording recording = record<1>("LogitBackward0", {&input}, [=](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor gradient = b.grad().div(x.mul(x.neg().add(1)).abs());  // at -0 the slope is inf, as at 0
    b.set(0, gradient.masked_fill(x.lt(low).logical_or(x.gt(high)),
                                  bounded ? 0.0 : std::numeric_limits<double>::quiet_NaN()));
  });
  if (recording) recording.save(0, input);
  Tensor result;
  {
    NoGradGuard no_grad;
    const Tensor x = bounded ? input.clamp(low, high) : input;
    result = x.div(x.neg().add(1)).log();
  }
  recording.output(result);
  return result;
}
Tensor& Tensor::logit_(std::optional<double> eps) const {
  TENON_SCOPE(logit_, *this, eps)
  return overwrite("logit_", *this, before_write(*this).logit(eps));
}

Tensor Tensor::xlogy(const Tensor& other) const {
  TENON_SCOPE(xlogy, *this, other)
  const Dtype dtype = floating_of("xlogy", result_type(*this, other));
  const Tensor x = to(dtype), y = other.to(dtype);
  const bool is_number = other.impl().is_wrapped_number();
  Recording recording = record<2>("XlogyBackward0", {&x, &y}, [is_number](Backward& b) {
    const Tensor x = b.saved(0), y = b.saved(1);
    if (b.needs(0)) {
      // Of a number that is NaN, too, nothing is left where x is 0: libtorch asks whether it is above 0.
      const Tensor has_no_logarithm = is_number ? y.gt(0).logical_not() : y.le(0);
      b.set(0, b.grad().xlogy(y).masked_fill(x.eq(0).logical_and(has_no_logarithm), 0));
    }
    if (b.needs(1)) b.set(1, b.grad().mul(x).div(y));
  });
  if (recording) {
    recording.save(0, x);
    recording.save(1, y);
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    result = laid_out_after(x, y, x.mul(y.log()).masked_fill(x.eq(0).logical_and(y.eq(y)), 0));
  }
  recording.output(result);
  return result;
}
Tensor Tensor::xlogy(const Scalar& other) const { return xlogy(wrapped_scalar(other, ops::state_of(*this))); }
Tensor xlogy(const Scalar& self, const Tensor& other) {
  TENON_SCOPE(xlogy, self, other)
  return wrapped_scalar(self, ops::state_of(other)).xlogy(other);
}
Tensor& Tensor::xlogy_(const Tensor& other) const {
  TENON_SCOPE(xlogy_, *this, other)
  return overwrite("xlogy_", *this, before_write(*this, {&other}).xlogy(other));
}
Tensor& Tensor::xlogy_(const Scalar& other) const {
  TENON_SCOPE(xlogy_, *this, other)
  return overwrite("xlogy_", *this, before_write(*this).xlogy(other));
}

Tensor Tensor::heaviside(const Tensor& values) const {
  TENON_SCOPE(heaviside, *this, values)
  if (scalar_type() != values.scalar_type()) {
    throw Error(std::string("heaviside is not yet implemented for tensors with different dtypes, got ") +
                tenon::toString(scalar_type()) + " and " + tenon::toString(values.scalar_type()));
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    result = laid_out_after(*this, values, tenon::where(eq(0), values, gt(0).to(scalar_type())));
  }
  without_derivative("heaviside", {this, &values}, result);
  return result;
}
Tensor& Tensor::heaviside_(const Tensor& values) const {
  TENON_SCOPE(heaviside_, *this, values)
  return overwrite("heaviside_", *this, heaviside(values));
}

Tensor Tensor::gcd(const Tensor& other) const {
  TENON_SCOPE(gcd, *this, other)
  const Dtype dtype = result_type(*this, other);
  check_integers("gcd", dtype);
  const Dims sizes = broadcast_sizes(impl().sizes(), other.impl().sizes());
  Tensor a = to(dtype).expand(sizes).abs(), b = other.to(dtype).expand(sizes).abs();
  // Euclid's algorithm on all elements at once; a pair is done when b is 0, and is then left as it is.
  while (has_values(b) && b.ne(0).any().item<bool>()) {
    const Tensor rest = a.remainder(b.masked_fill(b.eq(0), 1));
    const Tensor open = b.ne(0);
    a = tenon::where(open, b, a);
    b = tenon::where(open, rest, b);
  }
  return laid_out_after(*this, other, a);
}
Tensor& Tensor::gcd_(const Tensor& other) const {
  TENON_SCOPE(gcd_, *this, other)
  return overwrite("gcd_", *this, gcd(other));
}
Tensor Tensor::lcm(const Tensor& other) const {
  TENON_SCOPE(lcm, *this, other)
  const Tensor divisor = gcd(other);
  const Dtype dtype = divisor.scalar_type();
  // Of 8 and 16 bits in 32: what does not fit is cut off the result, as of any product.
  const Dtype wide = dtype == kInt64 ? kInt64 : kInt32;
  const auto widened = [&](const Tensor& x) { return x.to(dtype).to(wide); };
  const Tensor multiple =
      widened(*this).div(widened(divisor).masked_fill(divisor.eq(0), 1), "trunc").mul(widened(other));
  return laid_out_after(*this, other, multiple.abs().to(dtype));
}
Tensor& Tensor::lcm_(const Tensor& other) const {
  TENON_SCOPE(lcm_, *this, other)
  return overwrite("lcm_", *this, lcm(other));
}

namespace {

/// `extreme` of two numbers; of a NaN and a number the number. Equal numbers share the gradient.
Tensor number_of(const Tensor& self, const Tensor& other, const Tensor& extreme) {
  return laid_out_after(self, other, where(other.ne(other), self, where(self.ne(self), other, extreme)));
}

}  // namespace

Tensor Tensor::fmax(const Tensor& other) const {
  TENON_SCOPE(fmax, *this, other)
  return number_of(*this, other, maximum(other));
}
Tensor Tensor::fmin(const Tensor& other) const {
  TENON_SCOPE(fmin, *this, other)
  return number_of(*this, other, minimum(other));
}

namespace {

Dtype integers_as_wide_as(Dtype dtype) {
  if (size_of(dtype) == 8) return kInt64;
  return size_of(dtype) == 4 ? kInt32 : kInt16;
}

/// From each number to the next one of its dtype: as integers, magnitudes of floating numbers ascend.
Tensor step_towards(const Tensor& from, const Tensor& to) {
  const Dtype bits = integers_as_wide_as(from.scalar_type());
  const Tensor grows = from.lt(to).eq(from.gt(0));
  const Tensor moved =
      from.view(bits).add(tenon::where(grows, Scalar(1), Scalar(-1)).to(bits)).view(from.scalar_type());
  // Beside 0, whose sign the integers do not tell, lies the smallest number of either sign.
  const Tensor smallest = tenon::ones(from.sizes(), from.options().dtype(bits)).view(from.scalar_type()).copysign(to);
  return tenon::where(from.eq(0), smallest, moved);
}

}  // namespace

Tensor Tensor::nextafter(const Tensor& other) const {
  TENON_SCOPE(nextafter, *this, other)
  check_same_device("nextafter", {this, &other});
  const Dtype dtype = result_type(*this, other);
  if (!tenon::is_floating_point(dtype)) {
    throw Error(std::string("\"nextafter\" not implemented for '") + tenon::toString(dtype) + "'");
  }
  // A step has the slope of where it starts from; where there is none, PyTorch has no slope either.
  const Tensor a = to(dtype), b = other.to(dtype);
  Recording recording = record<1>("NextafterBackward0", {&a, &b}, [](Backward& backward) {
    if (backward.needs(0)) backward.set(0, backward.grad().masked_fill(backward.saved(0), 0));
    if (backward.needs(1)) backward.set(1, backward.grad().mul(0));
  });
  if (recording) recording.save(0, a.detach().eq(b.detach()));
  Tensor result;
  {
    NoGradGuard no_grad;
    const Dims sizes = broadcast_sizes(a.impl().sizes(), b.impl().sizes());
    const Tensor from = a.expand(sizes).contiguous(), towards = b.expand(sizes).contiguous();
    const Tensor moved = tenon::where(from.eq(towards), towards, step_towards(from, towards));
    const Tensor value = tenon::where(from.ne(from).logical_or(towards.ne(towards)), from.add(towards), moved);
    result = allocate_after({&a, &b}, sizes, dtype);
    run(TENON_OP("copy"), ops::state_of(result), {view_of(result)}, {view_of(value)});
  }
  recording.output(result);
  return result;
}
Tensor& Tensor::nextafter_(const Tensor& other) const {
  TENON_SCOPE(nextafter_, *this, other)
  return overwrite("nextafter_", *this, nextafter(other));
}

Tensor& Tensor::bitwise_not_() const {
  TENON_SCOPE(bitwise_not_, *this)
  return overwrite("bitwise_not_", *this, bitwise_not());
}
Tensor& Tensor::logical_not_() const {
  TENON_SCOPE(logical_not_, *this)
  NoGradGuard no_grad;
  return overwrite("logical_not_", *this, logical_not());
}
Tensor Tensor::isreal() const {
  TENON_SCOPE(isreal, *this)
  return tenon::ones_like(*this, TensorOptions(kBool));
}
Tensor Tensor::positive() const {
  TENON_SCOPE(positive, *this)
  if (scalar_type() == kBool) throw Error("The `+` operator, on a bool tensor is not supported.");
  return *this;
}

Tensor Tensor::round(std::int64_t decimals) const {
  TENON_SCOPE(round, *this, decimals)
  check_floating("round", *this);
  if (decimals == 0) return round();
  if (itemsize() < size_of(kFloat))
    return to(kFloat).round(decimals).to(scalar_type());  // 16 bits hold no scaled value
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals > 0 ? mul(scale).round().div(scale) : div(scale).round().mul(scale);
}
Tensor& Tensor::round_(std::int64_t decimals) const {
  TENON_SCOPE(round_, *this, decimals)
  return overwrite("round_", *this, round(decimals));
}

Tensor& Tensor::div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  TENON_SCOPE(div_, *this, other, rounding_mode)
  return overwrite("div_", *this, before_write(*this, {&other}).div(other, rounding_mode));
}
Tensor& Tensor::div_(const Scalar& other, std::optional<std::string_view> rounding_mode) const {
  TENON_SCOPE(div_, *this, other, rounding_mode)
  return overwrite("div_", *this, before_write(*this).div(other, rounding_mode));
}
Tensor remainder(const Scalar& self, const Tensor& other) {
  TENON_SCOPE(remainder, self, other)
  return self % other;
}

Tensor Tensor::isposinf() const {
  TENON_SCOPE(isposinf, *this)
  return eq(std::numeric_limits<double>::infinity());
}
Tensor Tensor::isneginf() const {
  TENON_SCOPE(isneginf, *this)
  return eq(-std::numeric_limits<double>::infinity());
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return tenon::where(condition, *this, other);
}
Tensor& Tensor::operator^=(const Tensor& other) { return bitwise_xor_(other); }

// --- shifts
// -------------------------------------------------------------------------------------------------------------

namespace {

Tensor shifted(OperatorId op, const char* name, const Tensor& self, const Tensor& places) {
  check_same_device(name, {&self, &places});
  const Dtype dtype = result_type(self, places);
  check_integers(name, dtype);
  const Operands operands(name, self, places, dtype);
  Tensor result = allocate_result(operands.left, &operands.right, operands.sizes, dtype);
  compute(op, result, operands.left, operands.right, BinaryAttributes{});
  return result;
}

Tensor shifted_left(const Tensor& self, const Tensor& places) {
  return shifted(TENON_OP("shift_left"), "bitwise_left_shift", self, places);
}
Tensor shifted_right(const Tensor& self, const Tensor& places) {
  return shifted(TENON_OP("shift_right"), "bitwise_right_shift", self, places);
}

}  // namespace

#define TENON_SHIFT(name, shift)                                      \
  Tensor Tensor::name(const Tensor& other) const {                    \
    TENON_SCOPE(name, *this, other)                                   \
    return shift(*this, other);                                       \
  }                                                                   \
  Tensor Tensor::name(const Scalar& other) const {                    \
    TENON_SCOPE(name, *this, other)                                   \
    return shift(*this, wrapped_scalar(other, ops::state_of(*this))); \
  }                                                                   \
  Tensor& Tensor::name##_(const Tensor& other) const {                \
    TENON_SCOPE(name##_, *this, other)                                \
    return overwrite(#name "_", *this, name(other));                  \
  }                                                                   \
  Tensor& Tensor::name##_(const Scalar& other) const {                \
    TENON_SCOPE(name##_, *this, other)                                \
    return overwrite(#name "_", *this, name(other));                  \
  }                                                                   \
  Tensor name(const Scalar& self, const Tensor& other) {              \
    return shift(wrapped_scalar(self, ops::state_of(other)), other);  \
  }
TENON_SHIFT(bitwise_left_shift, shifted_left)
TENON_SHIFT(bitwise_right_shift, shifted_right)
#undef TENON_SHIFT

}  // namespace tenon
