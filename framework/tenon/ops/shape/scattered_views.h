// Copies in which one view has other values: what writing into a view gives, without the write.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// A copy of `self`, laid out as it is, whose slice(dim, start, end, step) has the values of `source`, converted to
/// self's dtype. Throws Error as slice(), and for a source of other sizes than the slice.
TENON_API Tensor slice_scatter(const Tensor& self, const Tensor& source, std::int64_t dim = 0,
                               std::optional<std::int64_t> start = std::nullopt,
                               std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1);
/// A copy of `self` whose select(dim, index) has the values of `source`. Throws Error as select(), and for a source of
/// other sizes.
TENON_API Tensor select_scatter(const Tensor& self, const Tensor& source, std::int64_t dim, std::int64_t index);
/// A copy of `self` whose diagonal(offset, dim1, dim2) has the values of `source`. Throws Error as diagonal(), and for
/// a source of other sizes.
TENON_API Tensor diagonal_scatter(const Tensor& self, const Tensor& source, std::int64_t offset = 0,
                                  std::int64_t dim1 = 0, std::int64_t dim2 = 1);

/// Matrices along the diagonal of one that is zero elsewhere: (sum of rows, sum of columns). A vector counts as a row,
/// a number as a matrix of one element; dtypes are promoted; of no tensor (1, 0). Throws Error for more dims, and
/// several devices.
TENON_API Tensor block_diag(TensorList tensors);

}  // namespace tenon
