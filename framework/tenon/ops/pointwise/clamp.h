// Kept between bounds: numbers, or tensors that are broadcast.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

namespace tenon {

/// The larger one of each element and `low`, which is broadcast: see clamp() in pointwise.h.
inline Tensor clamp(const Tensor& self, const std::optional<Tensor>& low) { return self.clamp(low); }
/// The larger one of each element and `low`, which is broadcast. Throws Error as clamp().
inline Tensor clamp_min(const Tensor& self, const Tensor& low) { return self.clamp_min(low); }
/// The smaller one of each element and `high`, which is broadcast. Throws Error as clamp().
inline Tensor clamp_max(const Tensor& self, const Tensor& high) { return self.clamp_max(high); }
inline Tensor clip(const Tensor& self, const std::optional<Scalar>& low,
                   const std::optional<Scalar>& high = std::nullopt) {
  return self.clamp(low, high);
}
inline Tensor clip(const Tensor& self, const std::optional<Tensor>& low,
                   const std::optional<Tensor>& high = std::nullopt) {
  return self.clamp(low, high);
}
/// clamp() in place. Throws Error where the result's dtype cannot be cast to that of `self`.
inline Tensor& clamp_(Tensor& self, const std::optional<Scalar>& low,
                      const std::optional<Scalar>& high = std::nullopt) {
  return self.clamp_(low, high);
}
inline Tensor& clamp_(Tensor& self, const std::optional<Tensor>& low,
                      const std::optional<Tensor>& high = std::nullopt) {
  return self.clamp_(low, high);
}
inline Tensor& clip_(Tensor& self, const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt) {
  return self.clamp_(low, high);
}

}  // namespace tenon
