// Distances of all pairs of rows: of one matrix, or of one row each out of two.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// p-norms of the differences of rows i < j of (N, M), in the order (0, 1), (0, 2) … (1, 2) …: (N (N - 1) / 2). p may
/// be infinite. Throws Error for another rank, a negative p, and a dtype that is not floating.
TENON_API Tensor pdist(const Tensor& input, double p = 2);
/// p-norms of the differences of all rows: (…, P, M) and (…, R, M) to (…, P, R). The leading dims are broadcast. As in
/// PyTorch Euclidean distances (p = 2) come from one matrix product where P or R is above 25: that needs no memory for
/// P * R * M differences, but is less exact for rows close to each other. `compute_mode` 1 always does so, 2 never.
/// Throws Error for a negative p, and a dtype that is not floating.
TENON_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                       std::optional<std::int64_t> compute_mode = std::nullopt);

}  // namespace tenon
