// Copies with writes to positions that indices or masks name, also with reductions.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// A copy of `self` with the elements of `source`, in order, where the mask (bool or uint8) is true; mask and self are
/// broadcast to one another. Throws Error where `source` has too few elements or another dtype.
inline Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return self.masked_scatter(mask, source);
}
/// A copy of `self` with source[i] at position index[i] (int64; negative ones count from the end) of the flattened
/// tensor, or added there with `accumulate`. Throws Error unless index and source have one number of elements, and self
/// and source one dtype.
inline Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false) {
  return self.put(index, source, accumulate);
}
/// gather() whose operands are broadcast to one another in all dims but `dim`; without a dim, of both flattened.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                             std::optional<std::int64_t> dim = std::nullopt) {
  return self.take_along_dim(indices, dim);
}
/// A copy of `self` with source's slices at the positions `index` (a vector, int64) along `dim`; the last one counts
/// where a position comes twice. Throws Error for a position out of range, other sizes, and another dtype than self's.
inline Tensor index_copy(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.index_copy(dim, index, source);
}
/// A copy of `self` with `value`, a number or a tensor of no dimension, in the slices at the positions `index` (a
/// vector, int64; negative ones count from the end) along `dim`. Throws Error for a position out of range, and a tensor
/// with dims.
inline Tensor index_fill(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return self.index_fill(dim, index, value);
}
inline Tensor index_fill(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& value) {
  return self.index_fill(dim, index, value);
}
/// index_put_() on a copy of `self`, with its errors.
inline Tensor index_put(const Tensor& self, const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                        bool accumulate = false) {
  return self.index_put(indices, values, accumulate);
}
/// A copy of `self` with `value` at the positions of scatter() in indexing.h. Throws Error as gather().
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return self.scatter(dim, index, value);
}
/// scatter() that adds to the elements of `self` or multiplies them: `reduce` is "add" or "multiply". Throws Error for
/// another word; scatter_reduce() has more.
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce) {
  return self.scatter(dim, index, source, reduce);
}
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value,
                      std::string_view reduce) {
  return self.scatter(dim, index, value, reduce);
}
/// A copy of `self` in which each element is reduced with all elements of `source` that scatter() would write there:
/// `reduce` is "sum", "prod", "mean" (of integers rounded down), "amax" or "amin". Without `include_self` an element
/// that any fall on is made of these alone. Throws Error for another word, and where the dtypes differ.
inline Tensor scatter_reduce(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                             std::string_view reduce, bool include_self = true) {
  return self.scatter_reduce(dim, index, source, reduce, include_self);
}
/// nonzero() by NumPy's name: the positions of the elements that are not zero, (count, rank), int64. Throws Error as
/// nonzero().
inline Tensor argwhere(const Tensor& self) { return self.argwhere(); }

}  // namespace tenon
