// Look-up tables of vectors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// Rows of weight (V, D) at indices (int64 or int32) of any sizes: the result has these sizes and D. The row
/// padding_idx gets no gradient; -1 stands for none. scale_grad_by_freq divides a row's gradient by how often it was
/// looked up; `sparse` has no effect, gradients are dense. Throws Error for an index that is negative or not below V.
TENON_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::int64_t padding_idx = -1,
                           bool scale_grad_by_freq = false, bool sparse = false);
/// Scales in place each row of weight (V, D) that `indices` (integers of any sizes) name and whose norm_type-norm is
/// above max_norm down to it; no gradient. Throws Error for an index out of range and a weight that is not floating.
TENON_API Tensor& embedding_renorm_(Tensor& weight, const Tensor& indices, double max_norm, double norm_type);

}  // namespace tenon
