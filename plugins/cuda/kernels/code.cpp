// For which devices a kernel's code was made, as CUDA says it.
#include "kernels/code.h"

#include "check.h"
#include "handles.h"
#include "kernels/driver_of.h"
#include "kernels/launch.h"

#include <cuda_runtime_api.h>

namespace tenon::cuda {

bool fits(KernelContext& context, const void* function, int capability, std::size_t shared_bytes) {
  const DeviceLimits& device = limits(context);
  if (device.capability < capability || device.shared_bytes < shared_bytes) return false;
  const ContextGuard guard(driver_of(context).context());
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes");
  return attributes.ptxVersion >= capability;
}

}  // namespace tenon::cuda
