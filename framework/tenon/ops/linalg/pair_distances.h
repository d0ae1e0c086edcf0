// Distances of all pairs of rows.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// p-norms of the differences of rows i < j of (N, M), row by row: (N (N - 1) / 2). p may be infinite.
TENON_API Tensor pdist(const Tensor& input, double p = 2);

namespace ops {
/// p-norms of the rows (the last dim) of differences: as norm(), and where elements or a norm are 0 the gradient's own
/// gradient is 0, too.
Tensor row_norm(const Tensor& self, double p);
}  // namespace ops

}  // namespace tenon
