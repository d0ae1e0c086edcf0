// What elementary functions are made of: multiply-adds of one rounding, bits, selects.
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

/// The polynomial in x whose coefficients are given, the highest first.
template <class T, class... More>
inline T polynomial(T x, T first, More... more) {
  T value = first;
  ((value = mad(value, x, more)), ...);
  return value;
}

// Adding one of these rounds to an integer, kept in the low bits: 1.5 * 2^23, 1.5 * 2^52.
inline constexpr float kRound = 12582912.0f;
inline constexpr double kRound64 = 6755399441055744.0;
/// To the nearest integer, below 2^51.
inline double rounded(double x) { return (x + kRound64) - kRound64; }

inline float absolute(float x) { return bits_to_float(float_to_bits(x) & 0x7fffffffu); }
inline double absolute(double x) { return __builtin_fabs(x); }
inline float with_sign_of(float magnitude, float sign) {
  return bits_to_float((float_to_bits(magnitude) & 0x7fffffffu) | (float_to_bits(sign) & 0x80000000u));
}

/// 2^n for -126 <= n <= 127.
inline float power_of_two(i32 n) { return bits_to_float(static_cast<u32>(n + 127) << 23); }

inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
