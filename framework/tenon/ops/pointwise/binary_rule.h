// How a binary operator fits the general scheme: its kernel, what its slopes read, and its gradients.
#pragma once

#include <tenon/kernel/pointwise.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/unary.h>
#include <tenon/ops/support/symbolic.h>

#include <type_traits>

namespace tenon::ops {

/// How an operator fits the general scheme.
struct BinaryRule {
  OperatorId op;
  const char* text;
  const char* node_name;
  bool integers = true;  ///< false: integers become the default dtype
  /// Which operands the slopes read: none (add), only the partner's (mul), the divisor always (div), or all.
  enum class Reads { kNone, kPartner, kDivisor, kAll } reads = Reads::kAll;
  bool saves() const { return reads != Reads::kNone; }
  /// Gradients of a and b from the result's; either may be undefined (a number).
  void (*gradient)(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) = nullptr;
};

inline Dtype compute_dtype(const BinaryRule& rule, Dtype promoted) {
  return !rule.integers && !is_floating_point(promoted) ? floating_default(rule.text) : promoted;
}

/// Whether operand `side` must be saved, given whose gradients are wanted.
inline bool must_save(const BinaryRule& rule, int side, bool left_wanted, bool right_wanted, bool partner_is_number) {
  switch (rule.reads) {
    case BinaryRule::Reads::kNone:
      return false;
    case BinaryRule::Reads::kPartner:
      return !partner_is_number && (side == 0 ? right_wanted : left_wanted);
    case BinaryRule::Reads::kDivisor:
      return side == 1 || (!partner_is_number && right_wanted);
    default:
      return true;
  }
}

// --- gradients of the four that everything uses, as PyTorch writes them ---------------------------------------------
// A gradient is reduced to its operand's sizes by the engine where the shapes differ (validate), which also converts
// dtypes.

inline Tensor scaled(const Tensor& gradient, const ScalarValue& alpha) {
  return alpha.real == 1 ? gradient : gradient.mul(Scalar(alpha.real));
}

inline void add_gradient(Backward& b, const Tensor&, const Tensor&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, attributes.scalar_side == ScalarSide::kLeft ? b.grad() : scaled(b.grad(), attributes.alpha));
  if (b.needs(0)) b.set(0, b.take_grad());
}

inline void sub_gradient(Backward& b, const Tensor&, const Tensor&, const BinaryAttributes& attributes) {
  if (b.needs(1)) b.set(1, scaled(b.grad(), attributes.alpha).neg());
  if (b.needs(0)) b.set(0, b.take_grad());
}

inline void mul_gradient(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) {
  const auto times = [&](const Tensor& other) {
    return other.defined() ? b.grad().mul(other) : b.grad().mul(Scalar(attributes.scalar.real));
  };
  if (b.needs(0)) b.set(0, times(right));
  if (b.needs(1)) b.set(1, times(left));
}

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

/// Any other row: slopes evaluated on tensors.
template <class Row>
void row_gradient(Backward& b, const Tensor& left, const Tensor& right, const BinaryAttributes& attributes) {
  const Symbolic x = left.defined() ? Symbolic(left) : Symbolic(attributes.scalar.real);
  const Symbolic y = right.defined() ? Symbolic(right) : Symbolic(attributes.scalar.real);
  Symbolic result;  // recomputed: saving it too would cost memory for rows whose slopes do not read it
  if constexpr (std::is_same_v<Row, pointwise::Pow>) {
    result = power(x, y);
  } else if constexpr (std::is_same_v<Row, pointwise::Hypot>) {
    result = sqrt(x * x + y * y);
  } else if constexpr (std::is_same_v<Row, pointwise::LogAddExp>) {
    result = x.is_number()   ? Symbolic(logaddexp(y.tensor, Scalar(x.number)))
             : y.is_number() ? Symbolic(logaddexp(x.tensor, Scalar(y.number)))
                             : Symbolic(logaddexp(x.tensor, y.tensor));
  } else if constexpr (std::is_same_v<Row, pointwise::Copysign>) {
    result = y.is_number() ? Symbolic(copysign(x.tensor, Scalar(y.number))) : Symbolic(copysign(x.tensor, y.tensor));
  }
  const auto product = [&](const Symbolic& slope) {
    if (slope.is_number() && slope.number == 0) return b.grad().new_zeros(b.grad().sizes());
    return slope.is_number() && slope.number == 1 ? b.grad() : (Symbolic(b.grad()) * slope).tensor;
  };
  if (b.needs(0)) b.set(0, product(Row::template slope_a<Symbolic>(x, y, result)));
  if (b.needs(1)) b.set(1, product(Row::template slope_b<Symbolic>(x, y, result)));
}

template <class Row>
BinaryRule make_rule() {
  BinaryRule rule{intern_operator(Row::name), Row::name, backward_name(Row::name)};
  rule.integers = Row::kIntegers;
  rule.gradient = &row_gradient<Row>;
  if constexpr (std::is_same_v<Row, pointwise::Add>) {
    rule.gradient = &add_gradient;
    rule.reads = BinaryRule::Reads::kNone;
  } else if constexpr (std::is_same_v<Row, pointwise::Sub>) {
    rule.gradient = &sub_gradient;
    rule.reads = BinaryRule::Reads::kNone;
  } else if constexpr (std::is_same_v<Row, pointwise::Mul>) {
    rule.gradient = &mul_gradient;
    rule.reads = BinaryRule::Reads::kPartner;
  } else if constexpr (std::is_same_v<Row, pointwise::Div>) {
    rule.gradient = &div_gradient;
    rule.reads = BinaryRule::Reads::kDivisor;
  }
  return rule;
}

template <class Row>
const BinaryRule& rule() {
  static const BinaryRule made = make_rule<Row>();
  return made;
}

}  // namespace tenon::ops
