// Symbolic: a tensor or a number, in which the slopes of pointwise rows are evaluated when their result must be
// differentiable itself. It has the operators and functions that slopes use.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon::ops {

struct Symbolic {
  Tensor tensor;  ///< undefined: a number
  double number = 0;

  Symbolic() = default;
  Symbolic(double value) : number(value) {}             // NOLINT
  Symbolic(Tensor value) : tensor(std::move(value)) {}  // NOLINT
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
Symbolic select(const Symbolic& condition, const Symbolic& yes, const Symbolic& no);
Symbolic power(const Symbolic& a, const Symbolic& b);
Symbolic exp(const Symbolic& x);
Symbolic log(const Symbolic& x);
Symbolic log1p(const Symbolic& x);
Symbolic sqrt(const Symbolic& x);
Symbolic abs(const Symbolic& x);
Symbolic sin(const Symbolic& x);
Symbolic cos(const Symbolic& x);
Symbolic sinh(const Symbolic& x);
Symbolic cosh(const Symbolic& x);
Symbolic tanh(const Symbolic& x);
Symbolic erf(const Symbolic& x);
Symbolic trunc(const Symbolic& x);
Symbolic floor(const Symbolic& x);
Symbolic logistic(const Symbolic& x);
Symbolic softplus1(const Symbolic& x);
Symbolic digamma_of(const Symbolic& x);
Symbolic polygamma_of(const Symbolic& n, const Symbolic& x);

}  // namespace tenon::ops
