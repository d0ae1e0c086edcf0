// Dropout of elements and of whole channels, and alpha dropout: one mask, out of other operators.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon {

using namespace ops;

namespace {

Tensor noise(const Tensor& input, double p, bool features) {
  NoGradGuard no_grad;
  if (!features) return empty_like(input).bernoulli_(1 - p);
  if (input.dim() < 2) throw Error("Feature dropout requires at least 2 dimensions in the input");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return input.new_empty(sizes).bernoulli_(1 - p);
}

Tensor dropped(const Tensor& input, double p, bool train, bool features, bool alpha, bool inplace) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("dropout probability has to be between 0 and 1, but got {}", p));
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return inplace ? input.mul_(input.new_zeros({})) : input.mul(input.new_zeros({}));
  const Tensor mask = noise(input, p, features);
  if (!alpha) {
    {
      NoGradGuard no_grad;
      mask.div_(1 - p);
    }
    return inplace ? input.mul_(mask) : input.mul(mask);
  }
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1.0 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Tensor b;
  {
    NoGradGuard no_grad;
    b = mask.sub(1).mul_(kAlpha * a).add_(kAlpha * a * p);
    mask.mul_(a);
  }
  return inplace ? input.mul_(mask).add_(b) : input.mul(mask).add(b);
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  TENON_SCOPE(dropout, input, p, train)
  return dropped(input, p, train, false, false, false);
}
Tensor& dropout_(Tensor& input, double p, bool train) {
  TENON_SCOPE(dropout_, input, p, train)
  dropped(input, p, train, false, false, true);
  return input;
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  TENON_SCOPE(feature_dropout, input, p, train)
  return dropped(input, p, train, true, false, false);
}
Tensor& feature_dropout_(Tensor& input, double p, bool train) {
  TENON_SCOPE(feature_dropout_, input, p, train)
  dropped(input, p, train, true, false, true);
  return input;
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  TENON_SCOPE(alpha_dropout, input, p, train)
  return dropped(input, p, train, false, true, false);
}
Tensor& alpha_dropout_(Tensor& input, double p, bool train) {
  TENON_SCOPE(alpha_dropout_, input, p, train)
  dropped(input, p, train, false, true, true);
  return input;
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  TENON_SCOPE(feature_alpha_dropout, input, p, train)
  return dropped(input, p, train, true, true, false);
}
Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train) {
  TENON_SCOPE(feature_alpha_dropout_, input, p, train)
  dropped(input, p, train, true, true, true);
  return input;
}

}  // namespace tenon
