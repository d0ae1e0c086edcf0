// A number as the bits of an element.
#include "kernels/pointwise/element_bits.h"

#include <bit>

namespace tenon::cuda {

std::uint64_t element_bits(Dtype dtype, const ScalarValue& value) {
  switch (dtype) {
    case Dtype::kFloat64:
      return std::bit_cast<std::uint64_t>(value.real);
    case Dtype::kFloat32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value.real));
    case Dtype::kFloat16:
      return Half(static_cast<float>(value.real)).bits;
    case Dtype::kBFloat16:
      return BFloat16(static_cast<float>(value.real)).bits;
    case Dtype::kBool:
      return value.integer != 0;
    default:
      return static_cast<std::uint64_t>(value.integer);
  }
}

}  // namespace tenon::cuda
