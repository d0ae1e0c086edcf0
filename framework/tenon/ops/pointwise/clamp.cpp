// Kept between bounds that are tensors.
#include <tenon/ops/pointwise/clamp.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/operator_scope.h>

namespace tenon {

using namespace ops;

Tensor& Tensor::clamp_(const std::optional<Tensor>& low, const std::optional<Tensor>& high) const {
  TENON_SCOPE(clamp_, *this, low, high)
  return overwrite("clamp_", *this, before_write(*this, {low ? &*low : this, high ? &*high : this}).clamp(low, high));
}
Tensor Tensor::clamp_min(const Tensor& low) const {
  TENON_SCOPE(clamp_min, *this, low)
  return clamp(std::optional<Tensor>(low), std::nullopt);
}
Tensor& Tensor::clamp_min_(const Tensor& low) const {
  TENON_SCOPE(clamp_min_, *this, low)
  return clamp_(std::optional<Tensor>(low), std::nullopt);
}
Tensor Tensor::clamp_max(const Tensor& high) const {
  TENON_SCOPE(clamp_max, *this, high)
  return clamp(std::optional<Tensor>(), std::optional<Tensor>(high));
}
Tensor& Tensor::clamp_max_(const Tensor& high) const {
  TENON_SCOPE(clamp_max_, *this, high)
  return clamp_(std::optional<Tensor>(), std::optional<Tensor>(high));
}

}  // namespace tenon
