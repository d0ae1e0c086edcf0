// Threads and devices of the process.
#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/device/devices.h>
#include <tenon/device/vendor_libraries.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>

#include <atomic>
#include <string>
#include <thread>

namespace tenon {
namespace {
std::atomic<int> interop_threads{0};
}

int get_num_threads() {
  const int count = device_state(Device(kCPU)).driver().threads();
  return count > 0 ? count : static_cast<int>(std::thread::hardware_concurrency());
}
void set_num_threads(int count) {
  if (count <= 0) throw Error("Expected positive number of threads, got " + std::to_string(count));
  device_state(Device(kCPU)).driver().set_threads(count);
}
int get_num_interop_threads() {
  const int count = interop_threads;
  return count > 0 ? count : static_cast<int>(std::thread::hardware_concurrency());
}
void set_num_interop_threads(int count) {
  if (count <= 0) throw Error("Expected positive number of threads, got " + std::to_string(count));
  interop_threads = count;
}

namespace cuda {
std::size_t device_count() { return static_cast<std::size_t>(tenon::device_count(kCUDA)); }
DeviceIndex current_device() { return tenon::current_device(kCUDA); }
void set_device(DeviceIndex index) { tenon::set_device(Device(kCUDA, index)); }
bool is_available() { return tenon::is_available(kCUDA); }
bool cudnn_is_available() {
  return is_available() && has_vendor_library(device_state(Device(kCUDA, 0)).driver(), "cudnn");
}
void manual_seed(std::uint64_t seed) { default_generator(Device(kCUDA)).set_current_seed(seed); }
void manual_seed_all(std::uint64_t seed) { manual_seed(seed); }
void synchronize(std::int64_t device_index) {
  device_state(Device(kCUDA, static_cast<DeviceIndex>(device_index))).driver().synchronize();
}
}  // namespace cuda

}  // namespace tenon
