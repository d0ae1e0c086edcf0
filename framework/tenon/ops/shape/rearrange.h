// Splitting, turning and repeating along dims, and joining with dims added: NumPy's names for views and arrangements.
// Views where PyTorch's are views; the others copy.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Parts of `dim` as views: `sections` of them, the first size % sections one longer; or parts that begin at 0 and at
/// each of `indices`. Throws Error for a tensor of no dimension, and sections < 1.
inline std::vector<Tensor> tensor_split(const Tensor& self, std::int64_t sections, std::int64_t dim = 0) {
  return self.tensor_split(sections, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, std::int64_t dim = 0) {
  return self.tensor_split(indices, dim);
}
/// A 0-dim tensor is a number of sections, a 1-dim one holds indices. Throws Error unless it is int64 and on the CPU.
inline std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& indices_or_sections, std::int64_t dim = 0) {
  return self.tensor_split(indices_or_sections, dim);
}
/// tensor_split() along the second dim, of a vector along the first. Throws Error where the sections do not divide it.
inline std::vector<Tensor> hsplit(const Tensor& self, std::int64_t sections) { return self.hsplit(sections); }
inline std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) { return self.hsplit(indices); }
/// tensor_split() along the first of at least 2 dims. Throws Error where the sections do not divide it.
inline std::vector<Tensor> vsplit(const Tensor& self, std::int64_t sections) { return self.vsplit(sections); }
inline std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) { return self.vsplit(indices); }
/// tensor_split() along the third dim. Throws Error where the sections do not divide it.
inline std::vector<Tensor> dsplit(const Tensor& self, std::int64_t sections) { return self.dsplit(sections); }
inline std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) { return self.dsplit(indices); }

/// transpose() by other names: a view with two dims swapped. Throws Error for a dim out of range.
inline Tensor swapaxes(const Tensor& self, std::int64_t axis0, std::int64_t axis1) {
  return self.transpose(axis0, axis1);
}
inline Tensor swapdims(const Tensor& self, std::int64_t dim0, std::int64_t dim1) { return self.transpose(dim0, dim1); }
/// A view in which the dims `source` stand at `destination`; the others keep their order. Throws Error where a dim is
/// named twice.
inline Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, std::int64_t source, std::int64_t destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}

/// repeat(); where there are fewer numbers than dims, they are for the last dims.
inline Tensor tile(const Tensor& self, IntArrayRef repeats) { return self.tile(repeats); }
/// A copy turned k times by 90 degrees from the first of `dims` towards the second. Throws Error below 2 dims.
inline Tensor rot90(const Tensor& self, std::int64_t k = 1, IntArrayRef dims = {0, 1}) { return self.rot90(k, dims); }
/// flip() along the second dim. Throws Error below 2 dims.
inline Tensor fliplr(const Tensor& self) { return self.fliplr(); }
/// flip() along the first dim. Throws Error for no dim.
inline Tensor flipud(const Tensor& self) { return self.flipud(); }
/// (…, n) to (…, n + |offset|, n + |offset|), zeros but for the last dim, which is laid on the diagonal `offset` of the
/// result's dims dim1 and dim2.
inline Tensor diag_embed(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) {
  return self.diag_embed(offset, dim1, dim2);
}
/// The matrix, zeros elsewhere, with the flattened tensor as its diagonal, `offset` above the main one (below if
/// negative).
inline Tensor diagflat(const Tensor& self, std::int64_t offset = 0) { return self.diagflat(offset); }
/// The elements as a vector: a view where strides allow, else a copy.
inline Tensor ravel(const Tensor& self) { return self.ravel(); }

/// The tensor itself; of a number (a tensor of no dimension) a view (1).
TENON_API Tensor atleast_1d(const Tensor& self);
/// The tensor itself; of a number a view (1, 1), of a vector a view (1, n).
TENON_API Tensor atleast_2d(const Tensor& self);
/// The tensor itself; of a number a view (1, 1, 1), of a vector a view (1, n, 1), of a matrix a view (n, m, 1).
TENON_API Tensor atleast_3d(const Tensor& self);
TENON_API std::vector<Tensor> atleast_1d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_2d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_3d(TensorList tensors);
/// cat() of atleast_3d() of each along dim 2. Throws Error where other sizes differ.
TENON_API Tensor dstack(TensorList tensors);
/// cat() along dim 1, in which vectors (n) and numbers are columns (n, 1).
TENON_API Tensor column_stack(TensorList tensors);
/// vstack() by another name: cat() of atleast_2d() of each along dim 0. Throws Error where other sizes differ.
TENON_API Tensor row_stack(TensorList tensors);

}  // namespace tenon
