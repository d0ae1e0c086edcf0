// What Tenon's references stand for: a stream's id is its cudaStream_t, an event's its cudaEvent_t. Stream 0 is CUDA's
// legacy stream.
#pragma once

#include <tenon/device/device_driver.h>

#include <cuda_runtime_api.h>

namespace tenon::cuda {

inline cudaStream_t native(StreamRef stream) { return reinterpret_cast<cudaStream_t>(stream.id); }
inline cudaEvent_t native(EventRef event) { return reinterpret_cast<cudaEvent_t>(event.id); }

inline cudaMemcpyKind native(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return cudaMemcpyHostToDevice;
    case CopyKind::kDeviceToHost:
      return cudaMemcpyDeviceToHost;
    case CopyKind::kDeviceToDevice:
    case CopyKind::kPeerToPeer:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

}  // namespace tenon::cuda
