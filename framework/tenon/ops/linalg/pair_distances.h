// Distances of all pairs of rows.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// p-norms of the differences of rows i < j of (N, M), in the order (0, 1), (0, 2) … (1, 2) …: (N (N - 1) / 2). p may
/// be infinite. Throws Error for another rank, a negative p, and a dtype that is not floating.
TENON_API Tensor pdist(const Tensor& input, double p = 2);

namespace ops {
/// The p-norm along the last dim, as norm(). Where elements or a norm are 0 the gradient's own gradient is 0 too, not
/// NaN.
Tensor row_norm(const Tensor& self, double p);
}  // namespace ops

}  // namespace tenon
