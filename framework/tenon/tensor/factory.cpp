// Tensors without history.
#include <tenon/tensor/factory.h>

#include <algorithm>

namespace tenon {

Tensor allocate_strided(DeviceState& state, const Dims& sizes, const Dims& strides, Dtype dtype) {
  auto impl = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(state, strided_bytes(sizes, strides, dtype), element_kind_of(dtype)), dtype);
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
  return allocate_strided(impl.storage().state(), impl.sizes(),
                          result_strides(impl.sizes(), {{impl.sizes(), impl.strides()}}), dtype);
}

Tensor allocate_after(std::initializer_list<const Tensor*> operands, const Dims& sizes, Dtype dtype) {
  const Tensor& first = **operands.begin();
  const auto is_plain = [&sizes](const Tensor* tensor) {
    return !tensor->defined() || (tensor->is_contiguous() && tensor->impl().sizes() == sizes);
  };
  if (sizes.rank() < 2 || std::all_of(operands.begin(), operands.end(), is_plain)) {
    return allocate_like(first, sizes, dtype);
  }
  const Dims none{};
  const auto layout = [&operands, &none](std::size_t at) -> Strided {
    if (at >= operands.size() || !operands.begin()[at]->defined()) return {none, none};
    const TensorImpl& impl = operands.begin()[at]->impl();
    return {impl.sizes(), impl.strides()};
  };
  return allocate_strided(first.impl().storage().state(), sizes,
                          result_strides(sizes, {layout(0), layout(1), layout(2)}), dtype);
}

namespace {

[[gnu::always_inline]] inline Tensor made_alias(IntrusivePtr<TensorImpl> impl, const TensorImpl& from,
                                                const Dims& sizes, const Dims& strides, std::int64_t offset) {
  impl->set_strided(sizes, strides, offset);
  impl->share_version(from);
  impl->set_inference(from.is_inference());
  return Tensor(std::move(impl));
}

}  // namespace

Tensor alias_of(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  const TensorImpl& from = tensor.impl();
  return made_alias(make_intrusive<TensorImpl>(from.storage_ptr(), from.dtype()), from, sizes, strides, offset);
}

Tensor unlisted_alias_of(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  const TensorImpl& from = tensor.impl();
  return made_alias(make_intrusive<TensorImpl>(TensorImpl::Unlisted(), from.storage_ptr(), from.dtype()), from, sizes,
                    strides, offset);
}

Tensor alias_of(const Tensor& tensor) {
  const TensorImpl& from = tensor.impl();
  Tensor alias = alias_of(tensor, from.sizes(), from.strides(), from.offset());
  alias.impl().set_wrapped_number(from.is_wrapped_number());
  return alias;
}

DeviceState& state_of(const TensorOptions& options) { return device_state(options.device()); }

}  // namespace tenon
