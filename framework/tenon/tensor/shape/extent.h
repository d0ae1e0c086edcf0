// Extents: how many elements and bytes a geometry spans, refused where 63 bits do not hold it. Every size, stride and
// offset that a user gives comes through here before memory is taken or a view is made; a wrapped product would be a
// tensor that reaches beyond its storage.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/export.h>
#include <tenon/tensor/shape/dims.h>

#include <cstdint>

namespace tenon {

/// "Storage size calculation overflowed with sizes=[…]", as PyTorch words it. Throws Error.
[[noreturn]] TENON_API void storage_size_overflow(const Dims& sizes);

/// Bytes of a dense tensor of these (non-negative) sizes. Throws Error where they, or its strides, overflow.
inline std::size_t dense_bytes(const Dims& sizes, Dtype dtype) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool bad = false;
  bool empty = false;
  for (const std::int64_t size : sizes) {
    empty |= size == 0;
    bad |= size < 0;
    bad |= __builtin_mul_overflow(bytes, size > 0 ? size : std::int64_t{1}, &bytes);
  }
  if (bad) [[unlikely]]
    storage_size_overflow(sizes);
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

/// Bytes from the start of a storage to the last element of a view of it; 0 for a view without elements.
/// Throws Error where sizes and strides differ in number or their products overflow; a negative stride overflows.
TENON_API std::size_t strided_bytes(const Dims& sizes, const Dims& strides, Dtype dtype, std::int64_t offset = 0);

/// Product of the sizes. Throws Error ("numel: integer multiplication overflow") where it overflows or one is negative.
TENON_API std::int64_t element_count(const Dims& sizes);

/// a * b for a size of a result; `sizes` are what the error names. Throws Error where that overflows.
TENON_API std::int64_t size_product(std::int64_t a, std::int64_t b, const Dims& sizes);

/// Throws Error where a size is negative.
TENON_API void check_sizes(IntArrayRef sizes);

}  // namespace tenon
