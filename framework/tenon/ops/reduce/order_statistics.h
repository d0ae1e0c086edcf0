// What stands where in the order of a dim: medians, quantiles, the k-th value, the commonest one. Along a dim results
// are values and their places; gradients go to these places. NaN counts as larger than every number.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Every sort of Tenon is stable; the flag is PyTorch's.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, std::int64_t dim = -1,
                                       bool descending = false) {
  return self.sort(stable, dim, descending);
}
template <class Bool>
requires(std::is_same_v<Bool, bool>) Tensor
    argsort(const Tensor& self, Bool stable, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(stable, dim, descending);
}
/// Sorted along dim 0.
inline Tensor msort(const Tensor& self) { return self.msort(); }
/// The lower one of two middle values; NaN, and its first place, where there is one.
inline std::tuple<Tensor, Tensor> median(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.median(dim, keepdim);
}
/// Of what is not NaN; NaN where nothing else is.
inline Tensor nanmedian(const Tensor& self) { return self.nanmedian(); }
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.nanmedian(dim, keepdim);
}
/// The k-th smallest, from 1.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, std::int64_t k, std::int64_t dim = -1,
                                           bool keepdim = false) {
  return self.kthvalue(k, dim, keepdim);
}
/// The commonest value, the smallest of those that are equally common, and its last place.
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, std::int64_t dim = -1, bool keepdim = false) {
  return self.mode(dim, keepdim);
}
/// The value below which the share q (0 to 1) of a dim lies, interpolated ("linear", "lower", "higher", "midpoint" or
/// "nearest"). A 1-dim `q` gives a first dim of its size. NaN where there is one; nanquantile is of what is not NaN.
inline Tensor quantile(const Tensor& self, double q, std::optional<std::int64_t> dim = std::nullopt,
                       bool keepdim = false, std::string_view interpolation = "linear") {
  return self.quantile(q, dim, keepdim, interpolation);
}
inline Tensor quantile(const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim = std::nullopt,
                       bool keepdim = false, std::string_view interpolation = "linear") {
  return self.quantile(q, dim, keepdim, interpolation);
}
/// quantile() of the elements that are not NaN.
inline Tensor nanquantile(const Tensor& self, double q, std::optional<std::int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear") {
  return self.nanquantile(q, dim, keepdim, interpolation);
}
inline Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear") {
  return self.nanquantile(q, dim, keepdim, interpolation);
}

}  // namespace tenon
