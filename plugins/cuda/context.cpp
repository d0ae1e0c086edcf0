// The context of a device: retained once, released with its driver.
#include "context.h"

namespace tenon::cuda {

Context::Context(int device) : device_(device) {
  const DriverApi& driver = driver_api();
  if (!driver.has_contexts()) throw Error("cuda: the installed driver lacks calls of CUDA 12.0: update it");
  driver.check(driver.init(0), "cuInit");
  CUdevice ordinal = 0;
  driver.check(driver.device_get(&ordinal, device), "cuDeviceGet");
  driver.check(driver.context_retain(&context_, ordinal), "cuDevicePrimaryCtxRetain");
}

Context::~Context() {
  CUdevice ordinal = 0;
  if (driver_api().device_get(&ordinal, device_) == CUDA_SUCCESS) driver_api().context_release(ordinal);
}

}  // namespace tenon::cuda
