// The clock of histories.
#pragma once

#include <chrono>
#include <cstdint>

namespace tenon {

/// Microseconds since the epoch, as PyTorch's snapshots have them.
inline std::int64_t microseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace tenon
