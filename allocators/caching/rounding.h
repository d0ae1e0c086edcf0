// Rounding: the size of the block that a request gets, and of the segment that is taken from the device for it.
#pragma once

#include "settings.h"

#include <tenon/memory/pytorch/sizes.h>

#include <algorithm>
#include <cstddef>

namespace tenon::caching {

using pytorch::kLargeSplitSlackBytes;
using pytorch::kMinBlockBytes;
using pytorch::kMinOwnSegmentBytes;
using pytorch::kOwnSegmentRoundingBytes;
using pytorch::kSmallLimitBytes;
using pytorch::kSmallSegmentBytes;
/// From here on a request is refused unseen: its size cannot be rounded up, and no device is as large.
inline constexpr std::size_t kHugeRequestBytes = std::size_t{1} << 60;

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
