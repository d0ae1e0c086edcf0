// The driver that a kernel's context belongs to: more than the framework's interface shows.
#pragma once

#include "driver.h"

#include <tenon/kernel/kernel.h>

namespace tenon::cuda {

inline CudaDriver& driver_of(KernelContext& context) { return static_cast<CudaDriver&>(context.driver()); }

}  // namespace tenon::cuda
