// DeviceState: what the process knows of one device: its driver, and the allocator in service.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace tenon {

class History;

class TENON_EXPORT DeviceState {
 public:
  TENON_API DeviceState(Device device, DeviceDriver& driver);
  TENON_API ~DeviceState();
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  Device device() const { return device_; }
  DeviceDriver& driver() const { return driver_; }

  /// The allocator that new storages take from. Never null once the device is open.
  AllocatorStack& allocator() const { return *current_.load(std::memory_order_acquire); }
  TENON_API std::shared_ptr<AllocatorStack> shared_allocator() const;
  /// Puts another one in service and returns the old one. Blocks of the old one go back to it, so this object
  /// keeps it until the device is closed; storages and allocator() have plain references.
  TENON_API std::shared_ptr<AllocatorStack> swap_allocator(std::shared_ptr<AllocatorStack> next);
  /// All that ever were in service, the current one last.
  TENON_API std::vector<std::shared_ptr<AllocatorStack>> allocators() const;

  /// The ceiling on reserved bytes of every allocator that serves this device, 0 for none.
  TENON_API void set_memory_limit(std::size_t limit_bytes);
  std::size_t memory_limit() const { return memory_limit_.load(std::memory_order_relaxed); }

  /// The allocator of the driver's page-locked host memory, made on first use; null where the driver has none.
  TENON_API std::shared_ptr<AllocatorStack> pinned_host_allocator();

  /// What happened to this device's memory, under whichever allocator; see record_memory_history().
  History& history() const { return *history_; }

 private:
  Device device_;
  DeviceDriver& driver_;
  std::atomic<std::size_t> memory_limit_{0};
  std::atomic<AllocatorStack*> current_{nullptr};
  struct Parts;
  Owned<Parts> parts_;
  History* history_;  ///< in parts_
};

/// The state of a device, opened on first use by the resolver. An index of -1 means the current device of that kind.
/// Throws Error that names the device, the kinds that are loaded and how to load more.
TENON_API DeviceState& device_state(Device device);

/// Opened devices, in order.
TENON_API std::vector<DeviceState*> open_devices();

/// How device_state() opens a device it does not have yet; set once by the layer that knows plugins.
using DeviceResolver = std::unique_ptr<DeviceState> (*)(Device device);
TENON_API void set_device_resolver(DeviceResolver resolver);

/// Told of every device that was opened, by the thread that did; one function a process.
using DeviceOpened = void (*)(Device device);
/// Sets it. Devices that are open already are not told.
TENON_API void set_device_opened(DeviceOpened told);

/// Forgets every open device. Storages must be gone.
TENON_API void close_devices();

class Stream;

/// The stream that this thread queues work on, per device; 0 unless a StreamGuard says otherwise.
TENON_API StreamRef current_stream(Device device);
class TENON_API StreamGuard {
 public:
  StreamGuard(Device device, StreamRef stream);
  /// A stream of stream.h, on its device. It must outlive the guard.
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  StreamRef previous_;
};

/// The current device of a kind, for Device(kCUDA) without an index.
TENON_API DeviceIndex current_device(DeviceType type);
TENON_API DeviceIndex set_current_device(DeviceType type, DeviceIndex index);

}  // namespace tenon
