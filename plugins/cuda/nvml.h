// NVIDIA's management library, which nvidia-smi asks: how busy a GPU is, and which processes use its memory. It comes
// with the driver, is opened when it is first needed, and makes no context on the GPU.
#pragma once

#include <tenon/device/device_use.h>

#include <mutex>
#include <string>

namespace tenon::cuda {

class Nvml {
 public:
  explicit Nvml(std::string library = "libnvidia-ml.so.1") : library_(std::move(library)) {}
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The GPU with that address, "00000000:65:00.0". Throws Error where the library is missing or refuses, with its
  /// words. Thread-safe.
  DeviceUse look(const std::string& pci_address);

 private:
  struct Functions;
  void open_locked();

  const std::string library_;
  std::mutex mutex_;  // guards what follows
  Functions* functions_ = nullptr;
};

}  // namespace tenon::cuda
