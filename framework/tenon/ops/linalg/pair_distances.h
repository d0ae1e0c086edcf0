// Distances of all pairs of rows.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// p-norms of the differences of rows i < j of (N, M), row by row: (N (N - 1) / 2). p may be infinite.
TENON_API Tensor pdist(const Tensor& input, double p = 2);

}  // namespace tenon
