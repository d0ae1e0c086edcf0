// Comparisons, logic and bits: results of two operands that have no gradient. Declared in pointwise.h.
#include <tenon/kernel/pointwise.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

namespace tenon::ops {
namespace {

Tensor compare(OperatorId op, const char* text, const Tensor& a, const Tensor& b) {
  if (!(a.device() == b.device())) {
    if (is_foreign_number(b, a)) return compare(op, text, a, b.to(a.device(), b.scalar_type()));
    if (is_foreign_number(a, b)) return compare(op, text, a.to(b.device(), a.scalar_type()), b);
    check_same_device(text, {&a, &b});
  }
  NoGradGuard no_grad;
  const Dtype dtype = result_type(a, b);
  const Operands operands(text, a, b, dtype);
  Tensor result = allocate_result(operands.left, &operands.right, operands.sizes, Dtype::kBool);
  compute(op, result, operands.left, operands.right, BinaryAttributes{});
  return result;
}

Tensor compare(OperatorId op, const char*, const Tensor& a, const Scalar& b, ScalarSide side = ScalarSide::kRight) {
  NoGradGuard no_grad;
  const Dtype dtype = result_type(a, b);
  BinaryAttributes attributes;
  attributes.scalar = rounded_to(operand_of(b, dtype), dtype);
  attributes.scalar_side = side;
  Tensor owner;
  const Tensor& operand = converted(a, dtype, owner);
  Tensor result = allocate_result(operand, nullptr, a.impl().sizes(), Dtype::kBool);
  compute(op, result, operand, attributes);
  return result;
}

template <class Row>
Tensor bitwise(const Tensor& a, const Tensor& b) {
  check_same_device(Row::name, {&a, &b});
  const Dtype dtype = result_type(a, b);
  if (is_floating_point(dtype))
    throw Error(std::string("\"") + Row::name + "\" not implemented for '" + toString(dtype) + "'");
  const Operands operands(Row::name, a, b, dtype);
  Tensor result = allocate_result(operands.left, &operands.right, operands.sizes, dtype);
  compute(intern_operator(Row::name), result, operands.left, operands.right, BinaryAttributes{});
  return result;
}

template <class Row>
Tensor bitwise(const Tensor& a, const Scalar& b) {
  const Dtype dtype = result_type(a, b);
  if (is_floating_point(dtype))
    throw Error(std::string("\"") + Row::name + "\" not implemented for '" + toString(dtype) + "'");
  Tensor owner;
  const Tensor& operand = converted(a, dtype, owner);
  BinaryAttributes attributes;
  attributes.scalar = operand_of(b, dtype);
  attributes.scalar_side = ScalarSide::kRight;
  Tensor result = allocate_result(operand, nullptr, a.impl().sizes(), dtype);
  compute(intern_operator(Row::name), result, operand, attributes);
  return result;
}

}  // namespace
}  // namespace tenon::ops

namespace tenon {

using namespace ops;

#define TENON_OUT_OF_TWO(rule, name)                                                  \
  Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other) {          \
    const auto function = [](const Tensor& a, const Tensor& b) { return a.name(b); }; \
    return detail::into(rule, #name, out, function, self, other);                     \
  }                                                                                   \
  Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other) {          \
    return detail::into(                                                              \
        rule, #name, out, [&](const Tensor& a) { return a.name(other); }, self);      \
  }
#define TENON_COMPARISON(Row, name, ...)                                               \
  Tensor name(const Tensor& self, const Tensor& other) {                               \
    TENON_SCOPE(name, self, other)                                                     \
    return compare(TENON_OP(#name), #name, self, other);                               \
  }                                                                                    \
  Tensor name(const Tensor& self, const Scalar& other) {                               \
    TENON_SCOPE(name, self, other)                                                     \
    return compare(TENON_OP(#name), #name, self, other);                               \
  }                                                                                    \
  Tensor Tensor::name(const Tensor& other) const { return tenon::name(*this, other); } \
  Tensor Tensor::name(const Scalar& other) const { return tenon::name(*this, other); } \
  Tensor& Tensor::name##_(const Tensor& other) const {                                 \
    TENON_SCOPE(name##_, *this, other)                                                 \
    return copy_(tenon::name(detach(), other));                                        \
  }                                                                                    \
  Tensor& Tensor::name##_(const Scalar& other) const {                                 \
    TENON_SCOPE(name##_, *this, other)                                                 \
    return copy_(tenon::name(detach(), other));                                        \
  }                                                                                    \
  TENON_OUT_OF_TWO(detail::without_gradient(detail::out_rules::kCastable), name)
#define TENON_BITWISE(Row, name, ...)                                                  \
  Tensor name(const Tensor& self, const Tensor& other) {                               \
    TENON_SCOPE(name, self, other)                                                     \
    return bitwise<pointwise::Row>(self, other);                                       \
  }                                                                                    \
  Tensor name(const Tensor& self, const Scalar& other) {                               \
    TENON_SCOPE(name, self, other)                                                     \
    return bitwise<pointwise::Row>(self, other);                                       \
  }                                                                                    \
  Tensor Tensor::name(const Tensor& other) const { return tenon::name(*this, other); } \
  Tensor Tensor::name(const Scalar& other) const { return tenon::name(*this, other); } \
  Tensor& Tensor::name##_(const Tensor& other) const {                                 \
    TENON_SCOPE(name##_, *this, other)                                                 \
    return overwrite(#name, *this, bitwise<pointwise::Row>(*this, other));             \
  }                                                                                    \
  Tensor& Tensor::name##_(const Scalar& other) const {                                 \
    TENON_SCOPE(name##_, *this, other)                                                 \
    return overwrite(#name, *this, bitwise<pointwise::Row>(*this, other));             \
  }                                                                                    \
  TENON_OUT_OF_TWO(detail::out_rules::kCastable, name)
#include <tenon/kernel/rows/relations.inl>
#undef TENON_OUT_OF_TWO

bool equal(const Tensor& self, const Tensor& other) {
  TENON_SCOPE(equal, self, other)
  check_same_device("equal", {&self, &other});
  check_has_values("equal", self, "its result");
  if (self.sizes() != other.sizes()) return false;
  NoGradGuard no_grad;
  return self.eq(other).all().item<bool>();
}
bool Tensor::equal(const Tensor& other) const { return tenon::equal(*this, other); }

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TENON_SCOPE(isclose, self, other, rtol, atol, equal_nan)
  NoGradGuard no_grad;
  if (rtol < 0) throw Error("rtol must be greater than or equal to zero, but got " + std::to_string(rtol));
  if (atol < 0) throw Error("atol must be greater than or equal to zero, but got " + std::to_string(atol));
  if (self.scalar_type() != other.scalar_type()) {
    throw Error(std::string(toString(self.scalar_type())) + " did not match " + toString(other.scalar_type()));
  }
  Tensor close = self.eq(other);
  if (equal_nan && self.is_floating_point()) close = close.logical_or(self.isnan().logical_and(other.isnan()));
  if (rtol == 0 && atol == 0) return close;
  const Dtype dtype = self.is_floating_point() ? self.scalar_type() : floating_default("isclose");
  const Tensor a = self.to(dtype);
  const Tensor b = other.to(dtype);
  const Tensor difference = (a - b).abs();
  return close.logical_or(difference.isfinite().logical_and(difference.le(b.mul(rtol).abs().add(atol))));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TENON_SCOPE(allclose, self, other, rtol, atol, equal_nan)
  check_has_values("allclose", self, "its result");
  return isclose(self, other, rtol, atol, equal_nan).all().item<bool>();
}
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tenon::isclose(*this, other, rtol, atol, equal_nan);
}
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tenon::allclose(*this, other, rtol, atol, equal_nan);
}

}  // namespace tenon
