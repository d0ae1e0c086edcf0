// Looks the driver's entry points up by name and version through the runtime library.
#include "driver_api.h"

namespace tenon::cuda {

namespace {

template <class Function>
void look_up(const char* name, [[maybe_unused]] unsigned version, Function& function) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found);
#else  // it gives the version of the toolkit, which is the one below for all of these
  const cudaError_t status = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess) cudaGetLastError();
  function =
      status == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(entry) : nullptr;
}

DriverApi load() {
  DriverApi api;
  look_up("cuGetErrorString", 6000, api.get_error_string);
  look_up("cuInit", 2000, api.init);
  look_up("cuDeviceGet", 2000, api.device_get);
  look_up("cuDevicePrimaryCtxRetain", 7000, api.context_retain);
  look_up("cuDevicePrimaryCtxRelease", 11000, api.context_release);
  look_up("cuCtxPushCurrent", 4000, api.context_push);
  look_up("cuCtxPopCurrent", 4000, api.context_pop);
  look_up("cuCtxGetDevice", 2000, api.context_device);
  look_up("cuStreamGetCtx", 9020, api.stream_context);
  look_up("cuMemGetAllocationGranularity", 10020, api.get_granularity);
  look_up("cuMemAddressReserve", 10020, api.address_reserve);
  look_up("cuMemAddressFree", 10020, api.address_free);
  look_up("cuMemCreate", 10020, api.create);
  look_up("cuMemRelease", 10020, api.release);
  look_up("cuMemMap", 10020, api.map);
  look_up("cuMemUnmap", 10020, api.unmap);
  look_up("cuMemSetAccess", 10020, api.set_access);
  return api;
}

}  // namespace

bool DriverApi::has_contexts() const {
  return get_error_string && init && device_get && context_retain && context_release && context_push && context_pop &&
         context_device && stream_context;
}

bool DriverApi::has_virtual_memory() const {
  return get_granularity && address_reserve && address_free && create && release && map && unmap && set_access;
}

void DriverApi::check(CUresult status, std::string_view what, const std::source_location& where) const {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  get_error_string(status, &text);
  fail(what, "driver error " + std::to_string(static_cast<int>(status)), text != nullptr ? text : "no description",
       where);
}

const DriverApi& driver_api() {
  static const DriverApi api = load();
  return api;
}

}  // namespace tenon::cuda
