// Look-up tables of vectors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// Rows of weight (V, D) for indices of any shape: the result has the indices' sizes and D. padding_idx's row gets no
/// gradient; -1 for none.
TENON_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::int64_t padding_idx = -1,
                           bool scale_grad_by_freq = false, bool sparse = false);
/// Rows with a norm above max_norm, among those named, are scaled down to it, in place.
TENON_API Tensor& embedding_renorm_(Tensor& weight, const Tensor& indices, double max_norm, double norm_type);

}  // namespace tenon
