// What no file may exceed, so that sums of what files say cannot overflow.
#pragma once

#include <cstdint>

namespace tenon::replay {

inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 62;   ///< of a block, and of blocks together
inline constexpr std::uint64_t kMaxDeviceBytes = std::uint64_t{1} << 60;  ///< of a segment, and of a device's memory

}  // namespace tenon::replay
