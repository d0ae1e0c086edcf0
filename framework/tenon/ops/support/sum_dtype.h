// What sums are computed in: those, products and scans of integers, and statistics of rows.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon::ops {

/// The dtype of a sum of `self`: the one asked for, or int64 for integers, which would soon overflow.
inline Dtype sum_dtype(const Tensor& self, std::optional<Dtype> dtype) {
  if (dtype) return *dtype;
  return self.is_floating_point() ? self.scalar_type() : Dtype::kInt64;
}

/// The dtype of what is kept of a row of self's, its mean or the logarithm of a sum: float32, or float64 of float64.
inline Dtype statistics_dtype(const Tensor& self) { return self.scalar_type() == kFloat64 ? kFloat64 : kFloat32; }

}  // namespace tenon::ops
