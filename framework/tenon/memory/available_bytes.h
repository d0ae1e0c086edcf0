// What a process could still have taken when it ran out of memory.
#pragma once

#include <tenon/core/error.h>

#include <algorithm>
#include <cstddef>

namespace tenon {

/// Bytes that the device had left for this process: with a limit never more than that leaves of what is reserved.
inline std::size_t available_bytes(const OutOfMemoryInfo& info) {
  if (info.limit_bytes == 0) return info.device_free_bytes;
  const std::size_t under_limit = info.limit_bytes - std::min(info.limit_bytes, info.reserved_bytes);
  return info.device_free_bytes == 0 && info.capacity_bytes == 0 ? under_limit
                                                                 : std::min(info.device_free_bytes, under_limit);
}

}  // namespace tenon
