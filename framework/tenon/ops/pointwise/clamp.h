// Kept between bounds: numbers, or tensors that are broadcast.
#pragma once

#include <tenon/ops/pointwise/pointwise.h>

namespace tenon {

/// Kept between two bounds, numbers or tensors that are broadcast; one may be left out. NaN stays. Throws Error where
/// both are.
inline Tensor clamp(const Tensor& self, const std::optional<Tensor>& low) { return self.clamp(low); }
/// At least `low`.
inline Tensor clamp_min(const Tensor& self, const Tensor& low) { return self.clamp_min(low); }
/// At most `high`.
inline Tensor clamp_max(const Tensor& self, const Tensor& high) { return self.clamp_max(high); }
inline Tensor clip(const Tensor& self, const std::optional<Scalar>& low,
                   const std::optional<Scalar>& high = std::nullopt) {
  return self.clamp(low, high);
}
inline Tensor clip(const Tensor& self, const std::optional<Tensor>& low,
                   const std::optional<Tensor>& high = std::nullopt) {
  return self.clamp(low, high);
}
/// clamp() in place.
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
