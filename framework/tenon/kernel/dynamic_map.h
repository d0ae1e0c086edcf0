// The dynamic map: 256 numbers within [-1, 1] that bytes stand for, dense near zero, where most of what an optimiser
// remembers lies. Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022.
//
// A byte has a sign (where the map has one), a power of ten, told by leading zeros, and a fraction in the bits that are
// left: seven decades, of which each larger one is cut twice as finely.
//
//   0 |  1e-6: 1 fraction | 1e-5: 2 | 1e-4: 4 | ... | 1: 64 fractions | 1      (twice as many without a sign)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tenon {

inline constexpr std::int64_t kMapCodes = 256;
/// Values that share a scale, their largest absolute value.
inline constexpr std::int64_t kBlockValues = 256;

/// The numbers of the map in rising order: with a sign, 127 below zero, zero, 127 above it and 1; without one, zero,
/// 254 above it and 1. A fraction stands in the middle of its share of 0.1 to 1.
inline std::array<float, kMapCodes> dynamic_map(bool is_signed) {
  constexpr int kDecades = 7;
  std::array<float, kMapCodes> map{};  // two places stay zero: one is made 1
  std::size_t at = 0;
  double decade = 1e-6;
  for (int i = 0; i < kDecades; ++i, decade *= 10) {
    const int fractions = (is_signed ? 1 : 2) << i;
    for (int k = 0; k < fractions; ++k) {
      const auto value = static_cast<float>(decade * (0.1 + 0.9 * (k + 0.5) / fractions));
      map[at++] = value;
      if (is_signed) map[at++] = -value;
    }
  }
  map[at] = 1;
  std::ranges::sort(map);
  return map;
}

/// From thresholds[k] on a number is nearer to the map's k than to k - 1; thresholds[0] is below all.
inline std::array<float, kMapCodes> dynamic_thresholds(bool is_signed) {
  const auto map = dynamic_map(is_signed);
  std::array<float, kMapCodes> thresholds{};
  thresholds[0] = -2;
  for (std::size_t k = 1; k < map.size(); ++k) thresholds[k] = (map[k - 1] + map[k]) / 2;
  return thresholds;
}

}  // namespace tenon
