// Dtypes of operands and results: checks, promotion, and numbers as tensors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <initializer_list>
#include <string_view>

namespace tenon {
/// The dtype of an operation on both (numbers and rank-0 tensors weigh less).
TENON_API Dtype result_type(const Tensor& a, const Tensor& b);
TENON_API Dtype result_type(const Tensor& a, const Scalar& b);
Dtype result_type(const Tensor& a, const Tensor& b, const Tensor& c);
/// Whether a result of dtype `from` may be written to a tensor of dtype `to`.
TENON_API bool can_cast(Dtype from, Dtype to);
}  // namespace tenon

namespace tenon::ops {

/// Throws Error unless all defined tensors have one dtype.
void check_same_dtype(const char* op, std::initializer_list<const Tensor*> tensors);
/// Throws Error unless the tensor is of a floating dtype.
void check_floating(const char* op, const Tensor& tensor);
/// The dtype in which `op` computes integers: the default one. Throws Error where that was set to no floating dtype.
Dtype floating_default(std::string_view op);
/// A rank-0 tensor from a number, on a device; counts as a number in promotion.
Tensor wrapped_scalar(const Scalar& value, DeviceState& state);
/// The same of `like`'s dtype and on its device; counts as a tensor.
Tensor scalar_tensor_like(const Scalar& value, const Tensor& like);

}  // namespace tenon::ops
