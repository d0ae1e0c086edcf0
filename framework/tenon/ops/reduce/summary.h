// Reductions out of others: both extremes, sums without NaN, distances, norms kept small.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The smallest and the largest element, of all or along `dim`.
inline std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt,
                                          bool keepdim = false) {
  return self.aminmax(dim, keepdim);
}
/// sum() and mean() of what is not NaN.
inline Tensor nansum(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                     std::optional<Dtype> dtype = std::nullopt) {
  return self.nansum(dim, keepdim, dtype);
}
/// mean() of the elements that are not NaN.
inline Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt) {
  return self.nanmean(dim, keepdim, dtype);
}
/// The sum of a matrix's diagonal.
inline Tensor trace(const Tensor& self) { return self.trace(); }
/// The p-norm of self - other.
inline Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p = 2) { return self.dist(other, p); }
/// Slices along `dim` whose p-norm is above `maxnorm` are scaled down to it.
inline Tensor renorm(const Tensor& self, const Scalar& p, std::int64_t dim, const Scalar& maxnorm) {
  return self.renorm(p, dim, maxnorm);
}
/// p-norms of the differences of all rows: (…, P, M) and (…, R, M) to (…, P, R). The batch dims are broadcast. As in
/// PyTorch Euclidean distances of more than 25 rows come from one matrix product, which needs no memory for P R M
/// differences but is less exact for rows close to each other; `compute_mode` 1 always does so, 2 never.
TENON_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                       std::optional<std::int64_t> compute_mode = std::nullopt);

}  // namespace tenon
