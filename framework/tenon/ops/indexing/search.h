// Positions in sorted sequences.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Where each value would be inserted into the ascending last dim of `sorted_sequence`, so that it stays ascending:
/// before equal ones, or behind them with `right` (or side "right"). `sorted_sequence` is (n), or (…, n) with the
/// leading sizes of `self`, (…, m); the result has self's sizes, kLong or with `out_int32` kInt. `sorter`, of the
/// sequence's sizes and of kLong, gives the order that would sort it. Both are compared in their common dtype, NaN
/// behind all numbers. Throws Error for other sizes, for side "left" together with `right`, and where the common dtype
/// is bool.
TENON_API Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32 = false,
                              bool right = false, std::optional<std::string_view> side = std::nullopt,
                              const std::optional<Tensor>& sorter = std::nullopt);
TENON_API Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32 = false,
                              bool right = false, std::optional<std::string_view> side = std::nullopt,
                              const std::optional<Tensor>& sorter = std::nullopt);
/// searchsorted(boundaries, self): the number of the interval between ascending `boundaries` (n) that each value lies
/// in, of self's sizes, kLong or with `out_int32` kInt. Throws Error for boundaries of another rank.
TENON_API Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);
TENON_API Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32 = false, bool right = false);

}  // namespace tenon
