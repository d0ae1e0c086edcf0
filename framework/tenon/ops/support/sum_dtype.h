// What sums, products and scans of integers are computed in.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon::ops {

/// The dtype of a sum of `self`: the one asked for, or int64 for integers, which would soon overflow.
inline Dtype sum_dtype(const Tensor& self, std::optional<Dtype> dtype) {
  if (dtype) return *dtype;
  return self.is_floating_point() ? self.scalar_type() : Dtype::kInt64;
}

}  // namespace tenon::ops
