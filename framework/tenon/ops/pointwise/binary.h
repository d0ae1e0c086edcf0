// How a binary operator fits the general scheme: its kernel, what its slopes read, and its gradients.
#pragma once

#include <tenon/kernel/pointwise.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/symbolic.h>
#include <tenon/ops/pointwise/unary.h>

namespace tenon::ops {

/// How an operator fits the general scheme.
struct BinaryRule {
  OperatorId op;
  const char* text;
  const char* node_name;
  pointwise::Reads reads;
  pointwise::Integers integers;
  /// Gradients of a and b; either may be undefined (a number).
  void (*gradient)(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes);
  /// Whether the gradient reads an operand.
  bool saves() const { return reads != pointwise::Reads::kNothing; }
};

/// The rule of a row.
template <class Row>
const BinaryRule& rule();

// binary.cpp. With scalar_side == kLeft the number is the first operand.
/// The operator of a rule on two tensors: promoted, broadcast, recorded. Throws Error for tensors on different devices,
/// sizes that do not broadcast, and dtypes that the rule refuses.
Tensor binary(const BinaryRule& rule, const Tensor& a, const Tensor& b, const BinaryAttributes& attributes = {});
Tensor binary(const BinaryRule& rule, const Tensor& a, const Scalar& b, BinaryAttributes attributes = {});

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

/// Whether operand `side` must be saved, given whose gradients are wanted.
inline bool must_save(const BinaryRule& rule, int side, bool left_wanted, bool right_wanted, bool partner_is_number) {
  switch (rule.reads) {
    case pointwise::Reads::kNothing:
      return false;
    case pointwise::Reads::kPartner:
      return !partner_is_number && (side == 0 ? right_wanted : left_wanted);
    case pointwise::Reads::kDivisor:
      return side == 1 || (!partner_is_number && right_wanted);
    default:
      return true;
  }
}

// --- gradients of the four that everything uses, as PyTorch writes them ---------------------------------------------
// A gradient is reduced to its operand's sizes by the engine where the shapes differ (validate), which also converts
// dtypes.

/// The gradient times alpha.
inline Tensor scaled(const Tensor& gradient, const ScalarValue& alpha) {
  return alpha.real == 1 ? gradient : gradient.mul(Scalar(alpha.real));
}

/// Backward of the operator of that name; so for the other three.
inline void add_gradient(Backward& b, const Tensor&, const Tensor&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, attributes.scalar_side == ScalarSide::kLeft ? b.grad() : scaled(b.grad(), attributes.alpha));
  if (b.needs(0)) b.set(0, b.take_grad());
}

/// See add_gradient().
inline void sub_gradient(Backward& b, const Tensor&, const Tensor&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, scaled(b.grad(), attributes.alpha).neg());
  if (b.needs(0)) b.set(0, b.take_grad());
}

/// See add_gradient().
inline void mul_gradient(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) {
  const auto times = [&](const Tensor& other) {
    return other.defined() ? b.grad().mul(other) : b.grad().mul(Scalar(attributes.scalar.real));
  };
  if (b.needs(0)) b.set(0, times(right));
  if (b.needs(1)) b.set(1, times(left));
}

/// See add_gradient().
inline void div_gradient(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) {
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
void row_gradient(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) {
  const Symbolic x = left.defined() ? Symbolic(left) : Symbolic(attributes.scalar.real);
  const Symbolic y = right.defined() ? Symbolic(right) : Symbolic(attributes.scalar.real);
  Symbolic result;
  // Computed again: saving it too would cost memory.
  if constexpr (Row::kReads == pointwise::Reads::kResult) result = result_of<Row>(x, y);
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
                               .reads = Row::kReads,
                               .integers = Row::kIntegers,
                               .gradient = kGradient<Row>};
  return made;
}

}  // namespace tenon::ops
