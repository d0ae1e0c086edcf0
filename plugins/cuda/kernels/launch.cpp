// Launching a __global__ function on the context's stream and device.
#include "kernels/launch.h"

#include "handles.h"
#include "kernels/driver_of.h"
#include "kernels/errors.cuh"

namespace tenon::cuda {

const DeviceLimits& limits(KernelContext& context) { return driver_of(context).limits(); }

ErrorReport errors(KernelContext& context, const ErrorText& text) {
  return {driver_of(context).errors().word(), &text};
}

void launch_function(KernelContext& context, const void* function, const LaunchShape& shape, void** arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  const ContextGuard guard(driver_of(context).context());
  if (shape.shared_bytes > kSharedBytes) {
    check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)),
          "cudaFuncSetAttribute", shape.where);
  }
  check(cudaLaunchKernel(function, shape.grid, shape.block, arguments, shape.shared_bytes, native(context.stream())),
        "cudaLaunchKernel", shape.where);
}

}  // namespace tenon::cuda
