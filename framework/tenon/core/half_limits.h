// std::numeric_limits of Half and BFloat16, and a minus that keeps their type, as c10 has them: {-inf, inf} is of one
// type.
#pragma once

#include <tenon/core/half.h>

#include <cstdint>
#include <limits>

namespace tenon::detail {

/// What binary floating formats of 16 bits have in common; `Digits` counts the hidden bit.
template <class T, int Digits, int MinExponent, int MaxExponent, std::uint16_t kMax, std::uint16_t kInfinity>
struct SixteenBitLimits {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, has_denorm_loss = false;
  static constexpr bool is_iec559 = true, is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = Digits, digits10 = (Digits - 1) * 3 / 10, max_digits10 = Digits * 3 / 10 + 2;
  static constexpr int min_exponent = MinExponent, max_exponent = MaxExponent;
  static constexpr int min_exponent10 = (MinExponent - 1) * 3 / 10, max_exponent10 = MaxExponent * 3 / 10;
  static constexpr T max() { return T::from_bits(kMax); }
  static constexpr T lowest() { return T::from_bits(kMax | 0x8000); }
  static constexpr T infinity() { return T::from_bits(kInfinity); }
  static constexpr T quiet_NaN() { return T::from_bits(kInfinity | 1 << (Digits - 2)); }
  static constexpr T signaling_NaN() { return T::from_bits(kInfinity | 1 << (Digits - 3)); }
  static constexpr T min() { return T::from_bits(1 << (Digits - 1)); }
  static constexpr T denorm_min() { return T::from_bits(1); }
  /// 2^(1 - digits).
  static constexpr T epsilon() { return T(1.0f / static_cast<float>(1 << (Digits - 1))); }
  static constexpr T round_error() { return T(0.5f); }
};

}  // namespace tenon::detail

namespace tenon {

constexpr Half operator-(Half value) { return Half::from_bits(static_cast<std::uint16_t>(value.bits ^ 0x8000)); }
constexpr BFloat16 operator-(BFloat16 value) {
  return BFloat16::from_bits(static_cast<std::uint16_t>(value.bits ^ 0x8000));
}

}  // namespace tenon

template <>
struct std::numeric_limits<tenon::Half> : tenon::detail::SixteenBitLimits<tenon::Half, 11, -13, 16, 0x7bff, 0x7c00> {};
template <>
struct std::numeric_limits<tenon::BFloat16>
    : tenon::detail::SixteenBitLimits<tenon::BFloat16, 8, -125, 128, 0x7f7f, 0x7f80> {};
