// float16 and bfloat16: what their bits are worth, and the nearest of a number.
#include "support/emulated_cuda/ptx/small_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon::emulated_cuda::ptx {

namespace {

/// Rounds to `digits` binary digits of a format whose smallest normal number is 2^least, to nearest, ties to even.
double rounded_to(double value, int digits, int least) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  return std::nearbyint(value / unit) * unit;
}

}  // namespace

Half Half::nearest(double value) {
  if (std::isnan(value)) return {0x7fff};
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(rounded_to(value, 11, -14));
  if (magnitude >= 65536) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < std::ldexp(1.0, -14))
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::ldexp(magnitude, 24)))};
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<std::uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
  return {static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | fraction)};
}

float Half::value() const {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0F : 1.0F;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

Brain Brain::nearest(double value) {
  if (std::isnan(value)) return {0x7fff};
  const double once = rounded_to(value, 8, -126);
  if (std::fabs(once) > 3.3961775292304957e38)
    return {static_cast<std::uint16_t>(std::signbit(value) ? 0xff80 : 0x7f80)};
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(once)) >> 16)};
}

float Brain::value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace tenon::emulated_cuda::ptx
