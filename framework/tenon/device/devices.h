// Which devices there are, which one a thread means, and waiting for them: torch.cuda's functions, for every kind.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

namespace tenon {

/// The number of devices of a kind; opens none. 0 where the machine has none, or no plugin for them.
TENON_API int device_count(DeviceType kind);
/// Whether there is a device of that kind: is_available(kCUDA) ? kCUDA : kCPU.
TENON_API bool is_available(DeviceType kind);

/// Makes the device the current one of its kind on this thread: what Device(kCUDA) without an index then means. Throws
/// Error for a device without an index, and for one that is not there.
TENON_API void set_device(Device device);

/// Another current device of its kind for as long as the guard lives, on this thread. Throws what set_device() throws.
class TENON_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  /// The device that was current before.
  Device original_device() const { return original_; }

 private:
  Device original_;
};

/// Name, memory, compute units and the rest of what a device says of itself. Opens it.
TENON_API DeviceProperties device_properties(Device device);

/// Waits until everything that was queued on the device is done, on all of its streams.
TENON_API void synchronize(Device device);

/// How device_count() counts; set once by the layer that knows plugins. It throws Error where it finds no backend.
using DeviceCounter = int (*)(DeviceType kind);
TENON_API void set_device_counter(DeviceCounter counter);

}  // namespace tenon
