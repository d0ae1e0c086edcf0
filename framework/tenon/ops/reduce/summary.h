// Reductions out of others: both extremes, sums without NaN, the distance of two tensors, norms with a bound.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The smallest and the largest element, of all or along `dim`, as amin() and amax(). Throws Error where there is none.
inline std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt,
                                          bool keepdim = false) {
  return self.aminmax(dim, keepdim);
}
/// sum() of the elements that are not NaN, of all or over `dim`; 0 where all are. dtypes as of sum().
inline Tensor nansum(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                     std::optional<Dtype> dtype = std::nullopt) {
  return self.nansum(dim, keepdim, dtype);
}
/// mean() of the elements that are not NaN; NaN where all are. Throws Error for a dtype that is not floating.
inline Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt) {
  return self.nanmean(dim, keepdim, dtype);
}
/// The sum of a matrix's diagonal. Throws Error for another rank than 2.
inline Tensor trace(const Tensor& self) { return self.trace(); }
/// The p-norm of all elements of self - other, which are broadcast: a tensor of no dimension; floating dtypes only.
inline Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p = 2) { return self.dist(other, p); }
/// A copy in which each slice at one position of `dim` whose p-norm is above `maxnorm` is scaled down to it. Throws
/// Error below 2 dims, for p <= 0, for maxnorm < 0, and for a dtype that is not floating.
inline Tensor renorm(const Tensor& self, const Scalar& p, std::int64_t dim, const Scalar& maxnorm) {
  return self.renorm(p, dim, maxnorm);
}

}  // namespace tenon
