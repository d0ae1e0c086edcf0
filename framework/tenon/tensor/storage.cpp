// Storage: from the allocator in service, and back to the one it came from.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/tensor/storage.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tenon {

StorageSource::~StorageSource() = default;

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

void StorageImpl::give_back() {
  if (foreign_) throw Error("memory that no allocator here gave cannot be given back between uses");
  if (block_.data != nullptr) release_memory();
  block_ = {};
  allocator_ = nullptr;
}

void StorageImpl::take_memory_of(StorageImpl& other) {
  const bool fits = other.bytes_ == bytes_ && other.device_ == device_ && !other.foreign_ && !foreign_;
  if (!fits || block_.data != nullptr)
    throw Error(fmt::format("a storage of {} B on {} cannot take the memory of one of {} B on {}{}", bytes_,
                            device_.str(), other.bytes_, other.device_.str(),
                            block_.data != nullptr ? ": it has its own" : ""));
  block_ = std::exchange(other.block_, {});
  allocator_ = std::exchange(other.allocator_, nullptr);
  other.bytes_ = 0;
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
