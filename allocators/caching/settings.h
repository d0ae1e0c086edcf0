// What decides where a request goes before any cache is looked at: the options, rounding, and the size of a new
// segment.
#pragma once

#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/pytorch/sizes.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tenon::caching {

inline constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
using pytorch::kLargeSplitSlackBytes;
using pytorch::kMinBlockBytes;
using pytorch::kMinOwnSegmentBytes;
using pytorch::kOwnSegmentRoundingBytes;
using pytorch::kSmallLimitBytes;
using pytorch::kSmallSegmentBytes;
inline constexpr std::size_t kHugeRequestBytes = std::size_t{1} << 60;

/// Whose decisions are reproduced where PyTorch's versions differ.
enum class Compat { k1_13, kCurrent };

struct Settings {
  Compat compat = Compat::kCurrent;
  bool expandable = false;
  std::size_t max_split_bytes = kUnlimited;
  std::size_t max_non_split_rounding_bytes = pytorch::kLargeSegmentBytes;
  std::size_t large_segment_bytes = pytorch::kLargeSegmentBytes;
  std::size_t roundup_bypass_bytes = kUnlimited;      ///< 1.13 only
  std::array<std::uint32_t, 16> roundup_divisions{};  ///< [i] governs requests in [2^(20+i), 2^(21+i))
  double garbage_collection_threshold = 0;            ///< of the limit; 0 = off
  double memory_fraction = 1;
  bool throws_before_device_oom = false;  ///< throw_on_cudamalloc_oom
  double reserve_share = 0;               ///< of the device: how long address ranges are; 0 = see reserve_bytes
  std::size_t reserve_bytes = 0;          ///< how long address ranges are; 0 = nine eighths of the device
  /// 1.13 with one division leaves sizes as they are; memory that the host may touch is then kept aligned all the same.
  std::size_t least_alignment = 1;
};

OptionSchema option_schema(bool expandable);
/// What the two plugins say of the policy.
AllocatorTraits traits(bool expandable);
/// Throws ConfigError that names the option, the value and what would do.
Settings settings_from(const Options& options, bool expandable);

/// The size of the block that a request gets, before the question whether a larger cached one is split.
std::size_t round_size(const Settings& settings, std::size_t requested_bytes);
/// The same where no size is rounded to divisions.
inline std::size_t round_to_blocks(std::size_t requested_bytes) {
  return std::max(kMinBlockBytes, (requested_bytes + kMinBlockBytes - 1) & ~(kMinBlockBytes - 1));
}
/// The bytes to take from the device for a block of `bytes`.
std::size_t segment_size(const Settings& settings, std::size_t bytes);

inline bool is_large(std::size_t rounded_bytes) { return rounded_bytes > kSmallLimitBytes; }

}  // namespace tenon::caching
