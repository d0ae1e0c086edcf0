// Remainders and quotients of floats. See math.h.
#pragma once

#include "kernels/pointwise/math_pieces.h"

namespace tenon::cpu::TENON_CPU_LEVEL::math {

inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
#if defined(__FMA__)
/// Exact: each step takes 52 bits of the quotient, which has at most 277, and r, a multiple of b's last bit or a's, is
/// no longer than a double.
inline float fmod(float a, float b) {
  const double dividend = static_cast<double>(absolute(a)), divisor = static_cast<double>(absolute(b));
  const double inverse = 1.0 / divisor;
  const auto step = [&](double r) { return mad(-__builtin_trunc(r * inverse), divisor, r); };
  double r = step(step(step(step(step(step(dividend))))));  // no loop, which would keep elements from being vectors
  r = r < 0.0 ? r + divisor : r;
  r = r >= divisor ? r - divisor : r;
  const float value = with_sign_of(static_cast<float>(r), a);
  const float finite = dividend < divisor ? a : value;  // an infinite divisor, too
  return a != a || b != b ? a + b : finite;
}
#else
inline float fmod(float a, float b) { return __builtin_fmodf(a, b); }
#endif

inline float copysign(float a, float b) { return with_sign_of(a, b); }
inline double copysign(double a, double b) { return __builtin_copysign(a, b); }

// As in kernel/pointwise_helpers.inl, by choices in place of branches.

/// Python's modulo: the sign of b.
template <class T>
inline T remainder_floor(T a, T b) {
  const T r = fmod(a, b);
  return r != T(0) && ((r < T(0)) != (b < T(0))) ? r + b : r;
}

/// Python's floor division, exact where the quotient rounds up to an integer.
template <class T>
inline T divide_floor(T a, T b) {
  const T rest = fmod(a, b);
  const T near = (a - rest) / b;
  const T quotient = rest != T(0) && ((b < T(0)) != (rest < T(0))) ? near - T(1) : near;
  const T below = sizeof(T) == 4 ? T(__builtin_floorf(float(quotient))) : T(__builtin_floor(double(quotient)));
  const T floored = quotient - below > T(0.5) ? below + T(1) : below;
  const T value = quotient == T(0) ? copysign(T(0), a / b) : floored;
  return b == T(0) ? a / b : value;
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
