// Covariances and correlations. Declared in covariance.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/covariance.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

namespace tenon {

namespace {

void check_weights(const char* name, const Tensor& weights, std::int64_t observations) {
  if (weights.dim() > 1) {
    throw Error(fmt::format("cov(): expected {0} to have one or fewer dimensions but got {0} with {1} dimensions", name,
                            weights.dim()));
  }
  if (weights.numel() != observations) {
    throw Error(
        fmt::format("cov(): expected {} to have the same numel as there are observations in the input but got "
                    "{} != {}",
                    name, weights.numel(), observations));
  }
  if (ops::has_values(weights) && weights.lt(0).any().item<bool>())
    throw Error(fmt::format("cov(): {} cannot be negative", name));
}

}  // namespace

Tensor cov(const Tensor& self, std::int64_t correction, const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  TENON_SCOPE(cov, self, correction, fweights, aweights)
  if (self.dim() > 2) {
    throw Error(fmt::format("cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
                            self.dim()));
  }
  if (self.scalar_type() == kBool) throw Error("cov(): bool dtype is not supported for input");
  const Tensor x = self.dim() < 2 ? self.reshape({1, -1}) : self;
  const std::int64_t observations = x.size(1);
  Tensor weights;
  if (fweights && fweights->defined()) {
    if (!is_integral(fweights->scalar_type())) {
      throw Error(fmt::format("cov(): expected fweights to have integral dtype but got fweights with {} dtype",
                              toString(fweights->scalar_type())));
    }
    check_weights("fweights", *fweights, observations);
    weights = *fweights;
  }
  const bool counts_more = aweights && aweights->defined();
  if (counts_more) {
    if (!aweights->is_floating_point()) {
      throw Error(fmt::format("cov(): expected aweights to have floating point dtype but got aweights with {} dtype",
                              toString(aweights->scalar_type())));
    }
    check_weights("aweights", *aweights, observations);
    weights = weights.defined() ? weights * *aweights : *aweights;
  }
  const auto weighted = [&](const Tensor& values) { return weights.defined() ? values * weights : values; };
  const Tensor total =
      weights.defined() ? weights.sum() : scalar_tensor(observations, TensorOptions(kInt64).device(self.device()));
  if (weights.defined() && ops::has_values(total) && !total.ne(0).item<bool>())
    throw Error("cov(): weights sum to zero, can't be normalized");
  const Tensor mean = weighted(x).sum(1) / total;
  Tensor divisor =
      counts_more && correction != 0 ? total - (weights * *aweights).sum() * correction / total : total - correction;
  // Without a degree of freedom there is no covariance: PyTorch divides by 0, too.
  divisor = divisor.clamp_min(0);
  const Tensor deviation = x - mean.unsqueeze(1);
  return mm(deviation, weighted(deviation).t()).div(divisor).squeeze();
}

Tensor corrcoef(const Tensor& self) {
  TENON_SCOPE(corrcoef, self)
  if (self.dim() > 2) {
    throw Error(fmt::format(
        "corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions", self.dim()));
  }
  const Tensor c = cov(self);
  if (c.dim() == 0) return c.div(c);  // 1, or NaN
  const Tensor deviation = c.diag().sqrt();
  return (c / deviation.view({-1, 1}) / deviation.view({1, -1})).clamp(-1, 1);
}

Tensor Tensor::cov(std::int64_t correction, const std::optional<Tensor>& fweights,
                   const std::optional<Tensor>& aweights) const {
  return tenon::cov(*this, correction, fweights, aweights);
}
Tensor Tensor::corrcoef() const { return tenon::corrcoef(*this); }

}  // namespace tenon
