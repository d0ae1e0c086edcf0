// Settings: the options of the policy, with PyTorch's names, and their values. What sizes follow from them: rounding.h.
#pragma once

#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/pytorch/sizes.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tenon::caching {

inline constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

/// Whose decisions are reproduced where PyTorch's versions differ.
enum class Compat { k1_13, kCurrent };

struct Settings {
  Compat compat = Compat::kCurrent;
  bool lowest_of_equals = false;  ///< as before May 2026
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

  /// See Note [Order].
  bool ties_by_address() const { return lowest_of_equals || compat == Compat::k1_13; }
};

OptionSchema option_schema(bool expandable);
/// What the two plugins say of the policy.
AllocatorTraits traits(bool expandable);
/// Throws ConfigError that names the option, the value and what would do.
Settings settings_from(const Options& options, bool expandable);

}  // namespace tenon::caching
