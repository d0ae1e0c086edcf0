// Copies, conversions and moves between devices.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// A copy with memory of its own, of self's sizes, dtype and device, in the memory format asked for, else in that of
/// `self`. Throws Error for a format that does not fit the rank.
inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> format = std::nullopt) {
  return self.clone(format);
}
/// Sets every element to a number. Throws Error for one that self's dtype cannot hold.
inline Tensor& fill_(Tensor& self, const Scalar& value) { return self.fill_(value); }
/// Sets every element to 0, of any dtype. Throws Error for a leaf that requires a gradient.
inline Tensor& zero_(Tensor& self) { return self.zero_(); }
/// A view of the same sizes and dtype that shares memory and version, and belongs to no graph.
inline Tensor detach(const Tensor& self) { return self.detach(); }
/// Whether the dtype is a floating one.
inline bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
/// Whether the one element is not zero. Throws Error for any other number of elements.
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }

}  // namespace tenon
