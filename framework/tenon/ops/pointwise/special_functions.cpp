// Special functions out of other operators. Those of one operand are computed in float64 and rounded once.
#include <tenon/kernel/pointwise.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/special_functions.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <cmath>
#include <limits>

namespace tenon {

using namespace ops;

namespace {

constexpr double kRootOfTwo = 1.41421356237309505, kRootOfPi = 1.77245385090551603, kLogOfPi = 1.14472988584940017;

Dtype floating_of(const char* op, const Tensor& self) {
  return self.is_floating_point() ? self.scalar_type() : floating_default(op);
}

/// `value(x)` of an operand, x in float64, and the slope, a function of the operand or of the result: the one that is
/// saved.
template <pointwise::Saves kSaves, class Value, class Slope>
Tensor of_one(const char* op, const char* node, const Tensor& self, Value value, Slope slope) {
  const Tensor input = self.to(floating_of(op, self));
  Recording recording = record<1>(node, {&input}, [slope](Backward& b) { b.set(0, b.grad().mul(slope(b.saved(0)))); });
  if (recording && kSaves == pointwise::Saves::kInput) recording.save(0, input);
  Tensor result;
  {
    NoGradGuard no_grad;
    result = laid_out_after(input, input, value(input.detach().to(kFloat64)).to(input.scalar_type()));
  }
  recording.output(result);
  if (recording && kSaves == pointwise::Saves::kOutput) recording.save_output(0, result);
  return result;
}

/// Of float64, without a history. Near 0 the product; from kFar on Laplace's continued fraction, and below 0 by
/// erfcx(-x) = 2 exp(x^2) - erfcx(x).
Tensor scaled_erfc(const Tensor& x) {
  constexpr double kFar = 4;
  constexpr int kTerms = 24;  // at kFar the next one changes nothing
  const Tensor magnitude = x.abs();
  Tensor rest = magnitude;
  for (int k = kTerms; k > 0; --k) rest = magnitude + (rest.reciprocal() * (k / 2.0));
  const Tensor far = rest.reciprocal() * (1 / kRootOfPi), square = (x * x).exp();
  const Tensor above = where(magnitude.lt(kFar), square * magnitude.erfc(), far);
  return where(x.lt(0), square * 2 - above, above);
}

/// Of float64, without a history.
Tensor log_of_ndtr(const Tensor& x) {
  const Tensor scaled = x * (1 / kRootOfTwo);
  const Tensor low = (scaled_erfc(scaled.neg()) * 0.5).log() - scaled * scaled;
  return where(x.lt(-1), low, (scaled.erfc() * -0.5).log1p());
}

/// Of float64, without a history: half of the way from the side that is nearer, by Newton's method on the logarithm.
Tensor inverse_ndtr(const Tensor& p) {
  const Tensor share = where(p.gt(0.5), p.neg() + 1, p);
  const Tensor logarithm = share.log();
  // Abramowitz and Stegun, 26.2.23: within 4.5e-4.
  const Tensor t = (logarithm * -2).sqrt();
  Tensor x = ((t * 0.010328 + 0.802853) * t + 2.515517) / (((t * 0.001308 + 0.189269) * t + 1.432788) * t + 1) - t;
  for (int step = 0; step < 3; ++step) {
    const Tensor slope = scaled_erfc(x * (-1 / kRootOfTwo)).reciprocal() * (kRootOfTwo / kRootOfPi);
    x = x - (log_of_ndtr(x) - logarithm) / slope;
  }
  x = x.masked_fill(p.eq(0.5), 0);
  x = where(p.gt(0.5), x.neg(), x);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  x = x.masked_fill(p.eq(0), -kInfinity).masked_fill(p.eq(1), kInfinity);
  return x.masked_fill(p.lt(0).logical_or(p.gt(1)), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  TENON_SCOPE(float_power, self, exponent)
  return self.to(kFloat64).pow(exponent.to(kFloat64));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  TENON_SCOPE(float_power, self, exponent)
  return self.to(kFloat64).pow(exponent.toDouble());
}
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  TENON_SCOPE(float_power, self, exponent)
  return pow(Scalar(self.toDouble()), exponent.to(kFloat64));
}

Tensor mvlgamma(const Tensor& self, std::int64_t p) {
  TENON_SCOPE(mvlgamma, self, p)
  if (self.scalar_type() == kBool) throw Error("The input tensor may not be a boolean tensor.");
  if (p < 1) throw Error("p has to be greater than or equal to 1, got " + std::to_string(p));
  const Tensor x = self.to(floating_of("mvlgamma", self));
  const Tensor wide = x.to(statistics_dtype(x));
  const Tensor halves = arange((1 - static_cast<double>(p)) / 2, 0.25, 0.5, wide.options().requires_grad(false));
  const Tensor sum = (wide.unsqueeze(-1) + halves).lgamma().sum(-1);
  return (sum + static_cast<double>(p * (p - 1)) * kLogOfPi / 4).to(x.scalar_type());
}

namespace {

void check_base(const Tensor& self) {
  if (self.scalar_type() == kFloat64) return;
  throw Error(std::string("the base given to float_power_ has dtype ") + toString(self.scalar_type()) +
              " but the operation's result requires dtype Double");
}

}  // namespace

Tensor Tensor::float_power(const Tensor& exponent) const { return tenon::float_power(*this, exponent); }
Tensor Tensor::float_power(const Scalar& exponent) const { return tenon::float_power(*this, exponent); }
Tensor& Tensor::float_power_(const Tensor& exponent) const {
  TENON_SCOPE(float_power_, *this, exponent)
  check_base(*this);
  return pow_(exponent.to(kFloat64));
}
Tensor& Tensor::float_power_(const Scalar& exponent) const {
  TENON_SCOPE(float_power_, *this, exponent)
  check_base(*this);
  return pow_(exponent.toDouble());
}
Tensor Tensor::mvlgamma(std::int64_t p) const { return tenon::mvlgamma(*this, p); }
Tensor& Tensor::mvlgamma_(std::int64_t p) const {
  TENON_SCOPE(mvlgamma_, *this, p)
  return overwrite("mvlgamma_", *this, before_write(*this).mvlgamma(p));
}

Tensor special_xlog1py(const Tensor& self, const Tensor& other) {
  TENON_SCOPE(special_xlog1py, self, other)
  const Dtype common = result_type(self, other);
  const Dtype dtype = is_floating_point(common) ? common : floating_default("special_xlog1py");
  const Tensor x = self.to(dtype), y = other.to(dtype);
  const bool is_number = other.impl().is_wrapped_number();
  Recording recording = record<2>("SpecialXlog1PyBackward0", {&x, &y}, [is_number](Backward& b) {
    const Tensor x = b.saved(0), y = b.saved(1);
    if (b.needs(0)) {
      const Tensor has_no_logarithm = is_number ? y.gt(-1).logical_not() : y.le(-1);
      b.set(0, special_xlog1py(b.grad(), y).masked_fill(x.eq(0).logical_and(has_no_logarithm), 0));
    }
    if (b.needs(1)) b.set(1, b.grad() * x / (y + 1));
  });
  if (recording) {
    recording.save(0, x);
    recording.save(1, y);
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    const Tensor wide_x = x.to(statistics_dtype(x)), wide_y = y.to(statistics_dtype(y));
    const Tensor product = (wide_x * wide_y.log1p()).masked_fill(wide_x.eq(0).logical_and(wide_y.eq(wide_y)), 0);
    result = laid_out_after(x, y, product.to(dtype));
  }
  recording.output(result);
  return result;
}
Tensor special_xlog1py(const Tensor& self, const Scalar& other) {
  return special_xlog1py(self, wrapped_scalar(other, ops::state_of(self)));
}
Tensor special_xlog1py(const Scalar& self, const Tensor& other) {
  return special_xlog1py(wrapped_scalar(self, ops::state_of(other)), other);
}

Tensor special_erfcx(const Tensor& self) {
  TENON_SCOPE(special_erfcx, self)
  // Far above 0 the slope is a difference of nearly equal numbers, of which float32 keeps nothing.
  const auto slope = [](const Tensor& x) {
    const Tensor wide = x.to(kFloat64);
    return (wide * special_erfcx(wide) * 2 - 2 / kRootOfPi).to(x.scalar_type());
  };
  return of_one<pointwise::Saves::kInput>("special_erfcx", "SpecialErfcxBackward0", self, &scaled_erfc, slope);
}
Tensor special_log_ndtr(const Tensor& self) {
  TENON_SCOPE(special_log_ndtr, self)
  const auto slope = [](const Tensor& x) {
    return special_erfcx(x * (-1 / kRootOfTwo)).reciprocal() * (kRootOfTwo / kRootOfPi);
  };
  return of_one<pointwise::Saves::kInput>("special_log_ndtr", "SpecialLogNdtrBackward0", self, &log_of_ndtr, slope);
}
Tensor special_ndtri(const Tensor& self) {
  TENON_SCOPE(special_ndtri, self)
  const auto slope = [](const Tensor& y) { return (y * y * 0.5).exp() * (kRootOfTwo * kRootOfPi); };
  return of_one<pointwise::Saves::kOutput>("special_ndtri", "SpecialNdtriBackward0", self, &inverse_ndtr, slope);
}

}  // namespace tenon
