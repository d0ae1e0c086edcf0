// c10/cuda/CUDAStream.h of libtorch: streams of CUDA devices by value.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace tenon::cuda {

/// A stream of a CUDA device: the default one, the current one, or one from getStreamFromPool(), which lives as long as
/// a copy of it.
class CUDAStream {
 public:
  CUDAStream(Device device, StreamRef stream) : device_(device), stream_(stream) {}
  explicit CUDAStream(Stream stream) : device_(stream.device()), stream_(stream.ref()), owned_(std::move(stream)) {}

  Device device() const { return device_; }
  DeviceIndex device_index() const { return device_.index(); }
  std::uint64_t id() const { return stream_.id; }
  operator StreamRef() const { return stream_; }  // NOLINT: as Stream
  /// Waits until it has done what is queued on it.
  void synchronize() const { device_state(device_).driver().synchronize(stream_); }
  /// Whether it has done what is queued on it.
  bool query() const {
    MemorySource& memory = device_state(device_).driver().memory();
    return memory.reached(memory.mark(stream_));
  }
  bool operator==(const CUDAStream& other) const { return device_ == other.device_ && stream_ == other.stream_; }

 private:
  Device device_;
  StreamRef stream_;
  std::optional<Stream> owned_;
};

/// The CUDA device of that index, of -1 the current one.
inline Device device_of_index(DeviceIndex index) { return {kCUDA, index < 0 ? tenon::current_device(kCUDA) : index}; }
/// The stream that this thread queues work on.
inline CUDAStream getCurrentCUDAStream(DeviceIndex index = -1) {
  const Device device = device_of_index(index);
  return {device, current_stream(device)};
}
/// Stream 0, which always exists.
inline CUDAStream getDefaultCUDAStream(DeviceIndex index = -1) { return {device_of_index(index), StreamRef{}}; }
/// A new stream, of high priority or of the usual one. libtorch hands out one of 32 again.
inline CUDAStream getStreamFromPool(bool is_high_priority = false, DeviceIndex index = -1) {
  return CUDAStream(Stream(device_of_index(index), is_high_priority ? -1 : 0));
}

}  // namespace tenon::cuda
