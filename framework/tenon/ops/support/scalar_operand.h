// A Scalar beside a tensor of some dtype, by PyTorch's rules: which numbers are refused, which wrap, which bounds are
// replaced by the dtype's own extremes.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/tensor/libtorch/libtorch_dtypes.h>
#include <tenon/tensor/scalar.h>

namespace tenon::ops {

/// The number as an element to be written (fill, masks, bounds, alpha): any number but 0 is true; an integer may be as
/// negative as the dtype's largest is positive, and wraps. Throws Error where the dtype cannot hold the number.
ScalarValue element_of(const Scalar& value, Dtype dtype);

/// The same as kernels compute with it: elements of 16 bits are float32 there.
inline ScalarValue computed_element_of(const Scalar& value, Dtype dtype) {
  return element_of(value, isReducedFloatingType(dtype) ? Dtype::kFloat32 : dtype);
}

/// The number as an operand of a tensor of that dtype (x + 300, x < -3): integers wrap, as a tensor of it would.
inline ScalarValue operand_of(const Scalar& value, Dtype dtype) {
  const auto wrapped = [](std::int64_t number) { return ScalarValue{static_cast<double>(number), number}; };
  switch (dtype) {
    case Dtype::kBool:
      return wrapped(value.toBool());
    case Dtype::kUInt8:
      return wrapped(static_cast<std::uint8_t>(value.value().integer));
    case Dtype::kInt8:
      return wrapped(static_cast<std::int8_t>(value.value().integer));
    case Dtype::kInt16:
      return wrapped(static_cast<std::int16_t>(value.value().integer));
    case Dtype::kInt32:
      return wrapped(static_cast<std::int32_t>(value.value().integer));
    default:
      return value.value();
  }
}

/// The number rounded to a floating dtype of 16 bits, as libtorch's operators have it but for factors and divisors: 3.7
/// equals what 3.7 was rounded to. Beside other dtypes it is as it was: kernels compute in them.
ScalarValue rounded_to(const ScalarValue& value, Dtype dtype);

/// Throws Error where a factor (`name`: alpha, beta) is of a kind that a result of that dtype does not take, or a
/// number that it cannot hold.
void check_factor(const char* name, const Scalar& value, Dtype dtype, const char* op);

enum class Bound { kLow, kHigh };
/// The number as a bound on elements of that dtype (clamp): where every integer of the dtype is within it, the dtype's
/// own extreme. Throws Error where none is, and where a floating dtype cannot hold the number.
ScalarValue bound_of(const Scalar& value, Dtype dtype, Bound side);

}  // namespace tenon::ops
