// One block for both buffers, which may be one.
#include "staging.h"

#include "current_device.h"

#include <algorithm>

namespace tenon::nccl {

std::shared_ptr<Staging> Staging::of(CommRequest& request, DeviceState& device, StreamRef stream, StreamRef operations,
                                     int ranks) {
  const void* const some = request.input != nullptr ? request.input : request.output;
  if (request.count == 0 || device_of(some) >= 0) return nullptr;
  return std::shared_ptr<Staging>(new Staging(request, device, stream, operations, ranks));
}

Staging::Staging(CommRequest& request, DeviceState& device, StreamRef stream, StreamRef operations, int ranks)
    : device_(device), stream_(stream), allocator_(device.shared_allocator()) {
  const std::size_t part = request.count * size_of(request.dtype), all = part * static_cast<std::size_t>(ranks);
  const std::size_t input = request.kind == CommKind::kReduceScatter ? all : part;
  const std::size_t output = request.kind == CommKind::kAllGather ? all : part;
  // Behind each other: no kind of operation then reads what it writes.
  const std::size_t second = (input + 255) / 256 * 256;
  block_ = allocator_->allocate({.bytes = second + output, .stream = stream, .purpose = Purpose::kWorkspace});
  allocator_->record_use(block_, operations);
  auto* const place = static_cast<std::byte*>(block_.data);
  const void* const read = request.kind == CommKind::kBroadcast ? request.output : request.input;
  if (read != nullptr) device.driver().copy(place, read, input, CopyKind::kHostToDevice, stream);
  if (request.kind != CommKind::kSend) {
    to_ = request.output;
    bytes_ = output;
  }
  const bool is_in_place = request.kind == CommKind::kBroadcast;
  from_ = is_in_place ? place : place + second;
  request.output = const_cast<void*>(from_);
  request.input = place;
}

Staging::~Staging() { allocator_->deallocate(block_); }

void Staging::bring_back() {
  if (bytes_ == 0) return;
  device_.driver().copy(to_, from_, bytes_, CopyKind::kDeviceToHost, stream_);
  device_.driver().synchronize(stream_);
}

}  // namespace tenon::nccl
