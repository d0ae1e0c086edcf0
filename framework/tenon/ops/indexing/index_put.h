// Writes to places that indices or masks name, out of place and with reductions.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Elements of `source`, in order, where `mask` is true; mask and self are broadcast to one another.
inline Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return self.masked_scatter(mask, source);
}
/// source[i] at place index[i] of the flattened tensor; added there with `accumulate`. Index and source have as many
/// elements.
inline Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false) {
  return self.put(index, source, accumulate);
}
/// gather() whose operands are broadcast to one another; without a dim, of the flattened tensor.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                             std::optional<std::int64_t> dim = std::nullopt) {
  return self.take_along_dim(indices, dim);
}
/// A copy of `self` with source's slices at the positions along `dim`.
inline Tensor index_copy(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.index_copy(dim, index, source);
}
/// A copy of `self` with `value` in the slices at the positions along `dim`.
inline Tensor index_fill(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return self.index_fill(dim, index, value);
}
inline Tensor index_fill(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& value) {
  return self.index_fill(dim, index, value);
}
/// A copy of `self` with `values` at the places that index() reads; added where `accumulate`.
inline Tensor index_put(const Tensor& self, const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                        bool accumulate = false) {
  return self.index_put(indices, values, accumulate);
}
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return self.scatter(dim, index, value);
}
/// What falls on one element is reduced with it: `reduce` is "add" or "multiply".
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce) {
  return self.scatter(dim, index, source, reduce);
}
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value,
                      std::string_view reduce) {
  return self.scatter(dim, index, value, reduce);
}
/// `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` an element that anything falls on does
/// not count itself.
inline Tensor scatter_reduce(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                             std::string_view reduce, bool include_self = true) {
  return self.scatter_reduce(dim, index, source, reduce, include_self);
}
/// The positions of the elements that are not zero: (count, rank), int64.
inline Tensor argwhere(const Tensor& self) { return self.argwhere(); }

}  // namespace tenon
