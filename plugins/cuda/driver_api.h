// The driver's contexts and virtual memory, looked up at run time: the plugin needs no libcuda to load, so that a
// machine without a driver can say so instead of failing.
#pragma once

#include "check.h"

#include <cuda.h>
#include <cudaTypedefs.h>

namespace tenon::cuda {

struct DriverApi {
  PFN_cuGetErrorString_v6000 get_error_string = nullptr;
  PFN_cuInit_v2000 init = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 context_retain = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v11000 context_release = nullptr;
  PFN_cuCtxPushCurrent_v4000 context_push = nullptr;
  PFN_cuCtxPopCurrent_v4000 context_pop = nullptr;
  PFN_cuCtxGetDevice_v2000 context_device = nullptr;
  PFN_cuStreamGetCtx_v9020 stream_context = nullptr;

  PFN_cuMemGetAllocationGranularity_v10020 get_granularity = nullptr;
  PFN_cuMemAddressReserve_v10020 address_reserve = nullptr;
  PFN_cuMemAddressFree_v10020 address_free = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 set_access = nullptr;

  /// Whether the installed driver has all calls of the first and of the second group.
  bool has_contexts() const;
  bool has_virtual_memory() const;
  void check(CUresult status, std::string_view what,
             const std::source_location& where = std::source_location::current()) const;
};

/// Looked up once a process.
const DriverApi& driver_api();

}  // namespace tenon::cuda
