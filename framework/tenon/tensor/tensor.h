// Tensor: the handle that users hold. Names and semantics are libtorch's. Methods that compute are defined beside their
// operator in ops/ and declared in methods/FAMILY.inl, those that concern gradients are defined in autograd/.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/scalar.h>
#include <tenon/tensor/shape/accessor.h>
#include <tenon/tensor/shape/array_ref.h>
#include <tenon/tensor/tensor_impl.h>
#include <tenon/tensor/tensor_options.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tenon {

class Tensor;
namespace indexing {
class TensorIndex;
}
namespace autograd {
class Node;
}

using TensorList = ArrayRef<Tensor>;

class TENON_EXPORT Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor& other) & = default;
  Tensor& operator=(Tensor&& other) & noexcept = default;
  /// x[i] = …: writes into the view.
  TENON_API Tensor& operator=(const Tensor& other) &&;
  TENON_API Tensor& operator=(Tensor&& other) &&;
  TENON_API Tensor& operator=(const Scalar& value) &&;

  // What it is.
  /// Whether there is a tensor. Most other functions throw Error where there is none.
  bool defined() const { return static_cast<bool>(impl_); }
  /// Lets go of the tensor; afterwards it is undefined.
  void reset() { impl_.reset(); }
  /// Whether both are the same object.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  /// How many Tensor objects, autograd's included, share this tensor; 0 where there is none.
  std::size_t use_count() const { return impl_ ? impl_->use_count() : 0; }
  /// The implementation, borrowed.
  TensorImpl* unsafeGetTensorImpl() const { return impl_.get(); }
  /// The implementation, shared.
  const IntrusivePtr<TensorImpl>& getIntrusivePtr() const { return impl_; }
  /// The implementation. Throws Error where there is no tensor.
  TensorImpl& impl() const {
    if (!impl_) undefined();
    return *impl_;
  }
  /// The number of dims. An undefined tensor has 1 and sizes [0], as in libtorch; most else of its data throws Error.
  std::int64_t dim() const { return impl_ ? impl_->rank() : 1; }
  std::int64_t ndimension() const { return dim(); }
  /// The sizes of all dims; valid while the tensor lives and keeps them.
  IntArrayRef sizes() const {
    if (!impl_) [[unlikely]]
      return kUndefinedSizes;
    return impl_->sizes();
  }
  /// The strides of all dims, in elements.
  IntArrayRef strides() const { return impl().strides(); }
  /// The size of a dim; negative ones count from the end. Throws Error for one out of range.
  TENON_API std::int64_t size(std::int64_t dim) const;
  /// The stride of a dim, in elements; negative ones count from the end. Throws Error for one out of range.
  TENON_API std::int64_t stride(std::int64_t dim) const;
  /// The number of elements; 0 where there is no tensor.
  std::int64_t numel() const { return impl_ ? impl_->numel() : 0; }
  /// Where in the storage the first element is, in elements.
  std::int64_t storage_offset() const { return impl().offset(); }
  /// The bytes of an element.
  std::size_t itemsize() const { return size_of(impl().dtype()); }
  /// The bytes of an element.
  std::int64_t element_size() const { return static_cast<std::int64_t>(itemsize()); }
  /// The bytes of all elements, whatever the storage holds besides.
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(); }
  /// The type of the elements.
  TypeMeta dtype() const { return impl().dtype(); }
  /// The type of the elements.
  Dtype scalar_type() const { return impl().dtype(); }
  /// The device that the memory is on.
  Device device() const { return impl().device(); }
  /// The index of the device, -1 on the host.
  std::int64_t get_device() const { return device().index(); }
  /// kStrided.
  Layout layout() const { return kStrided; }
  /// Dtype, device and layout, for making another one like it.
  TensorOptions options() const { return TensorOptions().dtype(scalar_type()).device(device()).layout(kStrided); }
  /// Whether the memory is on a CUDA device.
  bool is_cuda() const { return device().is_cuda(); }
  /// Whether the memory is the host's.
  bool is_cpu() const { return device().is_cpu(); }
  /// Whether it has sizes and a dtype but no data: a tensor of the `meta` device.
  bool is_meta() const { return device().type() == DeviceType::Meta; }
  /// False: there are no sparse tensors.
  bool is_sparse() const { return false; }
  /// False: there are no complex tensors.
  bool is_complex() const { return false; }
  /// False: there are no quantized tensors.
  bool is_quantized() const { return false; }
  bool is_floating_point() const { return tenon::is_floating_point(scalar_type()); }
  /// Whether the dtype has negative values.
  bool is_signed() const { return tenon::is_signed(scalar_type()); }
  /// Whether the elements lie without gaps in the order of that memory format, which for ChannelsLast has rank 4, for
  /// ChannelsLast3d rank 5.
  TENON_API bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  /// Whether the elements lie without gaps in some order of the dims.
  bool is_non_overlapping_and_dense() const { return impl().is_non_overlapping_and_dense(); }
  /// ChannelsLast or ChannelsLast3d where it is contiguous in that format and not row by row, else Contiguous.
  TENON_API MemoryFormat suggest_memory_format() const;
  /// The memory, which views share.
  Storage storage() const { return Storage(impl().storage_ptr()); }
  /// Whether there is memory behind it: whenever it is defined.
  bool has_storage() const { return defined(); }
  /// Whether both share their memory.
  bool is_alias_of(const Tensor& other) const { return &impl().storage() == &other.impl().storage(); }
  /// The address of the first element, null where the storage is empty. With a type, throws Error for another dtype.
  void* data_ptr() const { return impl().view().data; }
  /// See data_ptr(), for reading.
  const void* const_data_ptr() const { return data_ptr(); }
  /// See data_ptr(), for writing.
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data_ptr() const {
    using Element = std::remove_const_t<T>;
    if (scalar_type() != dtype_of<Element>) wrong_type(dtype_of<Element>);
    return static_cast<T*>(data_ptr());
  }
  /// N dims of T without bounds checks; the tensor must have them, and lie in the host's memory. Throws Error
  /// otherwise.
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor() const& {
    check_accessor(N, true);
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  /// The same with sizes and strides by value, for the tensor of any device: only code on that device may read it.
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits, class Index = std::int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const {
    check_accessor(N, false);
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  /// Throws Error for a tensor whose elements 32 bits cannot number.
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    check_packed32();
    return generic_packed_accessor<T, N, Traits, std::int32_t>();
  }
  /// An accessor with sizes and strides of its own. Throws Error unless rank and dtype are N and T.
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    return generic_packed_accessor<T, N, Traits, std::int64_t>();
  }
  /// Prints the type and sizes on standard error.
  TENON_API void print() const;
  /// A one-element tensor's value; waits for the device. Throws Error for other numbers of elements and without data.
  TENON_API Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }
  /// The type's name in libtorch's words ("CPUFloatType"); "UndefinedType" where there is no tensor.
  TENON_API std::string toString() const;

  // Versions.
  /// How often it was written to in place, also through views and detach(): what autograd checks saved tensors by.
  /// data() counts for itself. PyTorch's `_version`.
  std::int64_t _version() const { return current_version(); }
  /// See _version(). Throws Error for inference tensors, which have none.
  TENON_API std::int64_t current_version() const;
  /// Whether it was made in inference mode, or is a view of such a tensor.
  bool is_inference() const { return impl().is_inference(); }

  // Gradients (autograd/).
  /// Whether backward() gives it, or what it came from, a gradient.
  TENON_API bool requires_grad() const;
  /// Asks for a gradient, or not, and returns itself. Throws Error for false where it is not a leaf, and for true where
  /// the dtype is not floating, or for an inference tensor outside of that mode.
  TENON_API const Tensor& set_requires_grad(bool requires_grad) const;
  const Tensor& requires_grad_(bool requires_grad = true) const { return set_requires_grad(requires_grad); }
  /// Whether no operator that autograd recorded made it or wrote to it: so for all that require no gradient.
  TENON_API bool is_leaf() const;
  /// The gradient, to be changed or replaced.
  TENON_API Tensor& mutable_grad() const;
  /// The gradient that backward() has added to; undefined where there is none. Warns for what is not a leaf, unless
  /// retain_grad() was called.
  TENON_API const Tensor& grad() const;
  /// The node that this tensor came out of; null for leaves.
  TENON_API const IntrusivePtr<autograd::Node>& grad_fn() const;
  /// Which of its node's outputs this is; 0 for leaves.
  TENON_API std::int64_t output_nr() const;
  /// Adds the gradients of this tensor with respect to the leaves (or to `inputs`) to their grad(). `gradient` may be
  /// left out for one element. The graph is freed unless `retain_graph`, which is as `create_graph` where it is left
  /// out. Throws Error where no gradient is required, the graph was freed before, or a saved tensor was written to.
  TENON_API void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                          bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
  /// Keeps the gradient of a tensor that is not a leaf; leaves keep theirs anyway. Throws Error where none is required.
  TENON_API void retain_grad() const;
  /// Whether retain_grad() was called on a tensor that is not a leaf.
  TENON_API bool retains_grad() const;
  /// Whether autograd follows it as a view of another tensor: not for integers, detach(), view(dtype), or a view of an
  /// inference tensor.
  TENON_API bool is_view() const;
  /// The tensor that this is a view of, itself no view. Throws Error unless is_view().
  TENON_API Tensor _base() const;
  /// The same memory without history; writes to it count as writes to this tensor.
  TENON_API Tensor tensor_data() const;
  /// The same memory without history, with a version counter of its own: backward does not see what is written to it.
  TENON_API Tensor variable_data() const;
  Tensor data() const { return variable_data(); }
  /// Takes on storage, dtype, sizes and strides of another tensor, which autograd does not see: `x.data = y`. Throws
  /// Error where this requires a gradient and the other's dtype is not floating.
  TENON_API void set_data(const Tensor& data) const;
  /// As register_hook(), for a hook that returns a tensor, undefined for no replacement.
  TENON_API unsigned register_hook_(std::function<Tensor(const Tensor&)> hook) const;
  /// A hook gets the gradient; it may return a replacement or nothing. Returns the number for remove_hook. Throws Error
  /// where no gradient is required.
  template <class Hook>
  unsigned register_hook(Hook&& hook) const {
    if constexpr (std::is_void_v<std::invoke_result_t<Hook, Tensor>>) {
      return register_hook_([hook = std::forward<Hook>(hook)](const Tensor& gradient) mutable {
        hook(Tensor(gradient));
        return Tensor();
      });
    } else {
      return register_hook_([hook = std::forward<Hook>(hook)](const Tensor& gradient) mutable -> Tensor {
        return hook(Tensor(gradient));
      });
    }
  }
  /// Takes the hook at that position away. Throws Error where none was ever registered.
  TENON_API void remove_hook(unsigned position) const;

  // The memory.
  /// Other sizes over the same memory, which grows where it must, row by row whatever the format; new elements are not
  /// set. Throws Error where a gradient is required, and for foreign memory that would have to grow.
  TENON_API const Tensor& resize_(IntArrayRef sizes, std::optional<MemoryFormat> format = std::nullopt) const;
  /// resize_() to the sizes of another tensor.
  const Tensor& resize_as_(const Tensor& other) const { return resize_(other.sizes()); }
  /// Takes on storage, dtype, sizes and strides of another tensor, as a write in place: throws Error for a leaf that
  /// requires a gradient.
  TENON_API Tensor& set_(const Tensor& source) const;
  /// Says that the memory is also used on that stream: it is not handed out again before the stream has finished
  /// the work queued on it so far. No effect on foreign memory.
  TENON_API void record_stream(StreamRef stream) const;

  // What computes, a file for each family of ops/. operator= above is defined there too, in ops/shape.
#include <tenon/tensor/methods/create.inl>
#include <tenon/tensor/methods/indexing.inl>
#include <tenon/tensor/methods/linalg.inl>
#include <tenon/tensor/methods/pointwise.inl>
#include <tenon/tensor/methods/reduce.inl>
#include <tenon/tensor/methods/shape.inl>

 private:
  static constexpr std::int64_t kUndefinedSizes[] = {0};
  TENON_API Tensor view_dtype(Dtype dtype) const;
  [[noreturn]] TENON_API static void undefined();
  [[noreturn]] TENON_API void wrong_type(Dtype wanted) const;
  TENON_API void check_accessor(std::size_t dims, bool on_host) const;
  TENON_API void check_packed32() const;

  IntrusivePtr<TensorImpl> impl_;
};

#define TENON_OPERATOR(symbol)                                        \
  TENON_API Tensor operator symbol(const Tensor& a, const Tensor& b); \
  TENON_API Tensor operator symbol(const Tensor& a, const Scalar& b); \
  TENON_API Tensor operator symbol(const Scalar& a, const Tensor& b);
TENON_OPERATOR(+)
TENON_OPERATOR(-)
TENON_OPERATOR(*)
TENON_OPERATOR(/)
TENON_OPERATOR(%)
TENON_OPERATOR(==)
TENON_OPERATOR(!=)
TENON_OPERATOR(<)
TENON_OPERATOR(<=)
TENON_OPERATOR(>)
TENON_OPERATOR(>=)
TENON_OPERATOR(&)
TENON_OPERATOR(|)
TENON_OPERATOR(^)
#undef TENON_OPERATOR

TENON_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace tenon
