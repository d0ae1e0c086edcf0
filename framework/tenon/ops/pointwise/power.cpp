// Powers: those of which PyTorch takes a root, and those that a number is raised to.
#include <tenon/ops/pointwise/power.h>

#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/pointwise/binary.h>
#include <tenon/ops/pointwise/number_operand.h>
#include <tenon/ops/pointwise/unary.h>
#include <tenon/ops/support/scalar_operand.h>

namespace tenon::ops {
namespace {

/// x ** n of integers with n < 0 has no value. Throws Error in PyTorch's words.
void check_power(const Tensor& base, const Scalar& exponent) {
  if (is_integral(base.scalar_type(), true) && exponent.isIntegral(true) && exponent.toLong() < 0) {
    throw Error("Integers to negative integer powers are not allowed.");
  }
}

/// Whether libtorch takes a root for that power, which is NaN of -inf where pow() is inf. On the CPU it takes none of
/// float16.
bool is_root(const Tensor& self, double power, double exponent) {
  return power == exponent && !(self.scalar_type() == kHalf && self.is_cpu());
}

/// x to the -0.5: a root by value, with the slopes of a power, of another sign than those of 1 / sqrt(x) at -0.
const UnaryRule& rule_of_inverse_root() {
  static const UnaryRule rule = [] {
    UnaryRule made = rule_of<pointwise::PowScalar>();
    made.forward = rule_of<pointwise::Rsqrt>().forward;
    return made;
  }();
  return rule;
}

/// x to the 0.5: a root that saves its operand, as a power does.
const UnaryRule& rule_of_root() { return rule_saving_operand<pointwise::Sqrt>(); }

}  // namespace

Tensor power(const Tensor& self, const Scalar& exponent) {
  TENON_AUTOCAST_AS(pow, power(operands...), self, exponent)
  if (self.is_floating_point()) {
    const double power = exponent.toDouble();
    if (power == 2) return self.square();
    if (is_root(self, power, 0.5)) return unary(rule_of_root(), self, {});
    if (is_root(self, power, -0.5)) return unary(rule_of_inverse_root(), self, {{power}});
    return unary<pointwise::PowScalar>(self, {{rounded_to(exponent.value(), self.scalar_type())}});
  }
  check_power(self, exponent);
  element_of(exponent, tenon::result_type(self, exponent));  // throws where it overflows
  return binary(rule<pointwise::Pow>(), self, exponent);
}
Tensor& power_inplace(const Tensor& self, const Scalar& exponent) {
  if (self.is_floating_point()) {
    const double power = exponent.toDouble();
    if (is_root(self, power, 0.5)) return unary_inplace(rule_of_root(), self, {});
    if (is_root(self, power, -0.5)) return unary_inplace(rule_of_inverse_root(), self, {{power}});
    return unary_inplace<pointwise::PowScalar>(self, {{rounded_to(exponent.value(), self.scalar_type())}});
  }
  check_power(self, exponent);
  return binary_inplace(rule<pointwise::Pow>(), self, nullptr, exponent, {});
}

}  // namespace tenon::ops

namespace tenon {

Tensor pow(const Scalar& base, const Tensor& exponent) {
  TENON_AUTOCAST(pow, base, exponent)
  // Contiguous, as PyTorch's: no operand but a number decides.
  return ops::binary(ops::rule<pointwise::Pow>(), exponent.contiguous(), base, ops::number_on_the_left());
}

}  // namespace tenon
