// Copies, conversions and moves between devices.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> format = std::nullopt) {
  return self.clone(format);
}
inline Tensor& fill_(Tensor& self, const Scalar& value) { return self.fill_(value); }
inline Tensor& zero_(Tensor& self) { return self.zero_(); }
inline Tensor detach(const Tensor& self) { return self.detach(); }
inline bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }

}  // namespace tenon
