// c10/cuda/CUDAGuard.h of libtorch: another current device, or another current stream, for as long as a guard lives.
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <optional>

namespace tenon::cuda {

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) : CUDAGuard(Device(kCUDA, index)) {}
  /// Throws Error for a device that is not there.
  explicit CUDAGuard(Device device) : original_(device_of_index(-1)) { set_device(device); }
  ~CUDAGuard() { set_current_device(kCUDA, original_.index()); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;

  /// Yet another one; the end of the guard brings back what was before it.
  void set_device(Device device) { tenon::set_device(device); }
  void set_index(DeviceIndex index) { set_device(Device(kCUDA, index)); }
  Device original_device() const { return original_; }
  Device current_device() const { return device_of_index(-1); }

 private:
  Device original_;
};

/// A guard that does nothing until it is told a device.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) set_device(*device);
  }
  void set_device(Device device) { guard_ ? guard_->set_device(device) : static_cast<void>(guard_.emplace(device)); }
  void set_index(DeviceIndex index) { set_device(Device(kCUDA, index)); }

 private:
  std::optional<CUDAGuard> guard_;
};

/// Makes a stream the current one of its device, and its device the current one.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(const CUDAStream& stream)
      : original_(getCurrentCUDAStream(stream.device_index())),
        current_(stream),
        device_(stream.device()),
        guard_(stream.device(), stream) {}
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;

  CUDAStream original_stream() const { return original_; }
  CUDAStream current_stream() const { return current_; }
  Device original_device() const { return device_.original_device(); }

 private:
  CUDAStream original_, current_;
  CUDAGuard device_;
  StreamGuard guard_;
};

}  // namespace tenon::cuda
