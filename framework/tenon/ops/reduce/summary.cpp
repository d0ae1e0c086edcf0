// Reductions out of others.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/summary.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

std::tuple<Tensor, Tensor> Tensor::aminmax(std::optional<std::int64_t> dim, bool keepdim) const {
  TENON_SCOPE(aminmax, *this, dim, keepdim)
  if (dim) {
    const int at = wrap_dim(*dim, impl().rank());
    if (this->dim() > 0 && size(at) == 0) {
      throw IndexError(fmt::format("aminmax: Expected reduction dim {} to have non-zero size.", at));
    }
    if (this->dim() == 0) return {amin(), amax()};
    return {amin(at, keepdim), amax(at, keepdim)};
  }
  if (numel() == 0) {
    throw Error("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  }
  return {amin({}, keepdim), amax({}, keepdim)};
}

Tensor Tensor::nansum(OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(nansum, *this, dim, keepdim, dtype)
  if (!is_floating_point()) return sum(dim, keepdim, dtype);
  return masked_fill(isnan(), 0).sum(dim, keepdim, dtype);
}
Tensor Tensor::nanmean(OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) const {
  TENON_SCOPE(nanmean, *this, dim, keepdim, dtype)
  if (!is_floating_point()) {
    throw Error(std::string("nanmean(): expected input to have floating point or complex dtype but got ") +
                tenon::toString(scalar_type()));
  }
  return nansum(dim, keepdim, dtype).div(isnan().logical_not().sum(dim, keepdim));
}

Tensor Tensor::trace() const {
  TENON_AUTOCAST_METHOD(trace, *this)
  if (dim() != 2) throw Error(fmt::format("trace: expected a matrix, but got tensor with dim {}", dim()));
  return diagonal().sum();
}
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const {
  TENON_AUTOCAST_METHOD(dist, *this, other, p)
  return sub(other).norm(p);
}

Tensor Tensor::renorm(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const {
  TENON_AUTOCAST_METHOD(renorm, *this, p, dim, maxnorm)
  check_floating("renorm", *this);
  if (!(p.toDouble() > 0))
    throw Error(fmt::format("renorm: non-positive-norm not supported, got p = {}", p.toDouble()));
  if (!(maxnorm.toDouble() >= 0))
    throw Error(fmt::format("renorm: expected maxnorm to be >= 0 but got {}", maxnorm.toDouble()));
  if (this->dim() < 2)
    throw Error(fmt::format("renorm: input needs at least 2 dimensions, got {} dimensions", this->dim()));
  const int at = wrap_dim(dim, impl().rank());
  std::vector<std::int64_t> others;
  for (int i = 0; i < impl().rank(); ++i) {
    if (i != at) others.push_back(i);
  }
  // Powers of 16 bits, and sums of roots, are beyond them: lengths are those of floats.
  const Tensor length = to(statistics_dtype(*this)).norm(p, others, true);
  const Tensor too_long = length.gt(maxnorm);
  // PyTorch's 1e-7 keeps the quotient finite.
  const Tensor factor = tenon::where(too_long, length.add(1e-7).reciprocal().mul(maxnorm), ones_like(length));
  return mul(factor.to(scalar_type())).contiguous();
}
Tensor& Tensor::renorm_(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const {
  TENON_SCOPE(renorm_, *this, p, dim, maxnorm)
  return overwrite("renorm_", *this, before_write(*this).renorm(p, dim, maxnorm));
}

}  // namespace tenon
