// StorageImpl: one block of memory with the allocator it returns to, shared by all views of it.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/core/recycled.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/tensor/intrusive_ptr.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace tenon {

class StorageImpl;

/// Brings the memory of storages that have none between uses: parameters that are divided over ranks. It outlives them,
/// or lets go of them with StorageImpl::leave_to(nullptr).
class TENON_EXPORT StorageSource {
 public:
  StorageSource() = default;
  StorageSource(const StorageSource&) = delete;
  StorageSource& operator=(const StorageSource&) = delete;
  TENON_API virtual ~StorageSource();
  /// Called when somebody asks for the address and there is none: gives the storage its memory (take_memory_of()).
  /// Throws what it throws; the asker gets that.
  virtual void bring(StorageImpl& storage) = 0;
};

class TENON_EXPORT StorageImpl final : public RefCounted, public Recycled {
 public:
  /// Takes `bytes` from the allocator in service on the device, with this thread's purpose, label and stream.
  StorageImpl(DeviceState& state, std::size_t bytes, ElementKind elements = ElementKind::kUntyped)
      : state_(&state), device_(state.device()), elements_(elements), bytes_(bytes) {
    if (bytes > 0) allocate();
  }
  /// Foreign memory, which no allocator here gave; `deleter` (may be empty) runs when the storage ends.
  TENON_API StorageImpl(DeviceState& state, void* data, std::size_t bytes, std::function<void(void*)> deleter,
                        void* context);
  /// Page-locked host memory for copies from and to a device, from that device's allocator of it
  /// (memory/pinned_cache.h), with this thread's purpose and label. Throws Error where the device has none.
  struct PinnedFor {
    DeviceState& device;
  };
  TENON_API StorageImpl(DeviceState& host, std::size_t bytes, PinnedFor pinned,
                        ElementKind elements = ElementKind::kUntyped);
  ~StorageImpl() {
    if (bytes_ > 0 || foreign_) release_memory();
  }

  /// The address of the memory; null where it has no bytes. Of a storage that is left to a source, which brings the
  /// memory first where it is not there.
  void* data() const {
    if (block_.data == nullptr && source_of_memory_ != nullptr) [[unlikely]]
      source_of_memory_->bring(const_cast<StorageImpl&>(*this));
    return block_.data;
  }
  /// From now on `source` brings the memory when it is asked for and not there; null: nobody does. It must not be
  /// foreign memory.
  void leave_to(StorageSource* source) { source_of_memory_ = source; }
  /// Whether it has its memory; asks only.
  bool is_there() const { return block_.data != nullptr || bytes_ == 0; }
  /// Gives the memory back, in the order of the current stream; the size stays. Of a storage that is left to a source.
  TENON_API void give_back();
  /// The memory of `other`, which has as many bytes on the same device, becomes this one's; other has none any more.
  /// Throws Error where that does not hold, or this one has memory.
  TENON_API void take_memory_of(StorageImpl& other);
  /// The size in bytes, as requested.
  std::size_t nbytes() const { return bytes_; }
  /// The device that the memory is on.
  Device device() const { return device_; }
  /// The state of its device.
  DeviceState& state() const { return *state_; }
  /// The device that this host memory is page-locked for; null for all other memory.
  DeviceState* pinned_for() const { return foreign_ ? foreign_->pinned_for : nullptr; }
  /// The block as the allocator handed it out; for foreign memory, its address and size.
  const Block& block() const { return block_; }
  /// The stack that the block came from and goes back to; null for foreign memory, and where there is none.
  AllocatorStack* allocator() const { return allocator_; }
  /// What the deleter of foreign memory is given, else the address.
  void* context() const { return foreign_ ? foreign_->context : block_.data; }
  /// Counts in-place writes; shared by every view of this storage that has no counter of its own.
  std::atomic<std::uint32_t>& version() { return version_; }
  /// Also used on another stream: the block is not reused before that stream has finished the work queued on it so far.
  TENON_API void record_stream(StreamRef stream);
  /// Grows or shrinks, keeping what fits. Throws Error for foreign memory.
  TENON_API void resize(std::size_t bytes);

 private:
  struct Foreign {  ///< memory from elsewhere than the device's own allocator
    std::function<void(void*)> deleter;
    void* context = nullptr;
    DeviceState* pinned_for = nullptr;
  };
  AllocatorStack& source() const;
  StreamRef home_stream() const;
  Request request_of(std::size_t bytes) const;
  TENON_API void allocate();
  TENON_API void release_memory() noexcept;

  DeviceState* state_;
  Device device_;
  std::atomic<std::uint32_t> version_{0};
  ElementKind elements_ = ElementKind::kUntyped;
  std::size_t bytes_;
  Block block_;
  AllocatorStack* allocator_ = nullptr;  ///< borrowed: DeviceState keeps every stack that ever was in service
  Owned<Foreign> foreign_;
  StorageSource* source_of_memory_ = nullptr;  ///< borrowed; null for all but divided parameters
};

/// libtorch's handle: x.storage().data(), x.storage().data_ptr().get().
class TENON_EXPORT DataPtr {
 public:
  explicit DataPtr(const StorageImpl* storage) : storage_(storage) {}
  /// The address of the memory.
  void* get() const { return storage_->data(); }
  /// What its deleter is given: the address itself unless the memory is foreign.
  void* get_context() const { return storage_->context(); }
  /// The device that the memory is on.
  Device device() const { return storage_->device(); }
  operator bool() const { return get() != nullptr; }  // NOLINT

 private:
  const StorageImpl* storage_;
};

class TENON_EXPORT Storage {
 public:
  Storage() = default;
  explicit Storage(IntrusivePtr<StorageImpl> impl) : impl_(std::move(impl)) {}
  /// The address of the memory.
  void* data() const { return impl_->data(); }
  template <class T>
  T* data() const {
    return static_cast<T*>(impl_->data());
  }
  /// The memory under libtorch's handle, which is borrowed: it is valid while a tensor or Storage holds the memory.
  DataPtr data_ptr() const { return DataPtr(impl_.get()); }
  /// The size in bytes, as requested.
  std::size_t nbytes() const { return impl_->nbytes(); }
  /// The device that the memory is on.
  Device device() const { return impl_->device(); }
  /// How many tensors (views count, copies of a Tensor do not) and other Storage objects hold the memory.
  std::size_t use_count() const { return impl_->use_count() - 1; }
  /// Whether both are the same memory.
  bool is_alias_of(const Storage& other) const { return impl_ == other.impl_; }
  /// The implementation, borrowed.
  StorageImpl* unsafeGetStorageImpl() const { return impl_.get(); }
  explicit operator bool() const { return static_cast<bool>(impl_); }

 private:
  IntrusivePtr<StorageImpl> impl_;
};

}  // namespace tenon
