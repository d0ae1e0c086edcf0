// Tensors joined along a dim. The results are copies.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Tensors one behind the other along `dim`; dtypes are promoted, and of empty tensors of rank 1 only the dtype counts.
/// Throws Error where the ranks or other sizes differ, for tensors of no dimension, and for no tensor at all.
TENON_API Tensor cat(TensorList tensors, std::int64_t dim = 0);
inline Tensor concat(TensorList tensors, std::int64_t dim = 0) { return cat(tensors, dim); }
/// Tensors of equal sizes one behind the other along a new dim `dim`. Throws Error where the sizes differ.
TENON_API Tensor stack(TensorList tensors, std::int64_t dim = 0);
/// cat() along the second dim, of vectors and numbers along the first. Throws Error as cat().
TENON_API Tensor hstack(TensorList tensors);
/// cat() along the first dim, in which vectors (n) and numbers are rows (1, n). Throws Error as cat().
TENON_API Tensor vstack(TensorList tensors);
/// cat() of atleast_3d() of each along dim 2. Throws Error where other sizes differ.
TENON_API Tensor dstack(TensorList tensors);
/// cat() along dim 1, in which vectors (n) and numbers are columns (n, 1). Throws Error where other sizes differ, and
/// for no tensor at all.
TENON_API Tensor column_stack(TensorList tensors);
/// vstack() by another name: cat() of atleast_2d() of each along dim 0. Throws Error where other sizes differ.
TENON_API Tensor row_stack(TensorList tensors);

}  // namespace tenon
