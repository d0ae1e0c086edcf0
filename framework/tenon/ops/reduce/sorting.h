// Sorting along a dimension, and what is read off the order.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The values in order along `dim`, and the position that each came from (int64). Equal elements keep their order. NaN
/// counts as the largest.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.sort(dim, descending);
}
/// The positions that sort() gives, int64.
inline Tensor argsort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(dim, descending);
}
/// The k largest (smallest) values along `dim`, and the positions that they came from (int64): the best one first
/// whatever `sorted` says, the first of equal ones. NaN counts as the largest. Throws Error for a negative k, and one
/// above the size of `dim`.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, std::int64_t k, std::int64_t dim = -1, bool largest = true,
                                       bool sorted = true) {
  return self.topk(k, dim, largest, sorted);
}
/// The middle one of all elements, the lower one of two; equal ones share the gradient. NaN where an element is NaN, or
/// there is none. Throws Error for bool.
inline Tensor median(const Tensor& self) { return self.median(); }

}  // namespace tenon
