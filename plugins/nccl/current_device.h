// The device that NCCL's calls mean: the one whose context is current. As in the plugin cuda, no context is made that
// the process does not use: the primary context is pushed for the length of a call, and cudaSetDevice never called.
#pragma once

namespace tenon::nccl {

/// Keeps the primary context of one device. Throws Error where the driver lacks what that takes.
class DeviceContext {
 public:
  explicit DeviceContext(int device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

 private:
  friend class CurrentDevice;
  int ordinal_ = 0;
  void* context_ = nullptr;
};

/// That device is this thread's while it lives; then what was before.
class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceContext& context);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
};

/// The device whose memory the address is of; -1: of none.
int device_of(const void* address);

}  // namespace tenon::nccl
