// Binary pointwise operators: promotion, broadcasting, numbers as operands, and gradients from the rows' slopes.
#include <tenon/autograd/kept_results.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/pointwise/binary.h>
#include <tenon/ops/pointwise/number_operand.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/power.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

namespace tenon::ops {
namespace {

template <std::size_t kSlots>
Recording record_slots(const BinaryRule& rule, const Tensor& a, const Tensor& b, const BinaryAttributes& attributes,
                       const SavedParts& saves) {
  return record<kSlots>(rule.node_name, {&a, &b}, [&rule, attributes, saves](Backward& backward) {
    SavedOperands saved;
    if (saves.left) saved.left = backward.saved(0);
    if (saves.right) saved.right = backward.saved(1);
    if (kSlots > 2) saved.result = backward.saved(2);
    rule.gradient(backward, saved, attributes);
  });
}
/// The recorded part of a binary operator.
Recording record_binary(const BinaryRule& rule, const Tensor& a, const Tensor& b, const BinaryAttributes& attributes,
                        const SavedParts& saves) {
  return saves.result ? record_slots<3>(rule, a, b, attributes, saves) : record_slots<2>(rule, a, b, attributes, saves);
}

}  // namespace

Tensor binary(const BinaryRule& rule, const Tensor& a, const Scalar& b, BinaryAttributes attributes) {
  const Dtype dtype = compute_dtype(rule, result_type(a, b));
  attributes.scalar = number_of(rule, b, dtype);
  if (attributes.scalar_side == ScalarSide::kNone) attributes.scalar_side = ScalarSide::kRight;
  const bool left = attributes.scalar_side == ScalarSide::kLeft;
  const Tensor none;
  const SavedParts saves = rule.saves({.left = !left, .right = left, .has_number = true});
  Recording recording =
      left ? record_binary(rule, none, a, attributes, saves) : record_binary(rule, a, none, attributes, saves);
  if (recording && (left ? saves.right : saves.left)) recording.save(left ? 1 : 0, a);
  Tensor owner;
  const Tensor& operand = converted(a, dtype, owner);
  Tensor result;
  autograd::computed_once(rule.text, {&result}, [&] {
    result = allocate_result(operand, nullptr, a.impl().sizes(), dtype);
    compute(rule.op, result, operand, attributes);
  });
  recording.output(result);
  return result;
}

Tensor binary(const BinaryRule& rule, const Tensor& a, const Tensor& b, const BinaryAttributes& attributes) {
  if (!(a.device() == b.device())) {
    if (is_foreign_number(b, a)) return binary(rule, a, b.to(a.device(), b.scalar_type()), attributes);
    if (is_foreign_number(a, b)) return binary(rule, a.to(b.device(), a.scalar_type()), b, attributes);
    check_same_device(rule.text, {&a, &b});
  }
  const Dtype dtype = compute_dtype(rule, result_type(a, b));
  const Operands operands(rule.text, a, b, dtype);
  Recording recording;
  SavedParts saves;
  if (must_record({&a, &b})) {
    saves = rule.saves({autograd::requires_grad(a), autograd::requires_grad(b), false});
    recording = record_binary(rule, a, b, attributes, saves);
    if (saves.left) recording.save(0, a);
    if (saves.right) recording.save(1, b);
  }
  Tensor result;
  autograd::computed_once(rule.text, {&result}, [&] {
    result = allocate_result(operands.left, &operands.right, operands.sizes, dtype);
    compute_pair(rule, result, operands.left, b, operands.right, attributes);
  });
  recording.output(result);
  if (saves.result) recording.save_output(2, result);
  return result;
}

Tensor& binary_inplace(const BinaryRule& rule, const Tensor& self, const Tensor* other, const Scalar& number,
                       BinaryAttributes attributes) {
  Tensor& handle = const_cast<Tensor&>(self);
  autograd::check_inplace(self, other && autograd::requires_grad(*other));
  check_written(self);
  if (other && !(other->device() == self.device())) {
    if (!is_foreign_number(*other, self)) check_same_device(rule.text, {&self, other});
    const Tensor moved = other->to(self.device(), other->scalar_type());
    return binary_inplace(rule, self, &moved, number, attributes);
  }
  const Dtype dtype = compute_dtype(rule, other ? result_type(self, *other) : result_type(self, number));
  check_castable(rule.text, dtype, self.scalar_type());
  if (other) check_inplace_sizes(self, broadcast_for(rule.text, self.impl().sizes(), other->impl().sizes()));
  if (!other) {
    attributes.scalar = number_of(rule, number, dtype);
    attributes.scalar_side = ScalarSide::kRight;
  }
  const Tensor none;
  const SavedParts saves =
      rule.saves({autograd::requires_grad(self), other && autograd::requires_grad(*other), other == nullptr});
  Recording recording = record_binary(rule, self, other ? *other : none, attributes, saves);
  if (recording) {
    if (saves.left) recording.save(0, saved_self(self));
    if (other && saves.right) recording.save(1, saved_operand(*other, self));
  }
  if (dtype == self.scalar_type()) {
    if (other) {
      // An operand that overlaps self, but not element by element, is copied first.
      Tensor right = other->scalar_type() == dtype ? *other : other->to(dtype);
      if (reads_elsewhere_in(right, self)) {
        NoGradGuard no_grad;
        right = right.clone();
      }
      compute_pair(rule, self, self, *other, right, attributes);
    } else {
      compute(rule.op, self, self, attributes);
    }
  } else {
    NoGradGuard no_grad;
    const Tensor left = self.to(dtype);
    if (other) {
      Tensor owner;
      compute_pair(rule, left, left, *other, converted(*other, dtype, owner), attributes);
    } else {
      compute(rule.op, left, left, attributes);
    }
    run(TENON_OP("copy"), state_of(self), {view_of(self)}, {view_of(left)});
  }
  finish_inplace(self, recording);
  if (recording && saves.result) recording.save_output(2, self);
  return handle;
}

namespace {

/// Into a tensor of the caller's, resized where its sizes differ.
Tensor& binary_out(const BinaryRule& rule, Tensor& out, const Tensor& a, const Tensor& b,
                   const BinaryAttributes& attributes = {}) {
  if (autograd::any_requires_grad(out, a, b)) {
    throw Error(std::string(rule.text) +
                "(): functions with out=... arguments don't support automatic differentiation, but one "
                "of the arguments requires grad.");
  }
  autograd::check_inplace(out);
  check_same_device(rule.text, {&out, &a, &b});
  const Dtype dtype = compute_dtype(rule, result_type(a, b));
  check_castable(rule.text, dtype, out.scalar_type());
  const Operands operands(rule.text, a, b, dtype);
  check_written(out);
  if (!(out.impl().sizes() == operands.sizes)) {
    if (out.is_same(a) || out.is_same(b)) check_inplace_sizes(out, operands.sizes);
    const TensorImpl &left = operands.left.impl(), &right = operands.right.impl();
    resize_out(out, operands.sizes,
               result_strides(operands.sizes, {{left.sizes(), left.strides()}, {right.sizes(), right.strides()}}));
  }
  if (dtype == out.scalar_type() && !reads_elsewhere_in(operands.left, out) &&
      !reads_elsewhere_in(operands.right, out)) {
    compute_pair(rule, out, operands.left, b, operands.right, attributes);
  } else {
    const Tensor result = allocate_result(operands.left, &operands.right, operands.sizes, dtype);
    compute_pair(rule, result, operands.left, b, operands.right, attributes);
    run(TENON_OP("copy"), state_of(out), {view_of(out)}, {view_of(result)});
  }
  autograd::impl_bump_version(out);
  return out;
}

void check_subtracts(bool left_is_bool, bool right_is_bool) {
  if (left_is_bool && right_is_bool) {
    throw Error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  }
  if (left_is_bool || right_is_bool) {
    throw Error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.");
  }
}
void check_subtracts(const Tensor& a, const Tensor& b) {
  check_subtracts(a.scalar_type() == Dtype::kBool, b.scalar_type() == Dtype::kBool);
}
void check_subtracts(const Tensor& a, const Scalar& b) {
  check_subtracts(a.scalar_type() == Dtype::kBool, b.isBoolean());
}

}  // namespace
}  // namespace tenon::ops

namespace tenon {

using namespace ops;

Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const {
  TENON_SCOPE(add, *this, other, alpha)
  return binary(rule<pointwise::Add>(), *this, other, with_alpha(alpha, *this, other, "add"));
}
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const {
  TENON_SCOPE(add, *this, other, alpha)
  return binary(rule<pointwise::Add>(), *this, product(*this, other, alpha, "add"));
}
Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const {
  TENON_SCOPE(add_, *this, other, alpha)
  return binary_inplace(rule<pointwise::Add>(), *this, &other, 0, with_alpha(alpha, *this, other, "add_"));
}
Tensor& Tensor::add_(const Scalar& other, const Scalar& alpha) const {
  TENON_SCOPE(add_, *this, other, alpha)
  return binary_inplace(rule<pointwise::Add>(), *this, nullptr, product(*this, other, alpha, "add_"), {});
}
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const {
  TENON_SCOPE(sub, *this, other, alpha)
  check_subtracts(*this, other);
  return binary(rule<pointwise::Sub>(), *this, other, with_alpha_of_difference(alpha, *this, other, "sub"));
}
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const {
  TENON_SCOPE(sub, *this, other, alpha)
  check_subtracts(*this, other);
  return binary(rule<pointwise::Sub>(), *this, product(*this, other, alpha, "sub"));
}
Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const {
  TENON_SCOPE(sub_, *this, other, alpha)
  check_subtracts(*this, other);
  return binary_inplace(rule<pointwise::Sub>(), *this, &other, 0,
                        with_alpha_of_difference(alpha, *this, other, "sub_"));
}
Tensor& Tensor::sub_(const Scalar& other, const Scalar& alpha) const {
  TENON_SCOPE(sub_, *this, other, alpha)
  check_subtracts(*this, other);
  return binary_inplace(rule<pointwise::Sub>(), *this, nullptr, product(*this, other, alpha, "sub_"), {});
}
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) { return self.add(other, alpha); }
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha) { return self.add(other, alpha); }
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) { return self.sub(other, alpha); }
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha) { return self.sub(other, alpha); }

Tensor& add_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  TENON_SCOPE(add, out, self, other, alpha)
  return binary_out(rule<pointwise::Add>(), out, self, other, with_alpha(alpha, self, other, "add"));
}
Tensor& sub_out(Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  TENON_SCOPE(sub, out, self, other, alpha)
  check_subtracts(self, other);
  return binary_out(rule<pointwise::Sub>(), out, self, other, with_alpha_of_difference(alpha, self, other, "sub"));
}
Tensor rsub(const Tensor& self, const Scalar& other) {
  TENON_SCOPE(rsub, self, other)
  check_subtracts(self, other);
  return binary(rule<pointwise::Sub>(), self, other, number_on_the_left());
}

namespace {

/// x op y; cast first where the row of autocast says so.
template <class Row>
Tensor of_both(const Tensor& a, const Tensor& b) {
  constexpr std::size_t row = autocast::place_of(Row::name);
  if constexpr (row < std::size(autocast::kRows)) {
    if (autograd::modes.autocast.kinds != 0) [[unlikely]] {
      const auto again = [](const Tensor& x, const Tensor& y) { return of_both<Row>(x, y); };
      if (const auto cast = autocast::cast_for(autocast::kRows[row], a, b)) return autocast::call(cast, again, a, b);
    }
  }
  return binary(rule<Row>(), a, b);
}

/// x op number, and its in-place form.
template <class Row>
Tensor with_number(const Tensor& self, const Scalar& other) {
  return binary(rule<Row>(), self, other);
}
template <class Row>
Tensor& with_number_inplace(const Tensor& self, const Scalar& other) {
  return binary_inplace(rule<Row>(), self, nullptr, other, {});
}

template <>
Tensor with_number<pointwise::Pow>(const Tensor& self, const Scalar& exponent) {
  return power(self, exponent);
}
template <>
Tensor& with_number_inplace<pointwise::Pow>(const Tensor& self, const Scalar& exponent) {
  return power_inplace(self, exponent);
}

}  // namespace

#define TENON_BINARY(Row, name, ...)                                                                     \
  Tensor Tensor::name(const Tensor& other) const {                                                       \
    TENON_SCOPE(name, *this, other)                                                                      \
    return of_both<pointwise::Row>(*this, other);                                                        \
  }                                                                                                      \
  Tensor Tensor::name(const Scalar& other) const {                                                       \
    TENON_SCOPE(name, *this, other)                                                                      \
    return with_number<pointwise::Row>(*this, other);                                                    \
  }                                                                                                      \
  Tensor& Tensor::name##_(const Tensor& other) const {                                                   \
    TENON_SCOPE(name##_, *this, other)                                                                   \
    return binary_inplace(rule<pointwise::Row>(), *this, &other, 0, {});                                 \
  }                                                                                                      \
  Tensor& Tensor::name##_(const Scalar& other) const {                                                   \
    TENON_SCOPE(name##_, *this, other)                                                                   \
    return with_number_inplace<pointwise::Row>(*this, other);                                            \
  }                                                                                                      \
  Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }                      \
  Tensor name(const Tensor& self, const Scalar& other) { return self.name(other); }                      \
  Tensor& name##_out(Tensor& out, const Tensor& self, const Tensor& other) {                             \
    TENON_SCOPE(name, self, other)                                                                       \
    return binary_out(rule<pointwise::Row>(), out, self, other);                                         \
  }                                                                                                      \
  Tensor& name##_out(Tensor& out, const Tensor& self, const Scalar& other) {                             \
    return detail::into(                                                                                 \
        detail::out_rules::kCastable, #name, out, [&](const Tensor& x) { return x.name(other); }, self); \
  }
#include <tenon/kernel/rows/binary.inl>

Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  TENON_SCOPE(div, self, other, rounding_mode)
  if (!rounding_mode) return self.div(other);
  if (*rounding_mode == "floor") return self.floor_divide(other);
  if (*rounding_mode == "trunc") return binary(rule<pointwise::TruncDivide>(), self, other);
  throw Error("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" +
              std::string(*rounding_mode) + "'");
}
Tensor Tensor::div(const Tensor& other, std::optional<std::string_view> mode) const {
  return tenon::div(*this, other, mode);
}
Tensor Tensor::div(const Scalar& other, std::optional<std::string_view> mode) const {
  TENON_SCOPE(div, *this, other, mode)
  if (mode == "floor") return floor_divide(other);
  if (mode == "trunc") return binary(rule<pointwise::TruncDivide>(), *this, other);
  return tenon::div(*this, wrapped_scalar(other, ops::state_of(*this)), mode);
}

#define TENON_OPERATOR(symbol, name)                                             \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.name(b); } \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.name(b); }
TENON_OPERATOR(+, add)
TENON_OPERATOR(-, sub)
TENON_OPERATOR(*, mul)
TENON_OPERATOR(/, div)
TENON_OPERATOR(%, remainder)
TENON_OPERATOR(==, eq)
TENON_OPERATOR(!=, ne)
TENON_OPERATOR(<, lt)
TENON_OPERATOR(<=, le)
TENON_OPERATOR(>, gt)
TENON_OPERATOR(>=, ge)
TENON_OPERATOR(&, bitwise_and)
TENON_OPERATOR(|, bitwise_or)
TENON_OPERATOR(^, bitwise_xor)

Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
Tensor operator/(const Scalar& a, const Tensor& b) {
  return binary(rule<pointwise::Div>(), b, a, number_on_the_left());
}
Tensor operator%(const Scalar& a, const Tensor& b) {
  return binary(rule<pointwise::Remainder>(), b, a, number_on_the_left());
}
Tensor operator==(const Scalar& a, const Tensor& b) { return b.eq(a); }
Tensor operator!=(const Scalar& a, const Tensor& b) { return b.ne(a); }
Tensor operator<(const Scalar& a, const Tensor& b) { return b.gt(a); }
Tensor operator<=(const Scalar& a, const Tensor& b) { return b.ge(a); }
Tensor operator>(const Scalar& a, const Tensor& b) { return b.lt(a); }
Tensor operator>=(const Scalar& a, const Tensor& b) { return b.le(a); }
Tensor operator&(const Scalar& a, const Tensor& b) { return b.bitwise_and(a); }
Tensor operator|(const Scalar& a, const Tensor& b) { return b.bitwise_or(a); }
Tensor operator^(const Scalar& a, const Tensor& b) { return b.bitwise_xor(a); }

Tensor& Tensor::operator+=(const Tensor& other) { return add_(other); }
Tensor& Tensor::operator+=(const Scalar& other) { return add_(other); }
Tensor& Tensor::operator-=(const Tensor& other) { return sub_(other); }
Tensor& Tensor::operator-=(const Scalar& other) { return sub_(other); }
Tensor& Tensor::operator*=(const Tensor& other) { return mul_(other); }
Tensor& Tensor::operator*=(const Scalar& other) { return mul_(other); }
Tensor& Tensor::operator/=(const Tensor& other) { return div_(other); }
Tensor& Tensor::operator/=(const Scalar& other) { return div_(other); }
Tensor& Tensor::operator&=(const Tensor& other) { return bitwise_and_(other); }
Tensor& Tensor::operator|=(const Tensor& other) { return bitwise_or_(other); }

}  // namespace tenon
