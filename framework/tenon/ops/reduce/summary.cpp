// Reductions out of others.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/summary.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

std::tuple<Tensor, Tensor> Tensor::aminmax(std::optional<std::int64_t> dim, bool keepdim) const {
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
  if (!is_floating_point()) return sum(dim, keepdim, dtype);
  return masked_fill(isnan(), 0).sum(dim, keepdim, dtype);
}
Tensor Tensor::nanmean(OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) const {
  if (!is_floating_point()) {
    throw Error(std::string("nanmean(): expected input to have floating point or complex dtype but got ") +
                tenon::toString(scalar_type()));
  }
  return nansum(dim, keepdim, dtype).div(isnan().logical_not().sum(dim, keepdim));
}

Tensor Tensor::trace() const {
  if (dim() != 2) throw Error(fmt::format("trace: expected a matrix, but got tensor with dim {}", dim()));
  return diagonal().sum();
}
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const { return sub(other).norm(p); }

Tensor Tensor::renorm(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const {
  check_floating("renorm", *this);
  if (p.toDouble() <= 0) throw Error(fmt::format("renorm: non-positive-norm not supported, got p = {}", p.toDouble()));
  if (maxnorm.toDouble() < 0)
    throw Error(fmt::format("renorm: expected maxnorm to be >= 0 but got {}", maxnorm.toDouble()));
  if (this->dim() < 2)
    throw Error(fmt::format("renorm: input needs at least 2 dimensions, got {} dimensions", this->dim()));
  const int at = wrap_dim(dim, impl().rank());
  std::vector<std::int64_t> others;
  for (int i = 0; i < impl().rank(); ++i) {
    if (i != at) others.push_back(i);
  }
  const Tensor length = norm(p, others, true);
  const Tensor too_long = length.gt(maxnorm);
  // PyTorch's 1e-7 keeps the quotient finite.
  const Tensor factor = tenon::where(too_long, length.add(1e-7).reciprocal().mul(maxnorm), ones_like(length));
  return mul(factor);
}
Tensor& Tensor::renorm_(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const {
  return overwrite("renorm_", *this, before_write(*this).renorm(p, dim, maxnorm));
}

namespace {

/// |a - b|^2 = |a|^2 - 2 a b + |b|^2 of all rows, as one product; no gradient where it is 0.
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  const Tensor a_square = a.square().sum(-1, true), b_square = b.square().sum(-1, true);
  const Tensor left = cat({a.mul(-2), a_square, ones_like(a_square)}, -1);
  const Tensor right = cat({b, ones_like(b_square), b_square}, -1);
  const Tensor squares = left.matmul(right.mT()).clamp_min(0);
  const Tensor zero = squares.eq(0);
  return squares.masked_fill(zero, 1).sqrt().masked_fill(zero, 0);
}

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<std::int64_t> compute_mode) {
  check_floating("cdist", x1);
  check_floating("cdist", x2);
  if (x1.dim() < 2) throw Error(fmt::format("cdist only supports at least 2D tensors, X1 got: {}D", x1.dim()));
  if (x2.dim() < 2) throw Error(fmt::format("cdist only supports at least 2D tensors, X2 got: {}D", x2.dim()));
  if (x1.size(-1) != x2.size(-1)) {
    throw Error(fmt::format("X1 and X2 must have the same number of columns. X1: {} X2: {}", x1.size(-1), x2.size(-1)));
  }
  if (p < 0) throw Error(fmt::format("cdist only supports non-negative p values, got {}", p));
  if (compute_mode && (*compute_mode < 0 || *compute_mode > 2)) {
    throw Error(fmt::format("possible modes: 0, 1, 2, but was: {}", *compute_mode));
  }
  check_same_device("cdist", {&x1, &x2});
  const std::int64_t mode = compute_mode.value_or(0);
  constexpr std::int64_t kFewRows = 25;
  const bool many = mode == 1 || (mode == 0 && (x1.size(-2) > kFewRows || x2.size(-2) > kFewRows));
  if (p == 2 && many && x1.numel() > 0 && x2.numel() > 0) return euclidean_by_product(x1, x2);
  return row_norm(x1.unsqueeze(-2).sub(x2.unsqueeze(-3)), p);
}

}  // namespace tenon
