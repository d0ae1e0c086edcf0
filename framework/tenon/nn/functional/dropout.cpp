// Functional dropout: one mask, drawn for elements or for channels.
#include <tenon/nn/functional/dropout.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::nn::functional {
namespace {

/// -lambda * alpha of SELU: the value that dropped elements take in the alpha variants.
constexpr double kSeluFloor = -1.7580993408473766;

void check_probability(double p) {
  if (p < 0 || p > 1) throw Error(fmt::format("dropout probability has to be between 0 and 1, but got {}", p));
}

/// 1 where an element is kept; (N, C, 1, …) where whole channels are.
Tensor draw_mask(const Tensor& input, double p, bool channels) {
  NoGradGuard no_grad;
  std::vector<std::int64_t> sizes = input.sizes().vec();
  for (std::size_t dim = 2; channels && dim < sizes.size(); ++dim) sizes[dim] = 1;
  return tenon::empty(sizes, input.options()).bernoulli_(1 - p);
}

Tensor drop(Tensor input, double p, bool training, bool inplace, bool channels) {
  check_probability(p);
  if (p == 0 || !training || input.numel() == 0) return input;
  if (!channels && !inplace) return tenon::dropout(input, p, training);
  if (p == 1)
    return inplace ? input.mul_(tenon::zeros({}, input.options())) : input.mul(tenon::zeros({}, input.options()));
  Tensor mask = draw_mask(input, p, channels);
  mask.div_(1 - p);
  return inplace ? input.mul_(mask) : input.mul(mask);
}

Tensor alpha_drop(Tensor input, double p, bool training, bool inplace, bool channels) {
  check_probability(p);
  if (p == 0 || !training || input.numel() == 0) return input;
  if (p == 1)
    return inplace ? input.mul_(tenon::zeros({}, input.options())) : input.mul(tenon::zeros({}, input.options()));
  const double a = 1 / std::sqrt((kSeluFloor * kSeluFloor * p + 1) * (1 - p));
  const Tensor mask = draw_mask(input, p, channels);
  // kept: a * x + b; dropped: a * floor + b, with b = -a * p * floor.
  const Tensor shift = mask.sub(1).mul(-a * kSeluFloor).sub(a * p * kSeluFloor);
  const Tensor scale = mask.mul(a);
  return inplace ? input.mul_(scale).add_(shift) : input.mul(scale).add(shift);
}

}  // namespace

namespace detail {
Tensor dropout(Tensor input, double p, bool training, bool inplace) {
  return drop(std::move(input), p, training, inplace, /*channels=*/false);
}
Tensor dropout2d(Tensor input, double p, bool training, bool inplace) {
  return drop(std::move(input), p, training, inplace, /*channels=*/true);
}
Tensor dropout3d(Tensor input, double p, bool training, bool inplace) {
  return drop(std::move(input), p, training, inplace, /*channels=*/true);
}
Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return alpha_drop(std::move(input), p, training, inplace, /*channels=*/false);
}
Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return alpha_drop(std::move(input), p, training, inplace, /*channels=*/true);
}
}  // namespace detail

Tensor dropout(Tensor input, const DropoutFuncOptions& o) {
  return detail::dropout(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& o) {
  return detail::dropout2d(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& o) {
  return detail::dropout3d(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& o) {
  return detail::alpha_dropout(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& o) {
  return detail::feature_alpha_dropout(std::move(input), o.p(), o.training(), o.inplace());
}

}  // namespace tenon::nn::functional
