// Checked arithmetic of sizes, strides and offsets.
#include <tenon/tensor/shape/extent.h>

#include <limits>

namespace tenon {

void storage_size_overflow(const Dims& sizes) {
  throw Error("Storage size calculation overflowed with sizes=" + to_string(sizes));
}

std::size_t strided_bytes(const Dims& sizes, const Dims& strides, Dtype dtype, std::int64_t offset) {
  if (sizes.rank() != strides.rank()) {
    throw Error("dimensionality of sizes (" + std::to_string(sizes.rank()) +
                ") must match dimensionality of strides (" + std::to_string(strides.rank()) + ")");
  }
  // Unsigned, so that a negative size or stride overflows; the offset is not negative.
  std::uint64_t reach = static_cast<std::uint64_t>(offset) + 1;
  bool bad = false;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] == 0) return 0;
    std::uint64_t span = 0;
    bad |=
        __builtin_mul_overflow(static_cast<std::uint64_t>(strides[i]), static_cast<std::uint64_t>(sizes[i] - 1), &span);
    bad |= __builtin_add_overflow(reach, span, &reach);
  }
  bad |= __builtin_mul_overflow(reach, std::uint64_t{size_of(dtype)}, &reach);
  if (bad || reach > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error("Storage size calculation overflowed with sizes=" + to_string(sizes) +
                " and strides=" + to_string(strides));
  }
  return static_cast<std::size_t>(reach);
}

std::int64_t element_count(const Dims& sizes) {
  std::int64_t count = 1;
  bool bad = false;
  for (const std::int64_t size : sizes) {
    bad |= size < 0;
    bad |= __builtin_mul_overflow(count, size, &count);
  }
  if (bad) [[unlikely]]
    throw Error("numel: integer multiplication overflow (sizes " + to_string(sizes) + ")");
  return count;
}

std::int64_t size_product(std::int64_t a, std::int64_t b, const Dims& sizes) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) storage_size_overflow(sizes);
  return product;
}

void check_sizes(IntArrayRef sizes) {
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      throw Error("Trying to create tensor with negative dimension " + std::to_string(size) + ": " + to_string(sizes));
    }
  }
}

}  // namespace tenon
