// Triangles and diagonals of matrices.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// A copy of each matrix (the last two dims) with zeros above the diagonal `diagonal`. Throws Error below 2 dims.
inline Tensor tril(const Tensor& self, std::int64_t diagonal = 0) { return self.tril(diagonal); }
/// A copy of each matrix (the last two dims) with zeros below the diagonal `diagonal`. Throws Error below 2 dims.
inline Tensor triu(const Tensor& self, std::int64_t diagonal = 0) { return self.triu(diagonal); }
/// The diagonal of a matrix, or the matrix that has a vector as its diagonal and zeros elsewhere; a copy. Throws Error
/// for another rank.
inline Tensor diag(const Tensor& self, std::int64_t diagonal = 0) { return self.diag(diagonal); }
/// (…, n) to (…, n + |offset|, n + |offset|), zeros but for the last dim, which is laid on the diagonal `offset` of the
/// result's dims dim1 and dim2. Throws Error for a tensor of no dimension, and where dim1 and dim2 are one dim or out
/// of range.
inline Tensor diag_embed(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) {
  return self.diag_embed(offset, dim1, dim2);
}
/// The matrix, zeros elsewhere, with the flattened tensor as its diagonal, `offset` above the main one (below if
/// negative).
inline Tensor diagflat(const Tensor& self, std::int64_t offset = 0) { return self.diagflat(offset); }

}  // namespace tenon
