// A stand-in of libcuda.so.1 for who opens it by name: the functions of the emulated driver that the plugin nccl calls.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "support/emulated_cuda/libraries/operands.h"

using namespace tenon::emulated_cuda;

namespace {

template <class Function>
Function* entry(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" {

/// Which memory it is, and whose; of pageable memory it knows nothing.
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Call call("cuPointerGetAttribute", Call::Needs::kNothing);
  const bool is_type = attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  expect(call, is_type || attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "no other attribute is emulated");
  const Extent* const extent = call.machine().space.holding(address);
  if (!call.machine().space.is_device(reinterpret_cast<const void*>(address)) || (!is_type && extent == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (is_type)
    *static_cast<CUmemorytype*>(value) = CU_MEMORYTYPE_DEVICE;
  else
    *static_cast<int*>(value) = extent->owner;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) { return entry<CUresult(unsigned)>("cuInit", 2000)(flags); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry<CUresult(CUdevice*, int)>("cuDeviceGet", 2000)(device, ordinal);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain", 7000)(context, device);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry<CUresult(CUdevice)>("cuDevicePrimaryCtxRelease", 11000)(device);
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return entry<CUresult(CUcontext)>("cuCtxPushCurrent", 4000)(context);
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return entry<CUresult(CUcontext*)>("cuCtxPopCurrent", 4000)(context);
}

}  // extern "C"
