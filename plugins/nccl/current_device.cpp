// Seven functions of CUDA's driver, whose signatures are those of its documentation ("CUDA Driver API").
#include "current_device.h"

#include "nccl_api.h"

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <dlfcn.h>

#include <string>

namespace tenon::nccl {
namespace {

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*attribute)(void*, int, unsigned long long) = nullptr;
};

Driver find_driver() {
  std::string why;
  void* const library = open_library("libcuda.so.1", why);
  if (library == nullptr)
    throw ConfigError(fmt::format(
        "the communicator nccl needs the NVIDIA driver, whose libcuda.so.1 cannot be opened: {}. Install it, "
        "or set distributed.name to \"mpi\" for ranks on CPUs",
        why));
  Driver driver;
  const auto look_up = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) throw Error(fmt::format("the NVIDIA driver has no {}: update it", name));
  };
  look_up(driver.init, "cuInit");
  look_up(driver.device_get, "cuDeviceGet");
  look_up(driver.retain, "cuDevicePrimaryCtxRetain");
  look_up(driver.release, "cuDevicePrimaryCtxRelease_v2");
  look_up(driver.push, "cuCtxPushCurrent_v2");
  look_up(driver.pop, "cuCtxPopCurrent_v2");
  look_up(driver.attribute, "cuPointerGetAttribute");
  return driver;
}

const Driver& driver() {
  static const Driver loaded = find_driver();
  return loaded;
}

void check(int status, const char* call, int device) {
  if (status != 0)
    throw ConfigError(
        fmt::format("the communicator nccl: {} on device {}: error {} of the NVIDIA driver; nvidia-smi -L lists "
                    "the devices, and distributed.nccl.device says which one is meant",
                    call, device, status));
}

}  // namespace

DeviceContext::DeviceContext(int device) {
  check(driver().init(0), "cuInit", device);
  check(driver().device_get(&ordinal_, device), "cuDeviceGet", device);
  check(driver().retain(&context_, ordinal_), "cuDevicePrimaryCtxRetain", device);
}

DeviceContext::~DeviceContext() { driver().release(ordinal_); }

CurrentDevice::CurrentDevice(const DeviceContext& context) {
  check(driver().push(context.context_), "cuCtxPushCurrent", context.ordinal_);
}

int device_of(const void* address) {
  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  constexpr int kMemoryType = 2, kDevice = 2, kOrdinal = 9;
  unsigned type = 0;
  const auto number = reinterpret_cast<unsigned long long>(address);
  if (driver().attribute(&type, kMemoryType, number) != 0 || type != kDevice)
    return -1;  // an error: it does not know it
  int ordinal = -1;
  check(driver().attribute(&ordinal, kOrdinal, number), "cuPointerGetAttribute", ordinal);
  return ordinal;
}

CurrentDevice::~CurrentDevice() {
  void* popped = nullptr;
  driver().pop(&popped);
}

}  // namespace tenon::nccl
