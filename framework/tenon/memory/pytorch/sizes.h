// The sizes at which PyTorch's allocator decides (c10/core/CachingDeviceAllocator.h), for the policy that decides the
// same and for whoever reads what PyTorch has recorded.
#pragma once

#include <tenon/core/units.h>

#include <cstddef>

namespace tenon::pytorch {

inline constexpr std::size_t kMinBlockBytes = 512;        ///< requests are rounded up to multiples of it
inline constexpr std::size_t kSmallLimitBytes = 1 * MiB;  ///< inclusive: rounded sizes up to it are small
inline constexpr std::size_t kSmallSegmentBytes = 2 * MiB;
inline constexpr std::size_t kLargeSegmentBytes = 20 * MiB;   ///< unless large_segment_size_mb says otherwise
inline constexpr std::size_t kMinOwnSegmentBytes = 10 * MiB;  ///< from here on a request gets its own segment
inline constexpr std::size_t kOwnSegmentRoundingBytes = 2 * MiB;
inline constexpr std::size_t kLargeSplitSlackBytes = 1 * MiB;  ///< large blocks split only above this remainder

}  // namespace tenon::pytorch
