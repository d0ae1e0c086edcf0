// Reductions, scans and sorting.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The sum over `dim` (all if none); integers in int64, unless a dtype is given.
TENON_API Tensor sum(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                     std::optional<Dtype> dtype = std::nullopt);
/// The mean over `dim` (all if none). Throws Error for integers, unless a floating dtype is given.
TENON_API Tensor mean(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
/// The product over `dim` (all if none); integers in int64, unless a dtype is given.
TENON_API Tensor prod(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor prod(const Tensor& self, std::int64_t dim, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
/// The maximum over `dim` (all if none); equal maxima share the gradient. Throws Error where there are no elements.
TENON_API Tensor amax(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
/// The minimum over `dim` (all if none); equal minima share the gradient. Throws Error where there are no elements.
TENON_API Tensor amin(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
inline Tensor max(const Tensor& self) { return self.max(); }
inline std::tuple<Tensor, Tensor> max(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.max(dim, keepdim);
}
inline Tensor min(const Tensor& self) { return self.min(); }
inline std::tuple<Tensor, Tensor> min(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.min(dim, keepdim);
}
/// The position of the maximum, of the first of equal ones, along `dim`, else in the flattened tensor; int64.
inline Tensor argmax(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false) {
  return self.argmax(dim, keepdim);
}
/// The position of the minimum, of the first of equal ones, along `dim`, else in the flattened tensor; int64.
inline Tensor argmin(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false) {
  return self.argmin(dim, keepdim);
}
/// Whether any element is true (not zero), along `dim` if one is given; bool, for uint8 uint8. False where there are
/// none.
inline Tensor any(const Tensor& self) { return self.any(); }
inline Tensor any(const Tensor& self, std::int64_t dim, bool keepdim = false) { return self.any(dim, keepdim); }
/// Whether all elements are true (not zero), along `dim` if one is given; bool, for uint8 uint8. True where there are
/// none.
inline Tensor all(const Tensor& self) { return self.all(); }
inline Tensor all(const Tensor& self, std::int64_t dim, bool keepdim = false) { return self.all(dim, keepdim); }
/// The p-norm over `dim` (all if none): (sum |x|^p)^(1/p); infinite p give the extremes of |x|.
TENON_API Tensor norm(const Tensor& self, const Scalar& p = 2);
TENON_API Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false);
/// The variance over `dim` (all if none), divided by n - 1, or by n if `unbiased` is off. Floating dtypes only.
inline Tensor var(const Tensor& self, bool unbiased = true) { return self.var(unbiased); }
inline Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) {
  return self.var(dim, unbiased, keepdim);
}
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
/// The standard deviation over `dim` (all if none), divided by n - 1, or by n if `unbiased` is off. Floating dtypes
/// only.
inline Tensor std(const Tensor& self, bool unbiased = true) { return self.std(unbiased); }
inline Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) {
  return self.std(dim, unbiased, keepdim);
}
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
/// Variance and mean: see var() and mean().
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
/// Standard deviation and mean: see std() and mean().
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);
/// The sum of what has come up to each element along `dim`; integers in int64, unless a dtype is given.
inline Tensor cumsum(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumsum(dim, dtype);
}
/// The product of what has come up to each element along `dim`; integers in int64, unless a dtype is given.
inline Tensor cumprod(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumprod(dim, dtype);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.sort(dim, descending);
}
/// The positions that would sort `dim`; int64, `self`'s sizes. Equal elements keep their order.
inline Tensor argsort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(dim, descending);
}
/// The k largest (or smallest) elements along `dim`, sorted, and their positions (int64). Throws Error for k beyond the
/// dim.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, std::int64_t k, std::int64_t dim = -1, bool largest = true,
                                       bool sorted = true) {
  return self.topk(k, dim, largest, sorted);
}
/// log of the sum of exp(x) over `dim`, without overflow.
TENON_API Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
/// exp(x) / sum of exp(x) along `dim`, without overflow; with a dtype the input is converted before.
TENON_API Tensor softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
/// The logarithm of softmax(), without its loss of precision.
TENON_API Tensor log_softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
/// softmax() of -x.
TENON_API Tensor softmin(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
inline Tensor median(const Tensor& self) { return self.median(); }

}  // namespace tenon
