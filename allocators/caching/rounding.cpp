// PyTorch's rounding; 1.13 and 2.x differ where sizes are rounded to divisions of a power of two.
#include "rounding.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tenon::caching {

namespace {

std::size_t round_to_divisions(std::size_t bytes, std::uint32_t divisions) {
  if (divisions <= 1 || bytes <= 4 || is_power_of_two(bytes)) return bytes;
  const std::size_t floor = std::bit_floor(bytes);
  const std::size_t step = floor >> (std::bit_width(divisions) - 1);
  return step == 0 ? floor << 1 : align_up(bytes, step);
}

}  // namespace

std::size_t round_size(const Settings& settings, std::size_t requested_bytes) {
  if (requested_bytes < kMinBlockBytes) return kMinBlockBytes;
  const int magnitude = std::bit_width(requested_bytes) - 1;
  const std::uint32_t divisions =
      settings.roundup_divisions[static_cast<std::size_t>(std::clamp(magnitude - 20, 0, 15))];
  const bool old = settings.compat == Compat::k1_13;
  if (divisions > (old ? 0u : 1u) && requested_bytes > kMinBlockBytes * divisions &&
      requested_bytes <= settings.roundup_bypass_bytes)
    return align_up(round_to_divisions(requested_bytes, divisions), settings.least_alignment);
  return (requested_bytes + kMinBlockBytes - 1) & ~(kMinBlockBytes - 1);
}

std::size_t segment_size(const Settings& settings, std::size_t bytes) {
  if (!is_large(bytes)) return kSmallSegmentBytes;
  if (bytes < kMinOwnSegmentBytes) return settings.large_segment_bytes;
  return align_up(bytes, kOwnSegmentRoundingBytes);
}

}  // namespace tenon::caching
