// How a tensor without history comes into being: allocation, and handles that alias other tensors. Used by operators;
// users have ops/create/factory.h.
#pragma once

#include <tenon/tensor/shape/extent.h>
#include <tenon/tensor/tensor.h>

#include <initializer_list>

namespace tenon {

/// Set by autograd's InferenceMode: tensors made by this thread then have no version counter and no history.
inline constinit thread_local bool making_inference_tensors __attribute__((visibility("hidden"))) = false;

/// Uninitialised and contiguous, on an open device. Throws Error where the size in bytes overflows.
[[gnu::always_inline]] inline Tensor allocate_tensor(DeviceState& state, const Dims& sizes, Dtype dtype) {
  auto impl = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(state, dense_bytes(sizes, dtype), element_kind_of(dtype)), dtype);
  impl->set_contiguous(sizes);
  if (making_inference_tensors) [[unlikely]]
    impl->set_inference(true);
  return Tensor(std::move(impl));
}
inline Tensor allocate_like(const Tensor& tensor, const Dims& sizes, Dtype dtype) {
  return allocate_tensor(tensor.impl().storage().state(), sizes, dtype);
}
/// Uninitialised with given strides. Throws Error where one is negative or the size in bytes overflows.
TENON_API Tensor allocate_strided(DeviceState& state, const Dims& sizes, const Dims& strides, Dtype dtype);
/// Same sizes; the same strides where `like` is dense, else dense ones whose dimensions lie in the same order.
TENON_API Tensor allocate_preserving(const Tensor& like, Dtype dtype);
/// Uninitialised, laid out as result_strides() says of operands that may be undefined, on the device of the first.
TENON_API Tensor allocate_after(std::initializer_list<const Tensor*> operands, const Dims& sizes, Dtype dtype);
/// Another handle on the same memory; shares the version counter, no history.
TENON_API Tensor alias_of(const Tensor& tensor);
TENON_API Tensor alias_of(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset);
/// The same for who has asked scopes::wanted() already, and was told 0.
TENON_API Tensor unlisted_alias_of(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset);
/// The device of options, open, with its index filled in.
TENON_API DeviceState& state_of(const TensorOptions& options);

}  // namespace tenon
