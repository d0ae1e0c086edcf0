// The device that batches are pinned for.
#include <tenon/data/pin_memory.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/create/pinned.h>
#include <tenon/tensor/libtorch/warning.h>

namespace tenon::data {

std::optional<Device> pinning_of_batches(const std::string& device) {
  if (!device.empty()) {
    pinned_host_allocator(Device(device));
    return Device(device);
  }
  const std::optional<Device> found = pinned_memory_device();
  if (!found)
    TENON_WARN(
        "'pin_memory' of the data loader is set but no open device has page-locked host memory: batches stay in "
        "ordinary memory. Open the device before the loader is made, or name it in 'pin_memory_device'");
  return found;
}

}  // namespace tenon::data
