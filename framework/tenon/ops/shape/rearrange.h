// Splitting, turning and repeating along dims, and joining with dims added: NumPy's names for views and arrangements.
// Views where PyTorch's are views; the others copy.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Parts of dim `dim` as views: `sections` of them, the first size % sections one longer; or cut before each index.
inline std::vector<Tensor> tensor_split(const Tensor& self, std::int64_t sections, std::int64_t dim = 0) {
  return self.tensor_split(sections, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, std::int64_t dim = 0) {
  return self.tensor_split(indices, dim);
}
/// A 0-dim tensor is a number of sections, a 1-dim one is indices; kLong, in the host's memory.
inline std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& indices_or_sections, std::int64_t dim = 0) {
  return self.tensor_split(indices_or_sections, dim);
}
/// tensor_split along columns (dim 1, or 0 of a vector), rows (dim 0) and depth (dim 2); sections must divide the dim.
inline std::vector<Tensor> hsplit(const Tensor& self, std::int64_t sections) { return self.hsplit(sections); }
inline std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) { return self.hsplit(indices); }
/// tensor_split() along the first dim.
inline std::vector<Tensor> vsplit(const Tensor& self, std::int64_t sections) { return self.vsplit(sections); }
inline std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) { return self.vsplit(indices); }
/// tensor_split() along the third dim.
inline std::vector<Tensor> dsplit(const Tensor& self, std::int64_t sections) { return self.dsplit(sections); }
inline std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) { return self.dsplit(indices); }

/// transpose() by other names.
inline Tensor swapaxes(const Tensor& self, std::int64_t axis0, std::int64_t axis1) {
  return self.transpose(axis0, axis1);
}
inline Tensor swapdims(const Tensor& self, std::int64_t dim0, std::int64_t dim1) { return self.transpose(dim0, dim1); }
/// Dims named in `source` stand at `destination`; the others keep their order. A view.
inline Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, std::int64_t source, std::int64_t destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}

/// repeat() that takes fewer numbers than dims.
inline Tensor tile(const Tensor& self, IntArrayRef repeats) { return self.tile(repeats); }
/// Turned k times by 90 degrees from the first towards the second dim.
inline Tensor rot90(const Tensor& self, std::int64_t k = 1, IntArrayRef dims = {0, 1}) { return self.rot90(k, dims); }
/// flip() along the second dim.
inline Tensor fliplr(const Tensor& self) { return self.fliplr(); }
/// flip() along the first dim.
inline Tensor flipud(const Tensor& self) { return self.flipud(); }
/// (…, n) to (…, n + |offset|, n + |offset|): the last dim on a diagonal of dims dim1 and dim2 of the result.
inline Tensor diag_embed(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) {
  return self.diag_embed(offset, dim1, dim2);
}
/// The matrix that has the flattened tensor as its diagonal, `offset` above the main one.
inline Tensor diagflat(const Tensor& self, std::int64_t offset = 0) { return self.diagflat(offset); }
/// The elements as a vector: a view where strides allow, else a copy.
inline Tensor ravel(const Tensor& self) { return self.ravel(); }
/// Element i of dim `dim` repeats[i] times; without a dim, of the flattened tensor.
inline Tensor repeat_interleave(const Tensor& self, const Tensor& repeats,
                                std::optional<std::int64_t> dim = std::nullopt,
                                std::optional<std::int64_t> output_size = std::nullopt) {
  return self.repeat_interleave(repeats, dim, output_size);
}
/// repeats[i] times the number i, for every i: (repeats.sum()) of kLong.
TENON_API Tensor repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> output_size = std::nullopt);

/// With dims of size 1 added until there are 1, 2 or 3; a vector becomes (1, n) and (1, n, 1).
TENON_API Tensor atleast_1d(const Tensor& self);
/// A view of at least 2 dims: a scalar becomes (1, 1), a vector (1, n).
TENON_API Tensor atleast_2d(const Tensor& self);
/// A view of at least 3 dims: a scalar becomes (1, 1, 1), a vector (1, n, 1), a matrix (n, m, 1).
TENON_API Tensor atleast_3d(const Tensor& self);
TENON_API std::vector<Tensor> atleast_1d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_2d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_3d(TensorList tensors);
/// Joined along depth (dim 2).
TENON_API Tensor dstack(TensorList tensors);
/// Vectors as columns beside matrices.
TENON_API Tensor column_stack(TensorList tensors);
/// See vstack().
TENON_API Tensor row_stack(TensorList tensors);

}  // namespace tenon
