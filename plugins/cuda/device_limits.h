// What kernels need to know of the device they run on.
#pragma once

#include <cstddef>

namespace tenon::cuda {

struct DeviceLimits {
  int processors = 1;            ///< multiprocessors
  int capability = 75;           ///< 10 * major + minor
  std::size_t shared_bytes = 0;  ///< the most of a block, for those who ask for it
};

}  // namespace tenon::cuda
