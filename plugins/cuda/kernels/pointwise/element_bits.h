// element_bits(dtype, value): a number as the bits of an element, for kernels that only move elements.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/kernel/attributes/scalar.h>

#include <cstdint>

namespace tenon::cuda {

/// In the lowest bytes of the result.
std::uint64_t element_bits(Dtype dtype, const ScalarValue& value);

}  // namespace tenon::cuda
