// What a kernel needs that not every device, and not all code for it, has.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstddef>

namespace tenon::cuda {

/// Whether `function`, a __global__ function's address, was compiled for `capability` (10 * major + minor) or newer as
/// it runs on this device, which has that much shared memory for a block. The driver may have made it from older PTX.
bool fits(KernelContext& context, const void* function, int capability, std::size_t shared_bytes);

}  // namespace tenon::cuda
