// Which numbers keep their digits beside 16 bits.
#include <tenon/ops/pointwise/number_operand.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

namespace tenon::ops {
namespace {

/// Whether a number on the right keeps its digits where 16 bits are computed: factors and divisors.
bool keeps_digits(const BinaryRule& of, Dtype dtype) {
  if (dtype != Dtype::kFloat16 && dtype != Dtype::kBFloat16) return false;
  return &of == &rule<pointwise::Mul>() || &of == &rule<pointwise::Div>() || &of == &rule<pointwise::TruncDivide>() ||
         &of == &rule<pointwise::FloorDivide>();
}

}  // namespace

ScalarValue number_of(const BinaryRule& of, const Scalar& number, Dtype dtype) {
  const ScalarValue operand = operand_of(number, dtype);
  return keeps_digits(of, dtype) ? operand : rounded_to(operand, dtype);
}

void compute_pair(const BinaryRule& of, const Tensor& result, const Tensor& left, const Tensor& right,
                  const Tensor& converted, const BinaryAttributes& attributes) {
  const Dtype dtype = converted.scalar_type();
  if (right.scalar_type() != dtype && right.dim() == 0 && keeps_digits(of, dtype) && right.device().is_cpu())
      [[unlikely]] {
    BinaryAttributes by_number = attributes;
    by_number.scalar = operand_of(right.item(), dtype);
    by_number.scalar_side = ScalarSide::kRight;
    return compute(of.op, result, left, by_number);
  }
  compute(of.op, result, left, converted, attributes);
}

BinaryAttributes with_alpha(const Scalar& alpha, const Tensor& a, const Tensor& b, const char* op) {
  BinaryAttributes attributes;
  if (alpha.isIntegral() && alpha.value().integer == 1) [[likely]]
    return attributes;
  const Dtype dtype = tenon::result_type(a, b);
  check_factor("alpha", alpha, dtype, op);
  attributes.alpha = rounded_to(element_of(alpha, dtype), dtype);
  return attributes;
}

BinaryAttributes with_alpha_of_difference(const Scalar& alpha, const Tensor& a, const Tensor& b, const char* op) {
  if (alpha.isBoolean() || (alpha.isIntegral() && alpha.value().integer == 1)) return with_alpha(alpha, a, b, op);
  BinaryAttributes attributes = with_alpha(-alpha, a, b, op);
  const auto bits = static_cast<std::uint64_t>(attributes.alpha.integer);
  attributes.alpha = {-attributes.alpha.real, static_cast<std::int64_t>(-bits)};
  return attributes;
}

Scalar product(const Tensor& self, const Scalar& other, const Scalar& alpha, const char* op) {
  if (alpha.isIntegral() && alpha.value().integer == 1) [[likely]]
    return other;
  check_factor("alpha", alpha, tenon::result_type(self, other), op);
  if (other.isFloatingPoint() || alpha.isFloatingPoint()) return other.toDouble() * alpha.toDouble();
  const auto number = static_cast<std::int64_t>(static_cast<std::uint64_t>(other.toLong()) *
                                                static_cast<std::uint64_t>(alpha.toLong()));
  return other.isBoolean() ? Scalar(number != 0) : Scalar(number);
}

}  // namespace tenon::ops
