// How often something occurs. Results have no gradient.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// How many elements are not zero, along `dim` if one is given; int64.
inline Tensor count_nonzero(const Tensor& self) { return self.count_nonzero(); }
inline Tensor count_nonzero(const Tensor& self, std::int64_t dim) { return self.count_nonzero(dim); }
inline Tensor count_nonzero(const Tensor& self, IntArrayRef dim) { return self.count_nonzero(dim); }
/// (n) of integers >= 0 to the count of each number below max(n.max() + 1, minlength), kLong; or the sum of their
/// `weights` (n), of the weights' dtype if that is kFloat, else kDouble.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = std::nullopt,
                       std::int64_t minlength = 0) {
  return self.bincount(weights, minlength);
}
/// Counts (bins), in self's dtype, of elements in `bins` equal intervals of [min, max]; what lies outside is not
/// counted. Where min == max the elements' own bounds are taken.
inline Tensor histc(const Tensor& self, std::int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0) {
  return self.histc(bins, min, max);
}

}  // namespace tenon
