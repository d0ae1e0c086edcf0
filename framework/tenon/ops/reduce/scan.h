// Scans: results over all elements up to each one along a dim; differences of neighbours, and areas under curves.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// cumsum() in place, in self's dtype, where small integers wrap. Throws Error for a `dtype` that is another.
inline Tensor& cumsum_(Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumsum_(dim, dtype);
}
/// cumprod() in place, in self's dtype, where small integers wrap. Throws Error for a `dtype` that is another.
inline Tensor& cumprod_(Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumprod_(dim, dtype);
}
/// The largest of the elements up to each one along `dim`, and the last position that it has there (int64). From the
/// first NaN on all are NaN. Throws Error for a dim out of range.
inline std::tuple<Tensor, Tensor> cummax(const Tensor& self, std::int64_t dim) { return self.cummax(dim); }
/// The smallest of the elements up to each one along `dim`, and the last position that it has there (int64). From the
/// first NaN on all are NaN. Throws Error for a dim out of range.
inline std::tuple<Tensor, Tensor> cummin(const Tensor& self, std::int64_t dim) { return self.cummin(dim); }
/// The n-th differences of neighbours along `dim`, n shorter than it, after `prepend` and `append` (of self's sizes but
/// for `dim`) are joined on; of bool whether neighbours differ. With n = 0 a copy of self alone. Throws Error for a
/// tensor of no dimension, a negative n, and parts to join of another rank or other sizes.
inline Tensor diff(const Tensor& self, std::int64_t n = 1, std::int64_t dim = -1,
                   const std::optional<Tensor>& prepend = std::nullopt,
                   const std::optional<Tensor>& append = std::nullopt) {
  return self.diff(n, dim, prepend, append);
}
/// The area under `y` along `dim` by trapezoids, without that dim: at the points `x` (a vector with a point for each
/// position of `dim`, or broadcast to y's sizes), or at points `dx` apart. Throws Error for bool.
TENON_API Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim = -1);
TENON_API Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, std::int64_t dim = -1);
inline Tensor trapz(const Tensor& y, const Tensor& x, std::int64_t dim = -1) { return trapezoid(y, x, dim); }
inline Tensor trapz(const Tensor& y, double dx = 1, std::int64_t dim = -1) { return trapezoid(y, Scalar(dx), dim); }
/// trapezoid() from the first point to each other one: `dim` is one shorter. Throws Error as trapezoid().
TENON_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim = -1);
TENON_API Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, std::int64_t dim = -1);

}  // namespace tenon
