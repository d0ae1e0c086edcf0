// Sines, tangents and their inverses. See math.h.
#pragma once

#include "kernels/pointwise/math_pieces.h"

namespace tenon::cpu::TENON_CPU_LEVEL::math {

/// Of |x| <= pi / 4.
inline float sin_small(float x) {
  const float z = x * x;
  const float s = polynomial(z, -1.95172346e-4f, 8.332177685e-3f, -1.666665494e-1f);
  return mad(s * z, x, x);
}
inline float cos_small(float x) {
  const float z = x * x;
  const float c = polynomial(z, 2.443837981e-5f, -1.388736691e-3f, 4.166664685e-2f);
  return mad(c * z, z, mad(-0.5f, z, 1.0f));
}
/// sine and cosine of 2 * pi * u for 0 <= u < 1 (Box-Muller).
inline void sincos_turn(float u, float& sine, float& cosine) {
  const float scaled = u * 4.0f;
  const i32 quadrant = static_cast<i32>(scaled + 0.5f);  // NOLINT(bugprone-incorrect-roundings): never negative
  const float x = (scaled - static_cast<float>(quadrant)) * 1.57079633f;  // within pi/4
  const float sin_x = sin_small(x), cos_x = cos_small(x);
  const bool swap = quadrant & 1;
  const float a = swap ? cos_x : sin_x;
  const float b = swap ? sin_x : cos_x;
  sine = quadrant & 2 ? -a : a;
  cosine = (quadrant + 1) & 2 ? -b : b;
}

/// x = (quadrant + f) * pi / 2 with |f| <= 1/2, but for multiples of 4 quadrants; f has 50 bits at least.
struct Quadrants {
  double f;
  i32 quadrant;
};
/// For every float, by Payne and Hanek's idea: where y is an integer, whole multiples of 4 in 2 / pi times a power of
/// two make no difference to y times it. x becomes y by one of four powers of two, each with its remainder of 2 / pi in
/// three parts, so that the products with the first two are exact.
inline Quadrants quadrants(float x) {
  const float t = absolute(x);
  const bool above1 = t >= 0x1p50f, above2 = t >= 0x1p77f, above3 = t >= 0x1p104f;
  const double scale = above3 ? 0x1p-81 : above2 ? 0x1p-54 : above1 ? 0x1p-27 : 1.0;
  const double high = above3 ? -0x1.505c158p+0 : above2 ? 0x1.4a7f0ap+0 : above1 ? -0x1.1b1bbfp-1 : 0x1.45f307p-1;
  const double middle = above3   ? -0x1.6447e5p-28
                        : above2 ? -0x1.505c158p-27
                        : above1 ? 0x1.4a7f0ap-27
                                 : -0x1.1b1bbfp-28;
  const double low = above3   ? 0x1.b14acc9e21c82p-54
                     : above2 ? -0x1.6447e493ad4cep-55
                     : above1 ? -0x1.505c1596447e5p-54
                              : 0x1.4a7f09d5f47d5p-54;
  const double y = static_cast<double>(x) * scale;
  const double first = y * high, second = y * middle;
  const double a = first - 4.0 * rounded(first * 0.25), b = second - 4.0 * rounded(second * 0.25);
  const double c = y * low, k = rounded((a + b) + c);
  return {.f = ((a - k) + b) + c, .quadrant = static_cast<i32>(k)};
}

inline constexpr double kQuarterTurn = 1.57079632679489661923;

inline float sin(float x) {
  const Quadrants q = quadrants(x);
  const float r = static_cast<float>(q.f * kQuarterTurn);
  const float magnitude = q.quadrant & 1 ? cos_small(r) : sin_small(r);
  const float value = q.quadrant & 2 ? -magnitude : magnitude;
  return x == 0.0f ? x : value;  // the sign of zero
}
inline float cos(float x) {
  const Quadrants q = quadrants(x);
  const float r = static_cast<float>(q.f * kQuarterTurn);
  const float magnitude = q.quadrant & 1 ? sin_small(r) : cos_small(r);
  return (q.quadrant + 1) & 2 ? -magnitude : magnitude;
}
/// In double, since two roundings and a quotient are more than 2 ulp.
inline float tan(float x) {
  const Quadrants q = quadrants(x);
  const double r = q.f * kQuarterTurn, z = r * r;
  const double s = polynomial(z, 2.718121628e-6, -1.983931227e-4, 8.333329305e-3, -1.666666664e-1);
  const double sine = mad(s * z, r, r);
  const double c = polynomial(z, 2.438356727e-5, -1.388668165e-3, 4.166662036e-2, -4.999999969e-1);
  const double cosine = mad(c, z, 1.0);
  const bool odd = q.quadrant & 1;
  const float value = static_cast<float>((odd ? -cosine : sine) / (odd ? sine : cosine));
  return x == 0.0f ? x : value;
}

// pi / 2 and pi as a float and what it leaves.
inline constexpr float kHalfPi = 1.57079637f, kHalfPiRest = -4.37113883e-8f;
inline constexpr float kPi = 3.14159274f, kPiRest = -8.74227766e-8f;

/// asin(s) of s = sqrt(z) <= 1/2, less s.
inline float asin_rest(float z, float s) {
  const float q = polynomial(z, 4.21663053e-2f, 2.417951659e-2f, 4.547037556e-2f, 7.495297646e-2f, 1.666675248e-1f);
  return q * z * s;
}
inline float asin(float x) {
  const float t = absolute(x);
  const bool big = t > 0.5f;
  const float z = big ? (1.0f - t) * 0.5f : t * t;
  const float s = big ? sqrt(z) : t;
  const float part = s + asin_rest(z, s);
  const float value = with_sign_of(big ? (kHalfPi - 2.0f * part) + kHalfPiRest : part, x);
  return t <= 1.0f ? value : __builtin_nanf("");
}
inline float acos(float x) {
  const float t = absolute(x);
  const bool big = t > 0.5f;
  const float z = big ? (1.0f - t) * 0.5f : t * t;
  const float s = big ? sqrt(z) : x;
  const float rest = asin_rest(z, s);
  const float twice = 2.0f * (s + rest);
  const float outer = x < 0.0f ? (kPi - twice) + kPiRest : twice;
  const float value = big ? outer : kHalfPi - (s - (kHalfPiRest - rest));
  return t <= 1.0f ? value : __builtin_nanf("");
}

/// Of 0 <= u <= 1.
inline float atan_inner(float u) {
  const float z = u * u;
  const float q = polynomial(z, -1.793620355e-3f, 1.091459912e-2f, -3.117783221e-2f, 5.795757825e-2f, -8.403449312e-2f,
                             1.095218537e-1f, -1.426424159e-1f, 1.999854827e-1f, -3.333329909e-1f);
  return mad(q * z, u, u);
}
inline float atan(float x) {
  const float t = absolute(x);
  const bool steep = t > 1.0f;
  const float part = atan_inner(steep ? 1.0f / t : t);
  const float value = with_sign_of(steep ? kHalfPi - (part - kHalfPiRest) : part, x);
  return x != x ? x : value;
}
inline float atan2(float y, float x) {
  const float up = absolute(y), along = absolute(x);
  const bool steep = up > along;
  const float less = steep ? along : up, more = steep ? up : along;
  const float quotient = less == more ? 1.0f : less / more;  // both may be infinite
  const float part = atan_inner(more == 0.0f ? 0.0f : quotient);
  const float first = steep ? kHalfPi - (part - kHalfPiRest) : part;
  const bool behind = float_to_bits(x) >> 31;
  const float value = with_sign_of(behind ? kPi - (first - kPiRest) : first, y);
  return x != x || y != y ? x + y : value;
}

/// In double, where squares of floats neither overflow nor vanish.
inline float hypot(float a, float b) {
  const double x = a, y = b;
  const float value = static_cast<float>(sqrt(x * x + y * y));
  const bool infinite = absolute(a) == __builtin_inff() || absolute(b) == __builtin_inff();
  return infinite ? __builtin_inff() : value;
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
