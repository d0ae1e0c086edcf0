// Positions of a triangle and of places in a row, and combinations of elements.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Row and column numbers, (2, n), of the elements on and below the diagonal `offset` of a row x column matrix, row by
/// row; int64 unless the options say otherwise. Throws Error for a negative size.
TENON_API Tensor tril_indices(std::int64_t row, std::int64_t column, std::int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// tril_indices() of the elements on and above the diagonal: (2, n). Throws Error for a negative size.
TENON_API Tensor triu_indices(std::int64_t row, std::int64_t column, std::int64_t offset = 0,
                              const TensorOptions& options = kLong);
/// Every choice of one element from each vector, the last one varying fastest: (product of lengths, vectors); of a
/// single vector, itself. Throws Error for other ranks.
TENON_API Tensor cartesian_prod(TensorList tensors);
/// Every choice of `r` elements of a vector, in its order and each at most once, or with replacement any number of
/// times: (n, r); of no element where r is 0: (0). Throws Error for another rank, and a negative r.
TENON_API Tensor combinations(const Tensor& self, std::int64_t r = 2, bool with_replacement = false);
/// The coordinates in a tensor of sizes `shape` of elements that are numbered row by row: a tensor of the sizes of
/// `indices` for each dim, int64 unless the indices are wider. Throws Error for indices that are no integers, a
/// negative size, and a size of 0 where there are indices.
TENON_API std::vector<Tensor> unravel_index(const Tensor& indices, IntArrayRef shape);

}  // namespace tenon
