// How an operator calls its kernel: views of tensors, checks of their devices, and the call.
#pragma once

#include <tenon/dispatch/call.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/tensor.h>

#include <initializer_list>

namespace tenon::ops {

/// What a kernel gets of a tensor, which may be undefined.
inline TensorView view_of(const Tensor& tensor) { return tensor.defined() ? tensor.impl().view() : undefined_view(); }

/// The view of a tensor broadcast to `sizes`; `strides` is storage for its strides.
inline TensorView view_as(const Tensor& tensor, const Dims& sizes, Dims& strides) {
  const TensorImpl& impl = tensor.impl();
  if (impl.sizes() == sizes) return impl.view();
  strides = expanded_strides(impl.sizes(), impl.strides(), sizes);
  TensorView view = impl.view();
  view.sizes = sizes.data();
  view.strides = strides.data();
  view.rank = sizes.rank();
  return view;
}

/// Calls the operator's kernel of that device.
inline void run(OperatorId op, DeviceState& state, std::initializer_list<TensorView> outputs,
                std::initializer_list<TensorView> inputs, const void* attributes = nullptr) {
  call_kernel(op, state, {outputs.begin(), outputs.size()}, {inputs.begin(), inputs.size()}, attributes);
}

/// The state of the tensor's device.
inline DeviceState& state_of(const Tensor& tensor) { return tensor.impl().storage().state(); }

/// Throws Error unless all defined tensors are on one device.
void check_same_device(const char* op, std::initializer_list<const Tensor*> tensors);
/// Throws Error where an in-place write to `self` would reach one element through several places (an expanded tensor).
void check_written(const Tensor& self);
/// Whether `operand` reads memory of `self`'s storage other than element by element with a write to `self`.
bool reads_elsewhere_in(const Tensor& operand, const Tensor& self);
/// A contiguous tensor of the same values (itself where it is).
inline Tensor dense(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

}  // namespace tenon::ops
