// How often something occurs: comparisons and sums, and sums into the place that an element names.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/counting.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {

using namespace ops;

Tensor Tensor::count_nonzero(std::int64_t dim) const {
  TENON_SCOPE(count_nonzero, *this, dim)
  return ne(0).sum(OptionalIntArrayRef(dim));
}
Tensor Tensor::count_nonzero(IntArrayRef dim) const {
  TENON_SCOPE(count_nonzero, *this, dim)
  return ne(0).sum(OptionalIntArrayRef(dim));
}

namespace {

/// `weights`: undefined where each counts once.
Tensor bincount_of(const Tensor& self, const Tensor& weights, std::int64_t minlength) {
  if (minlength < 0) throw Error(fmt::format("minlength should be >= 0, got {}", minlength));
  if (!is_integral(self.scalar_type())) {
    throw Error(std::string("\"bincount\" not implemented for '") + tenon::toString(self.scalar_type()) +
                "': it needs an integral dtype");
  }
  if (self.dim() == 1 && self.numel() == 0) return zeros({minlength}, self.options().dtype(kInt64));
  check_has_values("bincount", self);
  if (self.dim() != 1 || tenon::min(self).item<std::int64_t>() < 0) {
    throw Error("bincount only supports 1-d non-negative integral inputs.");
  }
  if (weights.defined() && (weights.dim() != 1 || weights.size(0) != self.size(0))) {
    throw Error("weights should be 1-d and have the same length as input, got weights of sizes " +
                to_string(weights.sizes()) + " for input of sizes " + to_string(self.sizes()));
  }
  const std::int64_t length = std::max(tenon::max(self).item<std::int64_t>() + 1, minlength);
  Tensor added = ones(self.sizes(), self.options().dtype(kInt64));
  if (weights.defined()) added = weights.scalar_type() == kFloat32 ? weights : weights.to(kFloat64);
  return zeros({length}, added.options()).scatter_add(0, self.to(kInt64), added);
}

}  // namespace

Tensor Tensor::bincount(const std::optional<Tensor>& weights, std::int64_t minlength) const {
  TENON_SCOPE(bincount, *this, weights, minlength)
  const Tensor weight = weights.value_or(Tensor());
  Tensor result;
  {
    NoGradGuard no_grad;
    result = bincount_of(*this, weight, minlength);
  }
  // What counts integers without a weight is an integer, whatever is asked of it.
  if (weight.defined() && result.is_floating_point()) without_derivative("bincount", {&weight}, result);
  return result;
}

Tensor Tensor::histc(std::int64_t bins, const Scalar& min, const Scalar& max) const {
  TENON_SCOPE(histc, *this, bins, min, max)
  NoGradGuard no_grad;
  check_floating("histc", *this);
  if (bins <= 0) throw Error(fmt::format("torch.histc: bins must be > 0, but got {}", bins));
  double low = min.toDouble(), high = max.toDouble();
  if (low > high) throw Error(fmt::format("torch.histc: max must be larger than min, got [{}, {}]", low, high));
  if (low == high && numel() > 0 && has_values(*this)) {
    low = tenon::min(*this).item<double>();
    high = tenon::max(*this).item<double>();
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(low) || !std::isfinite(high)) {
    throw Error(fmt::format("torch.histc: range of [{}, {}] is not finite", low, high));
  }
  const Tensor flat = reshape({-1});
  // Without values it is unknown how many lie inside: all of them at most.
  const Tensor inside = has_values(*this) ? flat.masked_select(flat.ge(low).logical_and(flat.le(high))) : flat;
  // 16 bits do not hold what a bin's number is computed from: 60000 times the number of bins.
  const Tensor wide = inside.element_size() == 2 ? inside.to(kFloat32) : inside;
  const Tensor bin = wide.sub(low).mul(bins).div(high - low).to(kInt64).clamp_max(bins - 1);
  return zeros({bins}, options()).scatter_add(0, bin, ones_like(inside));
}

}  // namespace tenon
