// Views that keep every element: the same memory under other sizes and strides, or the dims in another order.
#pragma once

#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon {

/// The elements under other sizes, of which one may be -1: a view where strides allow, else a copy. Throws Error for
/// another number of elements.
inline Tensor reshape(const Tensor& self, IntArrayRef sizes) { return self.reshape(sizes); }
/// The dims from start_dim to end_dim as one: a view where strides allow, else a copy. A number becomes (1). Throws
/// Error where end_dim stands before start_dim, or either is out of range.
inline Tensor flatten(const Tensor& self, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return self.flatten(start_dim, end_dim);
}
/// The elements as a vector: a view where strides allow, else a copy.
inline Tensor ravel(const Tensor& self) { return self.ravel(); }
/// A view with two dims exchanged. Throws Error for a dim out of range.
inline Tensor transpose(const Tensor& self, std::int64_t a, std::int64_t b) { return self.transpose(a, b); }
/// transpose() by other names: a view with two dims swapped. Throws Error for a dim out of range.
inline Tensor swapaxes(const Tensor& self, std::int64_t axis0, std::int64_t axis1) {
  return self.transpose(axis0, axis1);
}
inline Tensor swapdims(const Tensor& self, std::int64_t dim0, std::int64_t dim1) { return self.transpose(dim0, dim1); }
/// A view of a matrix with its dims exchanged; fewer dims stay as they are. Throws Error above rank 2.
inline Tensor t(const Tensor& self) { return self.t(); }
/// A view with the dims in another order. Throws Error unless each is named once.
inline Tensor permute(const Tensor& self, IntArrayRef dims) { return self.permute(dims); }
/// A view without the dims of size 1, or without `dim` if its size is 1. Throws Error for a dim out of range.
inline Tensor squeeze(const Tensor& self) { return self.squeeze(); }
inline Tensor squeeze(const Tensor& self, std::int64_t dim) { return self.squeeze(dim); }
/// A view in which dim `dim` is a new one of size 1; -1 is behind all others. Throws Error for a dim out of range.
inline Tensor unsqueeze(const Tensor& self, std::int64_t dim) { return self.unsqueeze(dim); }
/// A view in which the dim or dims `source` stand at `destination`; the others keep their order. Throws Error where a
/// dim is named twice.
inline Tensor movedim(const Tensor& self, std::int64_t source, std::int64_t destination) {
  return self.movedim(source, destination);
}
inline Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, std::int64_t source, std::int64_t destination) {
  return self.movedim(source, destination);
}
inline Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return self.movedim(source, destination);
}

/// The tensor itself; of a number (a tensor of no dimension) a view (1).
TENON_API Tensor atleast_1d(const Tensor& self);
/// The tensor itself; of a number a view (1, 1), of a vector a view (1, n).
TENON_API Tensor atleast_2d(const Tensor& self);
/// The tensor itself; of a number a view (1, 1, 1), of a vector a view (1, n, 1), of a matrix a view (n, m, 1).
TENON_API Tensor atleast_3d(const Tensor& self);
TENON_API std::vector<Tensor> atleast_1d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_2d(TensorList tensors);
TENON_API std::vector<Tensor> atleast_3d(TensorList tensors);

}  // namespace tenon
