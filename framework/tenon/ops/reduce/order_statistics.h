// Statistics of the order along a dim: medians, quantiles, the k-th value, the most frequent one. Along a dim the
// results are values and their positions (int64); gradients go to these positions. NaN counts as larger than every
// number.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// sort(self, dim, descending): equal elements keep their order whatever `stable` says.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, std::int64_t dim = -1,
                                       bool descending = false) {
  return self.sort(stable, dim, descending);
}
/// The positions that sort() gives, int64; equal elements keep their order whatever `stable` says.
template <class Bool>
requires(std::is_same_v<Bool, bool>) Tensor
    argsort(const Tensor& self, Bool stable, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(stable, dim, descending);
}
/// A copy sorted along dim 0, in ascending order.
inline Tensor msort(const Tensor& self) { return self.msort(); }
/// The middle value along `dim`, the lower one of two, and its position; NaN and the position of the first NaN where
/// there is one. Throws Error for bool and an empty dim.
inline std::tuple<Tensor, Tensor> median(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.median(dim, keepdim);
}
/// median() of the elements that are not NaN; NaN where all are. Throws Error as median().
inline Tensor nanmedian(const Tensor& self) { return self.nanmedian(); }
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.nanmedian(dim, keepdim);
}
/// The k-th smallest value along `dim`, counted from 1, and its position. Throws Error for a k out of range, and for
/// bool.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, std::int64_t k, std::int64_t dim = -1,
                                           bool keepdim = false) {
  return self.kthvalue(k, dim, keepdim);
}
/// The most frequent value along `dim`, the smallest one of several, and the last of its positions. Throws Error for
/// bool, and IndexError for an empty dim.
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, std::int64_t dim = -1, bool keepdim = false) {
  return self.mode(dim, keepdim);
}
/// The value below which the share q of the elements lies, of all or along `dim`; between two elements `interpolation`
/// decides: "linear", "lower", "higher", "midpoint" or "nearest". A 1-dim `q` gives a first dim of its size. NaN where
/// an element is NaN. Throws Error for a q outside of 0 to 1, for dtypes other than float32 and float64, and for a `q`
/// of another dtype than self's.
inline Tensor quantile(const Tensor& self, double q, std::optional<std::int64_t> dim = std::nullopt,
                       bool keepdim = false, std::string_view interpolation = "linear") {
  return self.quantile(q, dim, keepdim, interpolation);
}
inline Tensor quantile(const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim = std::nullopt,
                       bool keepdim = false, std::string_view interpolation = "linear") {
  return self.quantile(q, dim, keepdim, interpolation);
}
/// quantile() of the elements that are not NaN; NaN where all are. Sizes, dtypes and errors as of quantile().
inline Tensor nanquantile(const Tensor& self, double q, std::optional<std::int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear") {
  return self.nanquantile(q, dim, keepdim, interpolation);
}
inline Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear") {
  return self.nanquantile(q, dim, keepdim, interpolation);
}

}  // namespace tenon
