// Real<T>: float or double dressed so that the rows of pointwise.h find the vector functions of math.h by
// argument-dependent look-up, and so that every template instantiated with it belongs to one level.
#pragma once

#define TENON_POINTWISE_LEVEL TENON_CPU_LEVEL
#include <tenon/kernel/pointwise.h>

#include "kernels/pointwise/math.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

template <class T>
struct Real {
  T v;
  Real() = default;
  template <class Number>
  explicit constexpr Real(Number value) : v(static_cast<T>(value)) {}

  friend Real operator+(Real a, Real b) { return Real(a.v + b.v); }
  friend Real operator-(Real a, Real b) { return Real(a.v - b.v); }
  friend Real operator*(Real a, Real b) { return Real(a.v * b.v); }
  friend Real operator/(Real a, Real b) { return Real(a.v / b.v); }
  friend Real operator-(Real a) { return Real(-a.v); }
  friend bool operator<(Real a, Real b) { return a.v < b.v; }
  friend bool operator>(Real a, Real b) { return a.v > b.v; }
  friend bool operator<=(Real a, Real b) { return a.v <= b.v; }
  friend bool operator>=(Real a, Real b) { return a.v >= b.v; }
  friend bool operator==(Real a, Real b) { return a.v == b.v; }
  friend bool operator!=(Real a, Real b) { return a.v != b.v; }

#define TENON_REAL_FUNCTION(name) \
  friend Real name(Real x) { return Real(math::name(x.v)); }
  TENON_REAL_FUNCTION(exp)
  TENON_REAL_FUNCTION(exp2)
  TENON_REAL_FUNCTION(expm1)
  TENON_REAL_FUNCTION(log)
  TENON_REAL_FUNCTION(log2)
  TENON_REAL_FUNCTION(log10)
  TENON_REAL_FUNCTION(log1p)
  TENON_REAL_FUNCTION(sqrt)
  TENON_REAL_FUNCTION(sin)
  TENON_REAL_FUNCTION(cos)
  TENON_REAL_FUNCTION(tan)
  TENON_REAL_FUNCTION(asin)
  TENON_REAL_FUNCTION(acos)
  TENON_REAL_FUNCTION(atan)
  TENON_REAL_FUNCTION(sinh)
  TENON_REAL_FUNCTION(cosh)
  TENON_REAL_FUNCTION(tanh)
  TENON_REAL_FUNCTION(asinh)
  TENON_REAL_FUNCTION(acosh)
  TENON_REAL_FUNCTION(atanh)
  TENON_REAL_FUNCTION(erf)
  TENON_REAL_FUNCTION(erfc)
  TENON_REAL_FUNCTION(ceil)
  TENON_REAL_FUNCTION(floor)
  TENON_REAL_FUNCTION(trunc)
  TENON_REAL_FUNCTION(nearbyint)
  TENON_REAL_FUNCTION(lgamma)
#undef TENON_REAL_FUNCTION
  friend Real abs(Real x) { return Real(math::absolute(x.v)); }
  friend Real atan2(Real a, Real b) { return Real(math::atan2(a.v, b.v)); }
  friend Real hypot(Real a, Real b) { return Real(math::hypot(a.v, b.v)); }
  friend Real copysign(Real a, Real b) { return Real(math::copysign(a.v, b.v)); }

  // The helpers of pointwise.h that name std:: functions.
  friend Real logistic(Real x) { return Real(math::sigmoid(x.v)); }
  friend Real softplus1(Real x) { return log1p(exp(x)); }
  friend Real power(Real a, Real b) { return Real(math::pow(a.v, b.v)); }
  friend Real remainder_c(Real a, Real b) { return Real(math::fmod(a.v, b.v)); }
  friend Real remainder_floor(Real a, Real b) { return Real(pointwise::remainder_floor(a.v, b.v)); }
  friend Real divide_trunc(Real a, Real b) { return trunc(a / b); }
  friend Real divide_floor(Real a, Real b) { return Real(pointwise::divide_floor(a.v, b.v)); }
  friend Real log_add_exp(Real a, Real b) { return Real(pointwise::log_add_exp(a.v, b.v)); }
  friend Real erf_inverse(Real x) { return Real(pointwise::erf_inverse(x.v)); }
  friend Real digamma_of(Real x) { return Real(pointwise::digamma_of(x.v)); }
  friend Real polygamma_of(Real n, Real x) { return Real(pointwise::polygamma_of(n.v, x.v)); }
};

using Real32 = Real<float>;
using Real64 = Real<double>;

}  // namespace tenon::cpu::TENON_CPU_LEVEL

template <class T>
struct std::numeric_limits<tenon::cpu::TENON_CPU_LEVEL::Real<T>> {
  using R = tenon::cpu::TENON_CPU_LEVEL::Real<T>;
  static constexpr bool is_integer = false;
  static constexpr R max() { return R(std::numeric_limits<T>::max()); }
  static constexpr R infinity() { return R(std::numeric_limits<T>::infinity()); }
};
