// Scans: what has come up to an element along its dim; and differences of neighbours and sums of areas.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// cumsum() in place, in its own dtype.
inline Tensor& cumsum_(Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumsum_(dim, dtype);
}
/// cumprod() in place, in its own dtype.
inline Tensor& cumprod_(Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumprod_(dim, dtype);
}
/// The largest (smallest) so far, and its last place; a NaN stays.
inline std::tuple<Tensor, Tensor> cummax(const Tensor& self, std::int64_t dim) { return self.cummax(dim); }
/// The minimum of what has come up to each element along `dim`, and where it is (int64).
inline std::tuple<Tensor, Tensor> cummin(const Tensor& self, std::int64_t dim) { return self.cummin(dim); }
/// log(cumsum(exp(x))) without overflow.
inline Tensor logcumsumexp(const Tensor& self, std::int64_t dim) { return self.logcumsumexp(dim); }
/// The n-th differences of neighbours along `dim`, after `prepend` and `append` are joined on; of kBool: whether they
/// differ.
inline Tensor diff(const Tensor& self, std::int64_t n = 1, std::int64_t dim = -1,
                   const std::optional<Tensor>& prepend = std::nullopt,
                   const std::optional<Tensor>& append = std::nullopt) {
  return self.diff(n, dim, prepend, append);
}
/// The area under `y` along `dim` by trapezoids, at points `x` (of y's sizes, or a vector of the dim's) or dx apart.
TENON_API Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim = -1);
TENON_API Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, std::int64_t dim = -1);
inline Tensor trapz(const Tensor& y, const Tensor& x, std::int64_t dim = -1) { return trapezoid(y, x, dim); }
inline Tensor trapz(const Tensor& y, double dx = 1, std::int64_t dim = -1) { return trapezoid(y, Scalar(dx), dim); }
/// The areas up to each point but the first.
TENON_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim = -1);
TENON_API Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, std::int64_t dim = -1);

}  // namespace tenon
