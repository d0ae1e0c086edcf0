// Storage: from the allocator in service, and back to the one it came from.
#include <tenon/core/error.h>
#include <tenon/tensor/storage.h>

#include <algorithm>
#include <string>

namespace tenon {

StorageImpl::StorageImpl(DeviceState& state, void* data, std::size_t bytes, std::function<void(void*)> deleter, void* context)
    : state_(&state), device_(state.device()), bytes_(bytes), foreign_(std::make_unique<Foreign>()) {
  foreign_->deleter = std::move(deleter);
  foreign_->context = context;
  block_.data = data;
  block_.bytes = bytes;
}

void StorageImpl::allocate() {
  AllocatorStack& stack = state_->allocator();
  allocator_ = &stack;
  block_ = stack.allocate({.bytes = bytes_,
                           .stream = current_stream(device_),
                           .purpose = current_purpose(),
                           .label = current_label()});
}

void StorageImpl::release_memory() noexcept {
  if (foreign_) {
    if (foreign_->deleter) foreign_->deleter(foreign_->context);
  } else if (allocator_) {
    allocator_->deallocate(block_);
  }
}

void StorageImpl::record_stream(StreamRef stream) {
  if (allocator_) allocator_->record_use(block_, stream);
}

void StorageImpl::resize(std::size_t bytes) {
  if (foreign_) throw Error("Trying to resize storage that is not resizable");
  if (bytes == bytes_) return;
  AllocatorStack& stack = state_->allocator();
  Block fresh;
  if (bytes > 0) {
    fresh = stack.allocate(
        {.bytes = bytes, .stream = current_stream(device_), .purpose = current_purpose(), .label = current_label()});
    const std::size_t kept = std::min(bytes, bytes_);
    if (kept > 0) {
      state_->driver().copy(fresh.data, block_.data, kept, CopyKind::kDeviceToDevice, current_stream(device_));
    }
  }
  if (bytes_ > 0) release_memory();
  block_ = fresh;
  allocator_ = bytes > 0 ? &stack : nullptr;
  bytes_ = bytes;
}

}  // namespace tenon
