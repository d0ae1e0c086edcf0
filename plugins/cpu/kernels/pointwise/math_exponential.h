// Exponentials, logarithms and what is made of them. See math.h.
#pragma once

#include "kernels/pointwise/math_pieces.h"

namespace tenon::cpu::TENON_CPU_LEVEL::math {

inline constexpr i32 kRoundBits = 0x4b400000;  // of kRound

/// e^x = (1 + rest) * 2^n with -0.3 < rest < 0.42.
struct Exponential {
  float rest;
  i32 n;
};
/// Of e^r, |r| at most ln(2) / 2.
inline float exponential_rest(float r) {
  const float q = polynomial(r, 1.395047533e-3f, 8.368889075e-3f, 4.166620605e-2f, 1.666651884e-1f, 5.000000095e-1f);
  return mad(q, r * r, r);
}
/// x = r + n * ln(2).
struct Reduced {
  float r;
  i32 n;
};
inline Reduced reduced(float x) {
  const float shifted = mad(x, 1.44269504f, kRound);
  const float whole = shifted - kRound;
  const float r = mad(whole, -0.693359375f, x);
  return {mad(whole, 2.12194440e-4f, r), static_cast<i32>(float_to_bits(shifted)) - kRoundBits};
}
inline Exponential exponential(float x) {
  const Reduced part = reduced(x);
  return {exponential_rest(part.r), part.n};
}
/// value * 2^n in two steps, so that subnormal results and overflow come out right.
inline float scaled_by_power_of_two(float value, i32 n) {
  const i32 half = n >> 1;
  return value * power_of_two(half) * power_of_two(n - half);
}

inline float exp(float x) {
  const float low = x < -104.0f ? -104.0f : x;  // comparisons are false for NaN, which passes through
  const Exponential e = exponential(low > 89.0f ? 89.0f : low);
  return scaled_by_power_of_two(e.rest + 1.0f, e.n);
}
/// For -80 <= x <= 80, where the result is normal.
inline float exp_normal(float x) {
  const Exponential e = exponential(x);
  return bits_to_float(float_to_bits(e.rest + 1.0f) + (static_cast<u32>(e.n) << 23));
}
inline double exp(double x) { return __builtin_exp(x); }

inline float expm1(float x) {
  const float low = x < -30.0f ? -30.0f : x;
  const Exponential e = exponential(low > 89.0f ? 89.0f : low);
  // Half of it, since 2^128 is no float.
  const float scale = power_of_two(e.n - 1);
  const float value = 2.0f * mad(scale, e.rest, scale - 0.5f);
  return absolute(x) < 5e-8f ? x : value;  // the sign of zero, too
}

inline float exp2(float x) {
  const float low = x < -151.0f ? -151.0f : x;
  const float bound = low > 129.0f ? 129.0f : low;
  const float shifted = bound + kRound;
  const i32 n = static_cast<i32>(float_to_bits(shifted)) - kRoundBits;
  const float r = (bound - (shifted - kRound)) * 0.69314718f;
  return scaled_by_power_of_two(exponential_rest(r) + 1.0f, n);
}

/// ln(x) = n * ln(2) + f - f^2 / 2 + cubic * f^2, for a finite x above 0.
struct Logarithm {
  float n, f, cubic;
  float rest() const { return mad(-0.5f, f * f, cubic * (f * f)); }
};
inline Logarithm logarithm(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const u32 bits = float_to_bits(scaled);
  const i32 e = static_cast<i32>(bits - 0x3f3504f3u) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const float f = bits_to_float(bits - (static_cast<u32>(e) << 23)) - 1.0f;
  const float n = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  const float q = polynomial(f, -7.85984817e-2f, 1.288172321e-1f, -1.312870632e-1f, 1.418118066e-1f, -1.662455766e-1f,
                             2.000228671e-1f, -2.500081031e-1f, 3.333331672e-1f);
  return {n, f, q * f};
}
/// What a logarithm of any x is, `value` being that of a finite one above 0.
inline float logarithm_of_any(float x, float value) {
  const float zero_or_less = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  const float finite = x <= 0.0f ? zero_or_less : value;
  return x < __builtin_inff() ? finite : x;  // +infinity and NaN
}

inline float log(float x) {
  const Logarithm l = logarithm(x);
  const float square = l.f * l.f;
  float y = mad(l.cubic, square, l.n * -2.12194440e-4f);
  y = mad(-0.5f, square, y);
  return logarithm_of_any(x, mad(l.n, 0.693359375f, l.f + y));
}
inline double log(double x) { return __builtin_log(x); }

inline float log2(float x) {
  const Logarithm l = logarithm(x);
  return logarithm_of_any(x, mad(l.f, 1.44269504f, mad(l.rest(), 1.44269504f, l.n)));
}
inline float log10(float x) {
  const Logarithm l = logarithm(x);
  const float small = mad(l.f, 0.434294482f, mad(l.rest(), 0.434294482f, l.n * 4.60503907e-6f));
  return logarithm_of_any(x, mad(l.n, 0.301025391f, small));
}
inline float log1p(float x) {
  const float u = 1.0f + x;
  const float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);  // of x, by rounding u
  const float value = log(u) + (u > 0.0f ? lost / u : 0.0f);
  const float finite = absolute(x) < 1e-8f ? x : value;  // the sign of zero, too
  return x < __builtin_inff() ? finite : x;
}

inline float tanh(float x) {
  const float t = absolute(x);
  const float z = x * x;
  const float q = polynomial(z, -5.717046436e-3f, 2.065058885e-2f, -5.374349871e-2f, 1.33314913e-1f, -3.333328393e-1f);
  const float small = with_sign_of(mad(q * z, x, x), x);
  const float u = t > 10.0f ? 10.0f : t;
  const float large = with_sign_of(1.0f - 2.0f / (exp_normal(u + u) + 1.0f), x);
  const float value = t < 0.625f ? small : large;
  return x != x ? x : value;
}
inline double tanh(double x) { return __builtin_tanh(x); }

/// e^t / 2 for t >= 0; infinity where it is none.
inline float half_exp(float t) {
  const Exponential e = exponential(t > 90.0f ? 90.0f : t);
  return scaled_by_power_of_two(e.rest + 1.0f, e.n - 1);
}
inline float sinh(float x) {
  const float z = x * x;
  const float q = polynomial(z, 2.816951219e-6f, 1.983615978e-4f, 8.333350058e-3f, 1.66666665e-1f);
  const float small = mad(q * z, x, x);
  const float h = half_exp(absolute(x));
  const float large = with_sign_of(h - 0.25f / h, x);
  const float value = absolute(x) < 1.0f ? small : large;
  return x != x ? x : value;
}
inline float cosh(float x) {
  const float h = half_exp(absolute(x));
  return h + 0.25f / h;
}
inline float atanh(float x) {
  const float z = x * x;
  const float q = polynomial(z, 1.766911706e-1f, 5.13582526e-2f, 1.182372963e-1f, 1.422276216e-1f, 2.000251828e-1f,
                             3.333330007e-1f);
  const float small = mad(q * z, x, x);
  const float t = absolute(x);
  const float large = with_sign_of(0.5f * log((1.0f + t) / (1.0f - t)), x);
  const float value = t < 0.5f ? small : large;
  return x != x ? x : value;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
inline double sigmoid(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }

/// For |x| < 0.95.
inline float erf_small(float x) {
  const float z = x * x;
  const float s = polynomial(z, 8.215418249e-5f, -8.10596357e-4f, 5.197797001e-3f, -2.685810421e-2f, 1.128367254e-1f,
                             -3.761263229e-1f, 1.283791665e-1f);
  return mad(s, x, x);
}
inline float erf(float x) {
  const float t = absolute(x);
  const float u = t > 4.0f ? 4.0f : t;
  const float q = polynomial(u, 1.25799052e-5f, -3.363471519e-4f, 3.697723665e-3f, -2.387940213e-2f, 1.063736784e-1f,
                             6.350682204e-1f, 1.286690535e-1f);
  const float large = with_sign_of(1.0f - exp_normal(-mad(q, u, u)), x);
  const float value = t < 0.95f ? erf_small(x) : large;
  return x != x ? x : value;
}
inline double erf(double x) { return __builtin_erf(x); }

inline float erfc(float x) {
  const float t = absolute(x) > 10.2f ? 10.2f : absolute(x);
  // e^(t^2) * erfc(t), in (t - 3) / (t + 3). In double, or the roundings add up to more than 2 ulp.
  const double w = (static_cast<double>(t) - 3.0) / (static_cast<double>(t) + 3.0);
  const double q =
      polynomial(w, 5.98178564e-5, 3.426415773e-5, -5.966017145e-4, 7.115107442e-4, 4.269199964e-3, -2.43930914e-2,
                 7.166582999e-2, -1.501158975e-1, 2.456038014e-1, -3.262335607e-1, 1.790011512e-1);
  // t^2 = square + lost to the last bit: t in two halves of 12 bits.
  const float square = t * t;
  const float high = bits_to_float(float_to_bits(t) & 0xfffff000u), low = t - high;
  const float lost = mad(low, low, mad(2.0f * high, low, high * high - square));
  const Reduced part = reduced(-square);
  const double near_one = 1.0 + static_cast<double>(exponential_rest(part.r - lost));
  const float tail = scaled_by_power_of_two(static_cast<float>(q * near_one), part.n);
  const float large = x < 0.0f ? 2.0f - tail : tail;
  const float value = absolute(x) < 0.5f ? 1.0f - erf_small(x) : large;
  return x != x ? x : value;
}

/// In double, with what b multiplies by known to 2^-45.
inline float pow(float a, float b) {
  constexpr double kMagic = 0x1p52;
  const double base = static_cast<double>(absolute(a)), exponent = static_cast<double>(b);
  // log2(base) = e + log2(m), m in [sqrt(1/2), sqrt(2)): of s = (m - 1) / (m + 1).
  const u64 bits = __builtin_bit_cast(u64, base);
  const u64 biased = (bits - 0x3fe6a09e667f3bcdull + (1023ull << 52)) >> 52;
  const double m = __builtin_bit_cast(double, bits - (biased << 52) + (1023ull << 52));
  const double e = __builtin_bit_cast(double, biased | 0x4330000000000000ull) - kMagic - 1023.0;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  const double q = polynomial(z, 0.28290816807943003, 0.31990510109214553, 0.41220926789996585, 0.57707794219967867,
                              0.96179669411395842, 2.8853900817778496);
  const double finite = mad(q, s, e);
  const double above = base == 0.0 ? -__builtin_inf() : finite;
  const double log2_base = base == __builtin_inf() ? base : above;
  // 2^p = (1 + ...) * 2^n; 1 to the power of infinity is 1.
  const double p = base == 1.0 ? 0.0 : exponent * log2_base;
  const double low = p < -200.0 ? -200.0 : p;
  const double bound = low > 200.0 ? 200.0 : low;
  const double shifted = bound + kRound64;
  const double r = bound - (shifted - kRound64);
  const double t =
      polynomial(r, 1.5314949393066139e-5, 1.5467110121879463e-4, 1.3333430776540921e-3, 9.6180369116753419e-3,
                 5.5504109625831555e-2, 2.4022651075846158e-1, 6.9314718054165199e-1);
  const u64 n = __builtin_bit_cast(u64, shifted) - __builtin_bit_cast(u64, kRound64);
  const double scale = __builtin_bit_cast(double, (n + 1023ull) << 52);
  const float magnitude = static_cast<float>(mad(t, r, 1.0) * scale);
  // The sign of a base below 0: floats from 2^24 on are even.
  const float whole = __builtin_truncf(b), half = b * 0.5f;
  const bool is_whole = whole == b, is_odd = is_whole && __builtin_truncf(half) != half;
  const bool is_negative = float_to_bits(a) >> 31;
  const float with_sign = is_negative && is_odd ? -magnitude : magnitude;
  const bool has_none = a < 0.0f && !is_whole && base != __builtin_inf();
  const float real = has_none ? __builtin_nanf("") : with_sign;
  const float number = a != a || b != b ? a + b : real;
  return a == 1.0f || b == 0.0f ? 1.0f : number;
}

/// Giles' polynomial start, then two Newton steps, as of doubles (kernel/pointwise_helpers.inl).
inline float erfinv(float x) {
  const float w = -log((1.0f - x) * (1.0f + x));
  const float c = w - 2.5f, t = sqrt(w) - 3.0f;
  float central = 2.81022636e-08f;
  central = 3.43273939e-07f + central * c;
  central = -3.5233877e-06f + central * c;
  central = -4.39150654e-06f + central * c;
  central = 0.00021858087f + central * c;
  central = -0.00125372503f + central * c;
  central = -0.00417768164f + central * c;
  central = 0.246640727f + central * c;
  central = 1.50140941f + central * c;
  float tail = -0.000200214257f;
  tail = 0.000100950558f + tail * t;
  tail = 0.00134934322f + tail * t;
  tail = -0.00367342844f + tail * t;
  tail = 0.00573950773f + tail * t;
  tail = -0.0076224613f + tail * t;
  tail = 0.00943887047f + tail * t;
  tail = 1.00167406f + tail * t;
  tail = 2.83297682f + tail * t;
  float y = (w < 5.0f ? central : tail) * x;
  y -= (erf(y) - x) / (1.12837917f * exp(-(y * y)));
  y -= (erf(y) - x) / (1.12837917f * exp(-(y * y)));
  const float at_ends = absolute(x) == 1.0f ? with_sign_of(__builtin_inff(), x) : __builtin_nanf("");
  return absolute(x) < 1.0f ? y : at_ends;
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
