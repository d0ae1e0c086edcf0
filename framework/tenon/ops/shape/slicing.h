// Views of a part: a position, a range, a diagonal.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// A view of one position of `dim`, without that dim; a negative one counts from the end. Throws IndexError for a
/// position out of range.
inline Tensor select(const Tensor& self, std::int64_t dim, std::int64_t index) { return self.select(dim, index); }
/// A view of the positions start, start + step … below end of `dim`; negative ones count from the end, and those beyond
/// the dim are moved to its ends. Throws Error for a step below 1.
inline Tensor slice(const Tensor& self, std::int64_t dim = 0, std::optional<std::int64_t> start = std::nullopt,
                    std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1) {
  return self.slice(dim, start, end, step);
}
/// A view of `length` positions of `dim` from `start` on, a negative one counted from the end. Throws Error where they
/// reach beyond the dim.
inline Tensor narrow(const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return self.narrow(dim, start, length);
}
/// libtorch's private name for reshape()'s view: as_strided() at the tensor's own offset.
inline Tensor _reshape_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return self.as_strided(sizes, strides);
}
/// A view of the storage under any sizes and strides (in elements) from `offset` on, by default the tensor's own.
/// Throws Error where it would reach beyond the storage, and for a negative size, stride or offset.
inline Tensor as_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                         std::optional<std::int64_t> offset = std::nullopt) {
  return self.as_strided(sizes, strides, offset);
}
/// A view of the diagonal of dim1 and dim2, as the last dim; `offset` above the main one (below if negative). Throws
/// Error where both are one dim, or out of range.
inline Tensor diagonal(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1) {
  return self.diagonal(offset, dim1, dim2);
}

}  // namespace tenon
