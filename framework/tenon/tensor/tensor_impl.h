// TensorImpl: a view of a storage (dtype, sizes, strides, offset), its version counter, and autograd's opaque
// companion.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/core/recycled.h>
#include <tenon/core/scope/wanted.h>
#include <tenon/kernel/tensor_view.h>
#include <tenon/tensor/intrusive_ptr.h>
#include <tenon/tensor/libtorch/types.h>
#include <tenon/tensor/shape/dims.h>
#include <tenon/tensor/storage.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tenon {

/// A version counter apart from a storage's: x.data() and set_data() need one.
struct VersionCounter final : RefCounted, Recycled {
  std::atomic<std::uint32_t> value{0};
};

/// What autograd keeps beside a tensor. The layers below know only that it exists.
class TENON_EXPORT AutogradMetaBase : public Recycled {
 public:
  AutogradMetaBase() = default;
  AutogradMetaBase(const AutogradMetaBase&) = delete;
  AutogradMetaBase& operator=(const AutogradMetaBase&) = delete;
  TENON_API virtual ~AutogradMetaBase();
};

class TensorImpl;

/// Puts a tensor that was just made on the list of all tensors (live_tensors.h), where scopes::are_lives_wanted().
TENON_API void list_tensor(const TensorImpl* tensor) noexcept;

class TENON_EXPORT TensorImpl final : public RefCounted, public Recycled {
 public:
  /// For who has asked scopes::wanted() already, and was told 0.
  struct Unlisted {};
  [[gnu::always_inline]] TensorImpl(Unlisted /*asked*/, IntrusivePtr<StorageImpl> storage, Dtype dtype)
      : storage_(std::move(storage)), dtype_(dtype) {}
  [[gnu::always_inline]] TensorImpl(IntrusivePtr<StorageImpl> storage, Dtype dtype)
      : storage_(std::move(storage)), dtype_(dtype) {
    if (scopes::are_lives_wanted()) [[unlikely]]
      list_tensor(this);
  }
  TENON_API ~TensorImpl();

  /// The memory.
  StorageImpl& storage() const { return *storage_; }
  /// The memory, shared.
  const IntrusivePtr<StorageImpl>& storage_ptr() const { return storage_; }
  /// The type of the elements.
  Dtype dtype() const { return dtype_; }
  /// The host has no index, as in PyTorch.
  Device device() const {
    const Device device = storage_->device();
    return device.is_cpu() ? Device(kCPU) : device;
  }
  /// The sizes of all dims.
  const Dims& sizes() const { return sizes_; }
  /// The strides of all dims, in elements.
  const Dims& strides() const { return strides_; }
  /// The number of dims.
  int rank() const { return sizes_.rank(); }
  /// The number of elements.
  std::int64_t numel() const { return numel_; }
  /// Where in the storage the first element is, in elements.
  std::int64_t offset() const { return offset_; }
  /// Whether the elements lie without gaps in row-major order; true where there are none.
  bool is_contiguous() const { return is_contiguous_; }
  /// Every element has a place of its own in one dense run, in some order of the dimensions.
  TENON_API bool is_non_overlapping_and_dense() const;
  /// Whether two positions may be one element; never falsely false.
  TENON_API bool may_overlap_itself() const;
  /// The address of the first element; of no meaning where the storage is empty, unlike view()'s, which is then null.
  void* data() const {
    return static_cast<char*>(storage_->data()) + offset_ * static_cast<std::int64_t>(size_of(dtype_));
  }

  /// What a kernel gets of it.
  TensorView view() const {
    return {storage_->data() ? data() : nullptr, sizes_.data(), strides_.data(), sizes_.rank(), dtype_};
  }

  /// Gives it these sizes, row-major; the offset stays, and nothing is checked.
  void set_contiguous(const Dims& sizes) {
    sizes_ = sizes;
    const int rank = sizes.rank();
    strides_.resize(rank);
    std::int64_t step = 1;
    std::int64_t count = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides_[i] = step;
      count *= sizes[i];
      if (sizes[i] > 1) step *= sizes[i];
    }
    numel_ = count;
    is_contiguous_ = true;
  }
  /// Gives it these sizes, strides and offset, in elements. Throws Error, with nothing changed, where the number of
  /// elements overflows; whether the storage has them is not checked.
  TENON_API void set_strided(const Dims& sizes, const Dims& strides, std::int64_t offset);
  /// Puts it on other memory, as elements of that type; sizes, strides and offset stay.
  TENON_API void set_storage(IntrusivePtr<StorageImpl> storage, Dtype dtype);

  /// How often it was written to in place, by its own counter if it has one, else by the storage's.
  std::uint32_t version() const {
    return own_version_ ? own_version_->value.load(std::memory_order_relaxed)
                        : storage_->version().load(std::memory_order_relaxed);
  }
  /// Counts a write in place. An inference tensor has no count: throws Error for one outside of inference mode.
  void bump_version() {
    if (inference_) [[unlikely]] {
      check_inference_write();
      return;
    }
    (own_version_ ? own_version_->value : storage_->version()).fetch_add(1, std::memory_order_relaxed);
  }
  /// libtorch's handle: x.unsafeGetTensorImpl()->version_counter().current_version().
  class VersionHandle {
   public:
    explicit VersionHandle(const TensorImpl& impl) : impl_(impl) {}
    /// Throws Error for an inference tensor, which has none.
    TENON_API std::uint32_t current_version() const;

   private:
    const TensorImpl& impl_;
  };
  /// A handle that asks this object, and so must not outlive it.
  VersionHandle version_counter() const { return VersionHandle(*this); }
  /// Views and detach() share the counter of what they alias.
  void share_version(const TensorImpl& other) { own_version_ = other.own_version_; }
  /// Gives it a counter of its own, apart from the storage's, that begins at this value.
  void set_own_version(std::uint32_t value) {
    own_version_ = make_intrusive<VersionCounter>();
    own_version_->value = value;
  }

  /// What autograd knows of the tensor; null where it knows nothing.
  AutogradMetaBase* autograd_meta() const { return autograd_meta_.load(std::memory_order_acquire); }
  /// Says what autograd knows of it, of which nothing was known. A thread that looks at listed tensors meanwhile sees
  /// nothing, or all of it.
  void set_autograd_meta(Owned<AutogradMetaBase> meta) {
    autograd_meta_.store(meta.release(), std::memory_order_release);
  }

  /// Made from a C++ number: takes part in type promotion as its category only.
  bool is_wrapped_number() const { return wrapped_number_; }
  /// Marks it as a number, which weighs less in promotion.
  void set_wrapped_number(bool value) { wrapped_number_ = value; }
  /// Whether it was made in inference mode, or is a view of such a tensor.
  bool is_inference() const { return inference_; }
  /// Marks it as made in inference mode.
  void set_inference(bool value) { inference_ = value; }

 private:
  /// An inference tensor may be written in inference mode only. Throws Error.
  TENON_API static void check_inference_write();

  IntrusivePtr<StorageImpl> storage_;
  std::atomic<AutogradMetaBase*> autograd_meta_{nullptr};  ///< owned
  IntrusivePtr<VersionCounter> own_version_;
  std::int64_t offset_ = 0;
  std::int64_t numel_ = 1;
  Dtype dtype_;
  bool is_contiguous_ = true;
  bool wrapped_number_ = false;
  bool inference_ = false;
  Dims sizes_;
  Dims strides_;
};

}  // namespace tenon
