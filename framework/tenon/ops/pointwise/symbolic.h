// Symbolic: a tensor or a number, in which the slopes of pointwise rows are evaluated when their result must be
// differentiable itself. It has the operators that slopes use, and every row as a function.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon::ops {

struct Symbolic {
  Tensor tensor;  ///< undefined: a number
  double number = 0;

  Symbolic() = default;
  Symbolic(double value) : number(value) {}             // NOLINT
  Symbolic(Tensor value) : tensor(std::move(value)) {}  // NOLINT
  /// Whether it is a number and not a tensor.
  bool is_number() const { return !tensor.defined(); }
};

Symbolic operator+(const Symbolic& a, const Symbolic& b);
Symbolic operator-(const Symbolic& a, const Symbolic& b);
Symbolic operator*(const Symbolic& a, const Symbolic& b);
Symbolic operator/(const Symbolic& a, const Symbolic& b);
Symbolic operator-(const Symbolic& a);
// Comparisons give 0 or 1.
Symbolic operator<(const Symbolic& a, const Symbolic& b);
Symbolic operator<=(const Symbolic& a, const Symbolic& b);
Symbolic operator>(const Symbolic& a, const Symbolic& b);
Symbolic operator>=(const Symbolic& a, const Symbolic& b);
Symbolic operator==(const Symbolic& a, const Symbolic& b);
/// `yes` where the condition is not zero, else `no`.
Symbolic select(const Symbolic& condition, const Symbolic& yes, const Symbolic& no);
/// a to the power of b, one of which is a tensor.
Symbolic power(const Symbolic& a, const Symbolic& b);
/// The largest whole number that is not above a / b; its gradient is 0.
Symbolic divide_floor(const Symbolic& a, const Symbolic& b);
/// log(1 + exp(x)).
Symbolic softplus1(const Symbolic& x);
/// The n-th derivative of digamma, of the number or of the tensor.
Symbolic polygamma(const Symbolic& n, const Symbolic& x);
// Every operator of a row that has no parameters: exp(x), digamma(x), …
#define TENON_UNARY(Row, name, ...)                                                   \
  /** The row's formula of the number, or the operator of that name of the tensor. */ \
  Symbolic name(const Symbolic& x);
#include <tenon/kernel/rows/unary.inl>

}  // namespace tenon::ops
