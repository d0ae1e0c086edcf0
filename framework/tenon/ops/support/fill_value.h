// What fills a tensor.
#pragma once

#include <tenon/ops/support/scalar_operand.h>
#include <tenon/tensor/scalar.h>

namespace tenon::ops {

/// The number as an element of a tensor of `count` elements. Throws Error for one that the dtype cannot hold; but as in
/// PyTorch a single element of 16 bits becomes infinite then.
inline ScalarValue fill_value(const Scalar& value, Dtype dtype, std::int64_t count) {
  const bool becomes_infinite = count == 1 && (dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16);
  return becomes_infinite ? value.value() : element_of(value, dtype);
}

}  // namespace tenon::ops
