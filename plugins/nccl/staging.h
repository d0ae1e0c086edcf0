// Buffers in host memory, which NCCL does not take: they go through the device. What programs agree on besides tensors
// (numbers of a step, what was used) lies on the host.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstddef>
#include <memory>

namespace tenon::nccl {

/// Memory of a device for the length of one operation, beside buffers of the host.
class Staging {
 public:
  /// Null where the request's buffers are of the device. Else the request is changed to read and write here; what it
  /// reads is copied on `stream`, which the operation has to come after. `operations`: the stream that it runs on, also
  /// where nobody keeps this until it is done. `ranks`: how many there are.
  static std::shared_ptr<Staging> of(CommRequest& request, DeviceState& device, StreamRef stream, StreamRef operations,
                                     int ranks);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// When the operation is done: what it wrote, to the host.
  void bring_back();

 private:
  Staging(CommRequest& request, DeviceState& device, StreamRef stream, StreamRef operations, int ranks);

  DeviceState& device_;
  StreamRef stream_;
  std::shared_ptr<AllocatorStack> allocator_;
  Block block_;
  void* to_ = nullptr;
  const void* from_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tenon::nccl
