// Storage: from the allocator in service, and back to the one it came from.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/tensor/storage.h>

#include <algorithm>
#include <limits>
#include <string>

namespace tenon {

StorageImpl::StorageImpl(DeviceState& state, void* data, std::size_t bytes, std::function<void(void*)> deleter,
                         void* context)
    : state_(&state), device_(state.device()), bytes_(bytes), foreign_(std::make_unique<Foreign>()) {
  foreign_->deleter = std::move(deleter);
  foreign_->context = context;
  block_.data = data;
  block_.bytes = bytes;
}

StorageImpl::StorageImpl(DeviceState& host, std::size_t bytes, PinnedFor pinned, ElementKind elements)
    : state_(&host), device_(host.device()), elements_(elements), bytes_(bytes), foreign_(std::make_unique<Foreign>()) {
  foreign_->pinned_for = &pinned.device;
  if (bytes > 0) allocate();
  foreign_->context = block_.data;
}

AllocatorStack& StorageImpl::source() const {
  DeviceState* const pinned_for = this->pinned_for();
  return pinned_for ? *pinned_host_allocator(pinned_for->device()) : state_->allocator();
}

/// Page-locked memory is the host's: no stream of the device may still be at work on it when it is handed out again,
/// so every one of them, stream 0 too, is another one than this.
StreamRef StorageImpl::home_stream() const {
  constexpr StreamRef kHost{std::numeric_limits<std::uint64_t>::max()};
  return pinned_for() ? kHost : current_stream(device_);
}

Request StorageImpl::request_of(std::size_t bytes) const {
  return {.bytes = bytes,
          .stream = home_stream(),
          .purpose = current_purpose(),
          .label = current_label(),
          .elements = elements_};
}

void StorageImpl::allocate() {
  AllocatorStack& stack = source();
  allocator_ = &stack;
  block_ = stack.allocate(request_of(bytes_));
}

void StorageImpl::release_memory() noexcept {
  if (allocator_) {
    allocator_->deallocate(block_);
  } else if (foreign_ && foreign_->deleter) {
    foreign_->deleter(foreign_->context);
  }
}

void StorageImpl::record_stream(StreamRef stream) {
  if (allocator_) allocator_->record_use(block_, stream);
}

void StorageImpl::resize(std::size_t bytes) {
  if (foreign_ && !foreign_->pinned_for) throw Error("Trying to resize storage that is not resizable");
  if (bytes == bytes_) return;
  AllocatorStack& stack = source();
  Block fresh;
  if (bytes > 0) {
    fresh = stack.allocate(request_of(bytes));
    const std::size_t kept = std::min(bytes, bytes_);
    if (kept > 0) {
      state_->driver().copy(fresh.data, block_.data, kept, CopyKind::kDeviceToDevice, current_stream(device_));
    }
  }
  if (bytes_ > 0) release_memory();
  block_ = fresh;
  allocator_ = bytes > 0 ? &stack : nullptr;
  if (foreign_) foreign_->context = block_.data;
  bytes_ = bytes;
}

}  // namespace tenon
