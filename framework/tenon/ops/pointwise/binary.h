// How a binary operator fits the general scheme: its kernel, what its slopes read, and its gradients.
#pragma once

#include <tenon/kernel/pointwise.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/symbolic.h>
#include <tenon/ops/pointwise/unary.h>

namespace tenon::ops {

/// Whose gradients are wanted, and whether one of the operands is a number.
struct Wanted {
  bool left, right, has_number;
};
/// What is saved of an operator; of numbers nothing is, whatever it says.
struct SavedParts {
  bool left = false, right = false, result = false;
};
/// What a backward formula has of it: undefined where it is a number, or was not saved.
struct SavedOperands {
  Tensor left, right, result;
};

/// How an operator fits the general scheme.
struct BinaryRule {
  OperatorId op;
  const char* text;
  const char* node_name;
  pointwise::Integers integers;
  /// What is saved where these gradients are wanted.
  SavedParts (*saves)(const Wanted& wanted);
  /// Gradients of a and b; either may be a number.
  void (*gradient)(Backward& b, const SavedOperands& saved, const BinaryAttributes& attributes);
};

/// The rule of a row.
template <class Row>
const BinaryRule& rule();

// binary.cpp. With scalar_side == kLeft the number is the first operand.
/// The operator of a rule on two tensors: promoted, broadcast, recorded. Throws Error for tensors on different devices,
/// sizes that do not broadcast, and dtypes that the rule refuses.
Tensor binary(const BinaryRule& rule, const Tensor& a, const Tensor& b, const BinaryAttributes& attributes = {});
Tensor binary(const BinaryRule& rule, const Tensor& a, const Scalar& b, BinaryAttributes attributes = {});
/// Into self: with another tensor, or where `other` is null with a number. Throws Error where the result does not fit
/// self, or self may not be written to.
Tensor& binary_inplace(const BinaryRule& rule, const Tensor& self, const Tensor* other, const Scalar& number,
                       BinaryAttributes attributes);

/// Attributes of `number op tensor`.
inline BinaryAttributes number_on_the_left() {
  BinaryAttributes attributes;
  attributes.scalar_side = ScalarSide::kLeft;
  return attributes;
}

/// The dtype that a binary operator computes integers of the promoted dtype in, where its kernel has none for them.
inline Dtype dtype_of_integers(const BinaryRule& rule, Dtype promoted) {
  if (rule.integers == pointwise::Integers::kConverted) return floating_default(rule.text);
  throw Error(std::string("\"") + rule.text + "_cpu\" not implemented for '" + toString(promoted) + "'");
}
/// The dtype in which the kernel computes.
inline Dtype compute_dtype(const BinaryRule& rule, Dtype promoted) {
  return is_floating_point(promoted) || pointwise::computes(rule.integers) ? promoted
                                                                           : dtype_of_integers(rule, promoted);
}

/// What the slopes of a row read that are wanted. Where PyTorch does not save an operand, this does not: it may be
/// written to.
template <class Row>
SavedParts saves_of(const Wanted& wanted) {
  switch (Row::kReads) {
    case pointwise::Reads::kNothing:
      return {};
    case pointwise::Reads::kPartner:
      return {!wanted.has_number && wanted.right, !wanted.has_number && wanted.left};
    case pointwise::Reads::kDivisor:
      return {!wanted.has_number && wanted.right, true};
    default:
      return {true, true};
  }
}
template <>
inline SavedParts saves_of<pointwise::Fmod>(const Wanted& wanted) {
  return {wanted.right, wanted.right};
}
template <>
inline SavedParts saves_of<pointwise::Remainder>(const Wanted& wanted) {
  return {wanted.right, wanted.right};
}
template <>
inline SavedParts saves_of<pointwise::FloorDivide>(const Wanted&) {
  return {};
}
template <>
inline SavedParts saves_of<pointwise::TruncDivide>(const Wanted&) {
  return {};
}
/// Of two operands that are wanted the result is computed again: saving it too would cost memory.
template <>
inline SavedParts saves_of<pointwise::Hypot>(const Wanted& wanted) {
  if (wanted.has_number || (wanted.left && wanted.right)) return {true, true};
  return {wanted.left, wanted.right, true};
}
template <>
inline SavedParts saves_of<pointwise::Copysign>(const Wanted& wanted) {
  return {wanted.left, false, wanted.left && !wanted.has_number};
}
template <>
inline SavedParts saves_of<pointwise::Ldexp>(const Wanted& wanted) {
  return {false, wanted.left, wanted.right};
}

// --- gradients of the four that everything uses, as PyTorch writes them ---------------------------------------------
// A gradient is reduced to its operand's sizes by the engine where the shapes differ (validate), which also converts
// dtypes.

/// The gradient times alpha.
inline Tensor scaled(const Tensor& gradient, const ScalarValue& alpha) {
  return alpha.real == 1 ? gradient : gradient.mul(Scalar(alpha.real));
}

/// Backward of the operator of that name; so for the other three.
inline void add_gradient(Backward& b, const SavedOperands&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, attributes.scalar_side == ScalarSide::kLeft ? b.grad() : scaled(b.grad(), attributes.alpha));
  if (b.needs(0)) b.set(0, b.take_grad());
}

/// See add_gradient().
inline void sub_gradient(Backward& b, const SavedOperands&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, scaled(b.grad(), attributes.alpha).neg());
  if (b.needs(0)) b.set(0, b.take_grad());
}

/// See add_gradient().
inline void mul_gradient(Backward& b, const SavedOperands& saved, const BinaryAttributes& attributes) {
  const Tensor &left = saved.left, &right = saved.right;
  const auto times = [&](const Tensor& other) {
    return other.defined() ? b.grad().mul(other) : b.grad().mul(Scalar(attributes.scalar.real));
  };
  if (b.needs(0)) b.set(0, times(right));
  if (b.needs(1)) b.set(1, times(left));
}

/// See add_gradient().
inline void div_gradient(Backward& b, const SavedOperands& saved, const BinaryAttributes& attributes) {
  const Tensor &left = saved.left, &right = saved.right;
  if (attributes.scalar_side == ScalarSide::kRight) {
    b.set(0, b.grad().div(Scalar(attributes.scalar.real)));
    return;
  }
  if (b.needs(0)) b.set(0, b.grad().div(right));
  if (b.needs(1)) {
    const Tensor quotient = left.defined() ? left.div(right) : right.reciprocal().mul(Scalar(attributes.scalar.real));
    b.set(1, b.grad().mul(quotient.div(right)).neg());
  }
}

/// The operator itself, of tensors or numbers.
template <class Row>
Symbolic result_of(const Symbolic& x, const Symbolic& y) {
  if (x.is_number()) return binary(rule<Row>(), y.tensor, Scalar(x.number), number_on_the_left());
  return y.is_number() ? binary(rule<Row>(), x.tensor, Scalar(y.number)) : binary(rule<Row>(), x.tensor, y.tensor);
}

/// Any other row: slopes evaluated on tensors.
template <class Row>
void row_gradient(Backward& b, const SavedOperands& saved, const BinaryAttributes& attributes) {
  const Symbolic x = saved.left.defined() ? Symbolic(saved.left) : Symbolic(attributes.scalar.real);
  const Symbolic y = saved.right.defined() ? Symbolic(saved.right) : Symbolic(attributes.scalar.real);
  Symbolic result = saved.result;
  if constexpr (Row::kReads == pointwise::Reads::kResult) {
    const bool has_left = saved.left.defined() || attributes.scalar_side == ScalarSide::kLeft;
    const bool has_right = saved.right.defined() || attributes.scalar_side == ScalarSide::kRight;
    const bool has_both = has_left && has_right && !(x.is_number() && y.is_number());
    if (!saved.result.defined() && has_both) result = result_of<Row>(x, y);
  }
  const auto product = [&](const Symbolic& slope) {
    if (slope.is_number() && slope.number == 0) return b.grad().new_zeros(b.grad().sizes());
    return slope.is_number() && slope.number == 1 ? b.grad() : (Symbolic(b.grad()) * slope).tensor;
  };
  if (b.needs(0)) b.set(0, product(Row::template slope_a<Symbolic>(x, y, result)));
  if (b.needs(1)) b.set(1, product(Row::template slope_b<Symbolic>(x, y, result)));
}

template <class Row>
inline constexpr auto kGradient = &row_gradient<Row>;
template <>
inline constexpr auto kGradient<pointwise::Add> = &add_gradient;
template <>
inline constexpr auto kGradient<pointwise::Sub> = &sub_gradient;
template <>
inline constexpr auto kGradient<pointwise::Mul> = &mul_gradient;
template <>
inline constexpr auto kGradient<pointwise::Div> = &div_gradient;

template <class Row>
const BinaryRule& rule() {
  static const BinaryRule made{.op = intern_operator(Row::name),
                               .text = Row::name,
                               .node_name = backward_name(Row::name),
                               .integers = Row::kIntegers,
                               .saves = &saves_of<Row>,
                               .gradient = kGradient<Row>};
  return made;
}

}  // namespace tenon::ops
