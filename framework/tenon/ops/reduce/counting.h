// How often something occurs. Results have no gradient.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// How many elements are not zero (NaN is counted), of all or along `dim`, one or several; int64.
inline Tensor count_nonzero(const Tensor& self) { return self.count_nonzero(); }
inline Tensor count_nonzero(const Tensor& self, std::int64_t dim) { return self.count_nonzero(dim); }
inline Tensor count_nonzero(const Tensor& self, IntArrayRef dim) { return self.count_nonzero(dim); }
/// For integers >= 0 of sizes (n): how often each number below max(self.max() + 1, minlength) occurs, int64; or the sum
/// of the `weights` (n) of its elements, float32 where the weights are, else float64. An empty vector gives int64
/// zeros, with weights too, as in PyTorch. Throws Error for a negative number or minlength, other sizes, and a dtype
/// that is not an integer's.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = std::nullopt,
                       std::int64_t minlength = 0) {
  return self.bincount(weights, minlength);
}
/// How many elements lie in each of `bins` equal intervals of [min, max]: (bins), of self's dtype. What lies outside is
/// not counted. Where min == max the smallest and the largest element are the bounds; bounds that are equal then move 1
/// apart from their place. Throws Error for a dtype that is not floating, bounds that are not finite (hence for NaN
/// among the elements where these give the bounds), min > max, and bins < 1.
inline Tensor histc(const Tensor& self, std::int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0) {
  return self.histc(bins, min, max);
}

}  // namespace tenon
