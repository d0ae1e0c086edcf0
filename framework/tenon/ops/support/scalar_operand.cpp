// The conversion of numbers to elements, checked.
#include <tenon/ops/support/scalar_operand.h>

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

}  // namespace

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
