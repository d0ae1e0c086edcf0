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
  // As a choice, which becomes one of vectors; the conversion would not.
  explicit constexpr Real(bool value) : v(value ? T(1) : T(0)) {}

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
  TENON_C_LIBRARY_FUNCTIONS(TENON_REAL_FUNCTION)
  TENON_BESSEL_FUNCTIONS(TENON_REAL_FUNCTION)
  TENON_OWN_FUNCTIONS(TENON_REAL_FUNCTION)
  TENON_OWN_OF_FLOAT_FUNCTIONS(TENON_REAL_FUNCTION)
#undef TENON_REAL_FUNCTION
  friend Real abs(Real x) { return Real(math::absolute(x.v)); }
  friend Real atan2(Real a, Real b) { return Real(math::atan2(a.v, b.v)); }
  friend Real hypot(Real a, Real b) { return Real(math::hypot(a.v, b.v)); }
  friend Real copysign(Real a, Real b) { return Real(math::copysign(a.v, b.v)); }

  // By reference: a copy of a parameter would be one of memory, which no loop of vectors takes.
  friend Real select(bool condition, const Real& yes, const Real& no) { return Real(condition ? yes.v : no.v); }

  // Those of pointwise_helpers.inl that math.h does better.
  friend Real sigmoid(Real x) { return Real(math::sigmoid(x.v)); }
  friend Real softplus1(Real x) { return log1p(exp(x)); }
  friend Real power(Real a, Real b) { return Real(math::pow(a.v, b.v)); }
  friend Real remainder_c(Real a, Real b) { return Real(math::fmod(a.v, b.v)); }
  friend Real remainder_floor(Real a, Real b) { return Real(math::remainder_floor(a.v, b.v)); }
  friend Real divide_trunc(Real a, Real b) { return trunc(a / b); }
  friend Real divide_floor(Real a, Real b) { return Real(math::divide_floor(a.v, b.v)); }
  friend Real log_add_exp(Real a, Real b) {
    const Real high = select(a > b, a, b), low = select(a > b, b, a);
    const Real value = high + softplus1(low - high);
    return select(a == b && abs(a) == Real(__builtin_inff()), a, value);  // both the same infinity
  }
  friend Real erfinv(Real x) {
    if constexpr (sizeof(T) == 4)
      return Real(math::erfinv(x.v));
    else
      return Real(pointwise::erfinv(x.v));
  }
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
