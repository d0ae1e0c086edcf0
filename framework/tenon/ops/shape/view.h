// Views: the same memory under other sizes and strides; and operators that join or repeat tensors.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The elements under other sizes, of which one may be -1: a view where strides allow, else a copy. Throws Error for
/// another number of elements.
inline Tensor reshape(const Tensor& self, IntArrayRef sizes) { return self.reshape(sizes); }
/// The dims from start_dim to end_dim as one: a view where strides allow, else a copy. A number becomes (1).
inline Tensor flatten(const Tensor& self, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return self.flatten(start_dim, end_dim);
}
/// A view with two dims exchanged.
inline Tensor transpose(const Tensor& self, std::int64_t a, std::int64_t b) { return self.transpose(a, b); }
/// A view of a matrix with its dims exchanged; fewer dims stay as they are. Throws Error above rank 2.
inline Tensor t(const Tensor& self) { return self.t(); }
/// A view with the dims in another order. Throws Error unless each is named once.
inline Tensor permute(const Tensor& self, IntArrayRef dims) { return self.permute(dims); }
/// A view without the dims of size 1, or without `dim` if its size is 1.
inline Tensor squeeze(const Tensor& self) { return self.squeeze(); }
inline Tensor squeeze(const Tensor& self, std::int64_t dim) { return self.squeeze(dim); }
/// A view in which dim `dim` is a new one of size 1; -1 is behind all others.
inline Tensor unsqueeze(const Tensor& self, std::int64_t dim) { return self.unsqueeze(dim); }
/// A view of one position of `dim`, without that dim; a negative one counts from the end. Throws IndexError for a
/// position out of range.
inline Tensor select(const Tensor& self, std::int64_t dim, std::int64_t index) { return self.select(dim, index); }
/// A view of the positions start, start + step … below end of `dim`; negative ones count from the end, and those beyond
/// the dim are moved to its ends. Throws Error for a step below 1.
inline Tensor slice(const Tensor& self, std::int64_t dim = 0, std::optional<std::int64_t> start = std::nullopt,
                    std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1) {
  return self.slice(dim, start, end, step);
}
/// A view of `length` positions of `dim` from `start` on, a negative one counted from the end. Throws Error where they
/// reach beyond the dim.
inline Tensor narrow(const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return self.narrow(dim, start, length);
}
/// libtorch's private name for reshape()'s view: as_strided() at the tensor's own offset.
inline Tensor _reshape_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return self.as_strided(sizes, strides);
}
/// A view of the storage under any sizes and strides (in elements) from `offset` on, by default the tensor's own.
/// Throws Error where it would reach beyond the storage, and for a negative size, stride or offset.
inline Tensor as_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                         std::optional<std::int64_t> offset = std::nullopt) {
  return self.as_strided(sizes, strides, offset);
}
/// A view of the diagonal of dim1 and dim2, as the last dim; `offset` above the main one (below if negative).
inline Tensor diagonal(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1) {
  return self.diagonal(offset, dim1, dim2);
}
/// A view in which dim `a` stands at `b`; the others keep their order.
inline Tensor movedim(const Tensor& self, std::int64_t a, std::int64_t b) { return self.movedim(a, b); }
/// A view of each position of `dim`, without that dim.
inline std::vector<Tensor> unbind(const Tensor& self, std::int64_t dim = 0) { return self.unbind(dim); }
/// Views of `size` positions each along `dim`, the last one of what is left.
inline std::vector<Tensor> split(const Tensor& self, std::int64_t size, std::int64_t dim = 0) {
  return self.split(size, dim);
}
/// Views of the given sizes along `dim`. Throws Error unless they add up to the dim.
inline std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, std::int64_t dim = 0) {
  return self.split_with_sizes(sizes, dim);
}
/// split() into views of ceil(size / chunks) positions of `dim`, the last one of what is left: `chunks` views, or
/// fewer. Throws Error for chunks below 1.
inline std::vector<Tensor> chunk(const Tensor& self, std::int64_t chunks, std::int64_t dim = 0) {
  return self.chunk(chunks, dim);
}
/// The elements in reverse order along each of `dims`; a copy.
inline Tensor flip(const Tensor& self, IntArrayRef dims) { return self.flip(dims); }
/// A copy with the elements moved by `shifts` along `dims`, those pushed out coming in at the other end; without dims,
/// by one shift in the flattened tensor.
inline Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {}) { return self.roll(shifts, dims); }
/// A copy of each matrix (the last two dims) with zeros above the diagonal `diagonal`. Throws Error below 2 dims.
inline Tensor tril(const Tensor& self, std::int64_t diagonal = 0) { return self.tril(diagonal); }
/// A copy of each matrix (the last two dims) with zeros below the diagonal `diagonal`. Throws Error below 2 dims.
inline Tensor triu(const Tensor& self, std::int64_t diagonal = 0) { return self.triu(diagonal); }
/// The diagonal of a matrix, or the matrix that has a vector as its diagonal and zeros elsewhere; a copy. Throws Error
/// for another rank.
inline Tensor diag(const Tensor& self, std::int64_t diagonal = 0) { return self.diag(diagonal); }
/// A copy with each position of `dim` `repeats` times; without a dim, of the flattened tensor.
inline Tensor repeat_interleave(const Tensor& self, std::int64_t repeats,
                                std::optional<std::int64_t> dim = std::nullopt) {
  return self.repeat_interleave(repeats, dim);
}

/// Tensors one behind the other along `dim`; dtypes are promoted, and of empty tensors of rank 1 only the dtype counts.
/// Throws Error where the ranks or other sizes differ, for tensors of no dimension, and for no tensor at all.
TENON_API Tensor cat(TensorList tensors, std::int64_t dim = 0);
inline Tensor concat(TensorList tensors, std::int64_t dim = 0) { return cat(tensors, dim); }
/// Tensors of equal sizes one behind the other along a new dim `dim`. Throws Error where the sizes differ.
TENON_API Tensor stack(TensorList tensors, std::int64_t dim = 0);
/// cat() along the second dim, of vectors and numbers along the first.
TENON_API Tensor hstack(TensorList tensors);
/// cat() along the first dim, in which vectors (n) and numbers are rows (1, n).
TENON_API Tensor vstack(TensorList tensors);
/// Views of all tensors under the sizes that they broadcast to. Throws Error where they do not.
TENON_API std::vector<Tensor> broadcast_tensors(TensorList tensors);
/// expand() of a tensor to these sizes.
TENON_API Tensor broadcast_to(const Tensor& self, IntArrayRef sizes);
/// For vectors of lengths n, m …: each expanded to (n, m, …), "ij", or to (m, n, …), "xy". Throws Error where dtypes
/// differ, above rank 1, and for another word.
TENON_API std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij");
/// Pads the last dims; amounts as in constant_pad_nd(). mode is "constant" (with `value`, by default 0), "reflect"
/// (with the elements mirrored at the edge, which is not repeated: amounts below the dim's size), "replicate" (with the
/// edge) or "circular" (with the elements of the other end: amounts up to the dim's size). Throws Error for larger
/// amounts and another mode.
TENON_API Tensor pad(const Tensor& self, IntArrayRef amounts, std::string_view mode = "constant",
                     std::optional<double> value = std::nullopt);
/// A copy with `value` around it: amounts are (before, after) of the last dim, then of the one before it …; negative
/// ones cut off. Throws Error for an odd number of amounts, more pairs than dims, and where more is cut off than there
/// is.
TENON_API Tensor constant_pad_nd(const Tensor& self, IntArrayRef amounts, const Scalar& value = 0);

}  // namespace tenon
