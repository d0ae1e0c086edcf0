// Sorting along a dimension, and what is read off the order.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Values in order, and where each came from (int64). Stable; NaN counts as the largest.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.sort(dim, descending);
}
/// The second of sort()'s results.
inline Tensor argsort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(dim, descending);
}
/// The k largest (smallest) values in order, and where they came from (int64). Throws Error where there are fewer.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, std::int64_t k, std::int64_t dim = -1, bool largest = true,
                                       bool sorted = true) {
  return self.topk(k, dim, largest, sorted);
}
/// Of all elements the one in the middle; of an even number the lower one.
inline Tensor median(const Tensor& self) { return self.median(); }

}  // namespace tenon
