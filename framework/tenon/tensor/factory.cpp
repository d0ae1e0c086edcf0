// Tensors without history.
#include <tenon/tensor/factory.h>

namespace tenon {

Tensor allocate_strided(DeviceState& state, const Dims& sizes, const Dims& strides, Dtype dtype) {
  auto impl =
      make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(state, strided_bytes(sizes, strides, dtype)), dtype);
  impl->set_strided(sizes, strides, 0);
  impl->set_inference(making_inference_tensors);
  return Tensor(std::move(impl));
}

Tensor allocate_preserving(const Tensor& like, Dtype dtype) {
  const TensorImpl& impl = like.impl();
  if (impl.is_contiguous()) return allocate_like(like, impl.sizes(), dtype);
  if (impl.is_non_overlapping_and_dense()) {
    return allocate_strided(impl.storage().state(), impl.sizes(), impl.strides(), dtype);
  }
  return allocate_like(like, impl.sizes(), dtype);
}

Tensor alias_of(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  const TensorImpl& from = tensor.impl();
  auto impl = make_intrusive<TensorImpl>(from.storage_ptr(), from.dtype());
  impl->set_strided(sizes, strides, offset);
  impl->share_version(from);
  impl->set_inference(from.is_inference());
  return Tensor(std::move(impl));
}

Tensor alias_of(const Tensor& tensor) {
  const TensorImpl& from = tensor.impl();
  Tensor alias = alias_of(tensor, from.sizes(), from.strides(), from.offset());
  alias.impl().set_wrapped_number(from.is_wrapped_number());
  return alias;
}

DeviceState& state_of(const TensorOptions& options) { return device_state(options.device()); }

}  // namespace tenon
