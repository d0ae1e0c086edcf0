// Calls about kernels: what they need, and what fits a device.
#include "support/emulated_cuda/kernels.h"
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

using namespace tenon::emulated_cuda;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  Call call("cudaFuncGetAttributes");
  if (call.refused()) return call.refusal();
  const ptx::Function* function = function_of(stub);
  if (function == nullptr) return call.result(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(function->max_threads);
  attributes->sharedSizeBytes = function->shared_bytes;
  attributes->localSizeBytes = function->local_bytes;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = capability_of(stub);
  return call.result(cudaSuccess);
}

/// As many as there is room for 2048 threads and 64 KiB of shared memory.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub, int threads,
                                                                   std::size_t dynamic_shared_bytes, unsigned) {
  Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
  if (call.refused()) return call.refusal();
  const ptx::Function* function = function_of(stub);
  if (function == nullptr) return call.result(cudaErrorInvalidDeviceFunction);
  if (threads <= 0) return call.result(cudaErrorInvalidValue);
  const std::size_t shared = function->shared_bytes + dynamic_shared_bytes;
  *blocks = 2048 / threads;
  if (shared > 0) *blocks = std::min(*blocks, static_cast<int>(64 * 1024 / shared));
  return call.result(cudaSuccess);
}

/// A variable of a module that the host knows. It cannot reach it: the calls that do are not emulated.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

}  // extern "C"
