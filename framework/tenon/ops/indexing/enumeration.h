// All places of a triangle, all pairs of elements.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Row and column numbers, (2, n), of the elements on and below (above) a diagonal of a row x column matrix, row by
/// row. kLong unless the options say otherwise.
TENON_API Tensor tril_indices(std::int64_t row, std::int64_t column, std::int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// The places of the upper triangle of a (row, column) matrix: (2, count).
TENON_API Tensor triu_indices(std::int64_t row, std::int64_t column, std::int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// Every choice of one element of each vector, in order: (n, vectors); of a single vector, itself.
TENON_API Tensor cartesian_prod(TensorList tensors);
/// Every choice of `r` elements of a vector in order, each once or with replacement: (n, r).
TENON_API Tensor combinations(const Tensor& self, std::int64_t r = 2, bool with_replacement = false);

}  // namespace tenon
