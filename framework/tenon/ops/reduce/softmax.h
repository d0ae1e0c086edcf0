// Softmax and its kin along a dimension: softmax() and log_softmax() are rows of reduction.h.
#pragma once

#include <tenon/ops/reduce/reduction.h>

namespace tenon {

/// softmax(-x) along `dim`.
TENON_API Tensor softmin(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);

}  // namespace tenon
