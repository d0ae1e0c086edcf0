// The conversion of numbers to elements, checked.
#include <tenon/core/half.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/tensor/libtorch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace tenon::ops {
namespace {

[[noreturn]] void overflow(const Scalar& value, const char* type) {
  std::ostringstream text;
  text << "value cannot be converted to type " << type << " without overflow (the value is " << value << ")";
  throw Error(text.str());
}

template <class T>
ScalarValue whole(const Scalar& value, const char* type) {
  const bool beyond =
      value.isFloatingPoint() ? detail::overflows<T>(value.toDouble()) : detail::overflows<T>(value.toLong());
  if (beyond) overflow(value, type);
  const auto element = static_cast<std::int64_t>(static_cast<T>(value.value().integer));
  return {static_cast<double>(element), element};
}

ScalarValue real(const Scalar& value, double largest, const char* type) {
  const double number = value.toDouble();
  if (std::abs(number) > largest && !std::isinf(number)) overflow(value, type);
  return value.value();
}

template <class T>
ScalarValue within(const Scalar& value, Dtype dtype, Bound side) {
  constexpr std::int64_t lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
  const std::int64_t number = value.toLong();
  if (side == Bound::kLow ? number > highest : number < lowest) {
    std::ostringstream text;
    text << "Clamp " << (side == Bound::kLow ? "min" : "max") << " value " << number
         << " is outside the representable range of " << toString(dtype);
    throw Error(text.str());
  }
  const std::int64_t element = std::clamp(number, lowest, highest);
  return {static_cast<double>(element), element};
}

}  // namespace

void check_factor(const char* name, const Scalar& value, Dtype dtype, const char* op) {
  std::ostringstream text;
  if (value.isBoolean() && dtype != Dtype::kBool) {
    text << "Boolean " << name << " only supported for Boolean results. (in operator " << op << ")";
  } else if (is_integral(dtype, true) && value.isFloatingPoint()) {
    text << "For integral input tensors, argument " << name << " must not be a floating point number. (in operator "
         << op << ")";
  } else {
    element_of(value, dtype);
    return;
  }
  throw Error(text.str());
}

ScalarValue bound_of(const Scalar& value, Dtype dtype, Bound side) {
  switch (dtype) {
    case Dtype::kUInt8:
      return within<std::uint8_t>(value, dtype, side);
    case Dtype::kInt8:
      return within<std::int8_t>(value, dtype, side);
    case Dtype::kInt16:
      return within<std::int16_t>(value, dtype, side);
    case Dtype::kInt32:
      return within<std::int32_t>(value, dtype, side);
    default:
      return element_of(value, dtype);
  }
}

ScalarValue rounded_to(const ScalarValue& value, Dtype dtype) {
  const auto rounded = [&value](float number) { return ScalarValue{number, value.integer}; };
  if (dtype == Dtype::kFloat16) return rounded(Half(static_cast<float>(value.real)));
  if (dtype == Dtype::kBFloat16) return rounded(BFloat16(static_cast<float>(value.real)));
  return value;
}

ScalarValue element_of(const Scalar& value, Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return operand_of(value, dtype);
    case Dtype::kUInt8:
      return whole<std::uint8_t>(value, "uint8_t");
    case Dtype::kInt8:
      return whole<std::int8_t>(value, "int8_t");
    case Dtype::kInt16:
      return whole<std::int16_t>(value, "int16_t");
    case Dtype::kInt32:
      return whole<std::int32_t>(value, "int");
    case Dtype::kInt64:
      return value.isFloatingPoint() ? whole<std::int64_t>(value, "int64_t") : value.value();
    case Dtype::kFloat16:
      return real(value, 65504.0, "at::Half");
    case Dtype::kBFloat16:
      return real(value, 0x1.fep127, "at::BFloat16");
    case Dtype::kFloat32:
      return real(value, std::numeric_limits<float>::max(), "float");
    default:
      return value.value();
  }
}

}  // namespace tenon::ops
