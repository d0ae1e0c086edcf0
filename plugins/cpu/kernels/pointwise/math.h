// Elementary functions without branches, which the compiler turns into vector code. Float: at most 2 ulp, NaN and
// infinities as in the C library. Double: the C library itself.
//
// The polynomials are minimax fits (Remez, weighted for relative error) of the function's remainder after its first
// terms.
#pragma once

#include <cmath>

#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL::math {

/// a * b + c, in one rounding where the level has the instruction. Chosen at compile time, so that the vector loop and
/// its scalar tail agree to the last bit.
inline float mad(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double mad(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

inline float absolute(float x) { return bits_to_float(float_to_bits(x) & 0x7fffffffu); }
inline double absolute(double x) { return __builtin_fabs(x); }
inline float with_sign_of(float magnitude, float sign) {
  return bits_to_float((float_to_bits(magnitude) & 0x7fffffffu) | (float_to_bits(sign) & 0x80000000u));
}

/// 2^n for -126 <= n <= 127.
inline float power_of_two(i32 n) { return bits_to_float(static_cast<u32>(n + 127) << 23); }

/// e^x = value * 2^n with value near 1.
struct Exponential {
  float value;
  i32 n;
};
inline Exponential exponential(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  const float shifted = mad(x, 1.44269504f, kRound);
  const i32 n = static_cast<i32>(float_to_bits(shifted)) - 0x4b400000;
  const float whole = shifted - kRound;
  float r = mad(whole, -0.693359375f, x);
  r = mad(whole, 2.12194440e-4f, r);
  float q = 1.395047533e-3f;
  q = mad(q, r, 8.368889075e-3f);
  q = mad(q, r, 4.166620605e-2f);
  q = mad(q, r, 1.666651884e-1f);
  q = mad(q, r, 5.000000095e-1f);
  return {mad(q, r * r, r) + 1.0f, n};
}

inline float exp(float x) {
  const float low = x < -104.0f ? -104.0f : x;  // comparisons are false for NaN, which passes through
  const Exponential e = exponential(low > 89.0f ? 89.0f : low);
  // In two steps, so that subnormal results and overflow come out right.
  const i32 half = e.n >> 1;
  return e.value * power_of_two(half) * power_of_two(e.n - half);
}
/// For -80 <= x <= 80, where the result is normal.
inline float exp_normal(float x) {
  const Exponential e = exponential(x);
  return bits_to_float(float_to_bits(e.value) + (static_cast<u32>(e.n) << 23));
}
inline double exp(double x) { return __builtin_exp(x); }

inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const u32 bits = float_to_bits(scaled);
  const i32 e = static_cast<i32>(bits - 0x3f3504f3u) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const float f = bits_to_float(bits - (static_cast<u32>(e) << 23)) - 1.0f;
  const float n = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  float q = -7.85984817e-2f;
  q = mad(q, f, 1.288172321e-1f);
  q = mad(q, f, -1.312870632e-1f);
  q = mad(q, f, 1.418118066e-1f);
  q = mad(q, f, -1.662455766e-1f);
  q = mad(q, f, 2.000228671e-1f);
  q = mad(q, f, -2.500081031e-1f);
  q = mad(q, f, 3.333331672e-1f);
  const float square = f * f;
  float y = mad(q * f, square, n * -2.12194440e-4f);
  y = mad(-0.5f, square, y);
  const float value = mad(n, 0.693359375f, f + y);
  const float zero_or_less = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  const float finite = x <= 0.0f ? zero_or_less : value;
  return x < __builtin_inff() ? finite : x;  // +infinity and NaN
}
inline double log(double x) { return __builtin_log(x); }

inline float tanh(float x) {
  const float t = absolute(x);
  const float z = x * x;
  float q = -5.717046436e-3f;
  q = mad(q, z, 2.065058885e-2f);
  q = mad(q, z, -5.374349871e-2f);
  q = mad(q, z, 1.33314913e-1f);
  q = mad(q, z, -3.333328393e-1f);
  const float small = with_sign_of(mad(q * z, x, x), x);
  const float u = t > 10.0f ? 10.0f : t;
  const float large = with_sign_of(1.0f - 2.0f / (exp_normal(u + u) + 1.0f), x);
  const float value = t < 0.625f ? small : large;
  return x != x ? x : value;
}
inline double tanh(double x) { return __builtin_tanh(x); }

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
inline double sigmoid(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }

inline float erf(float x) {
  const float t = absolute(x);
  const float z = x * x;
  float s = 8.215418249e-5f;
  s = mad(s, z, -8.10596357e-4f);
  s = mad(s, z, 5.197797001e-3f);
  s = mad(s, z, -2.685810421e-2f);
  s = mad(s, z, 1.128367254e-1f);
  s = mad(s, z, -3.761263229e-1f);
  s = mad(s, z, 1.283791665e-1f);
  const float small = mad(s, x, x);
  const float u = t > 4.0f ? 4.0f : t;
  float q = 1.25799052e-5f;
  q = mad(q, u, -3.363471519e-4f);
  q = mad(q, u, 3.697723665e-3f);
  q = mad(q, u, -2.387940213e-2f);
  q = mad(q, u, 1.063736784e-1f);
  q = mad(q, u, 6.350682204e-1f);
  q = mad(q, u, 1.286690535e-1f);
  const float large = with_sign_of(1.0f - exp_normal(-mad(q, u, u)), x);
  const float value = t < 0.95f ? small : large;
  return x != x ? x : value;
}
inline double erf(double x) { return __builtin_erf(x); }

/// sine and cosine of 2 * pi * u for 0 <= u < 1 (Box-Muller).
inline void sincos_turn(float u, float& sine, float& cosine) {
  const float scaled = u * 4.0f;
  const i32 quadrant = static_cast<i32>(scaled + 0.5f);  // NOLINT(bugprone-incorrect-roundings): never negative
  const float x = (scaled - static_cast<float>(quadrant)) * 1.57079633f;  // within pi/4
  const float z = x * x;
  float s = -1.95172346e-4f;
  s = mad(s, z, 8.332177685e-3f);
  s = mad(s, z, -1.666665494e-1f);
  const float sin_x = mad(s * z, x, x);
  float c = 2.443837981e-5f;
  c = mad(c, z, -1.388736691e-3f);
  c = mad(c, z, 4.166664685e-2f);
  const float cos_x = mad(c * z, z, mad(-0.5f, z, 1.0f));
  const bool swap = quadrant & 1;
  const float a = swap ? cos_x : sin_x;
  const float b = swap ? sin_x : cos_x;
  sine = quadrant & 2 ? -a : a;
  cosine = (quadrant + 1) & 2 ? -b : b;
}

inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }

// The rest is the C library's, one element at a time. This list and the two below are all that has to know a function.
#define TENON_C_LIBRARY_FUNCTIONS(X) \
  X(sin)                             \
  X(cos)                             \
  X(tan)                             \
  X(asin)                            \
  X(acos)                            \
  X(atan)                            \
  X(sinh)                            \
  X(cosh)                            \
  X(asinh)                           \
  X(acosh)                           \
  X(atanh)                           \
  X(expm1)                           \
  X(log1p)                           \
  X(log2)                            \
  X(log10)                           \
  X(exp2)                            \
  X(cbrt)                            \
  X(erfc)                            \
  X(lgamma)                          \
  X(tgamma)                          \
  X(floor)                           \
  X(ceil)                            \
  X(trunc)                           \
  X(nearbyint)
#define TENON_BESSEL_FUNCTIONS(X) X(j0) X(j1) X(y0) X(y1)
#define TENON_OWN_FUNCTIONS(X) X(exp) X(log) X(tanh) X(erf) X(sqrt)

#define TENON_C_LIBRARY_FUNCTION(name)                          \
  inline float name(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }
TENON_C_LIBRARY_FUNCTIONS(TENON_C_LIBRARY_FUNCTION)
#undef TENON_C_LIBRARY_FUNCTION
#define TENON_BESSEL_FUNCTION(name) /* by name: Clang has no builtins of these */ \
  inline float name(float x) { return ::name##f(x); }                             \
  inline double name(double x) { return ::name(x); }
TENON_BESSEL_FUNCTIONS(TENON_BESSEL_FUNCTION)
#undef TENON_BESSEL_FUNCTION
inline float pow(float a, float b) { return __builtin_powf(a, b); }
inline double pow(double a, double b) { return __builtin_pow(a, b); }
inline float fmod(float a, float b) { return __builtin_fmodf(a, b); }
inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
inline float hypot(float a, float b) { return __builtin_hypotf(a, b); }
inline double hypot(double a, double b) { return __builtin_hypot(a, b); }
inline float copysign(float a, float b) { return with_sign_of(a, b); }
inline double copysign(double a, double b) { return __builtin_copysign(a, b); }
inline float atan2(float a, float b) { return __builtin_atan2f(a, b); }
inline double atan2(double a, double b) { return __builtin_atan2(a, b); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
