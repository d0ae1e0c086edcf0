// Dropout of whole channels, alpha dropout, and normalisation of single pictures: out of other operators.
#include <tenon/autograd/checkpoint.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/nn/normalization.h>
#include <tenon/ops/support/support.h>

#include <cmath>

namespace tenon {

using namespace ops;

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, double momentum, double eps, bool) {
  // Each picture is a batch of its own: fold the batch into the channels.
  const std::int64_t n = input.size(0);
  const std::int64_t c = input.size(1);
  const auto repeated = [&](const Tensor& tensor) { return tensor.defined() ? tensor.repeat(n) : Tensor(); };
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes[0] = 1;
  sizes[1] = n * c;
  const Tensor mean = repeated(running_mean);
  const Tensor variance = repeated(running_var);
  const Tensor result = batch_norm(input.contiguous().view(sizes), repeated(weight), repeated(bias), mean, variance,
                                   use_input_stats, momentum, eps);
  if (use_input_stats && mean.defined() && !is_recomputing()) {
    NoGradGuard no_grad;
    running_mean.copy_(mean.view({n, c}).mean(0));
    running_var.copy_(variance.view({n, c}).mean(0));
  }
  return result.view(input.sizes());
}

// --- dropout --------------------------------------------------------------------------------------------------------

namespace {

Tensor noise(const Tensor& input, double p, bool features) {
  NoGradGuard no_grad;
  if (!(p >= 0 && p <= 1)) throw Error("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  if (!features) return empty_like(input).bernoulli_(1 - p);
  if (input.dim() < 2) throw Error("Feature dropout requires at least 2 dimensions in the input");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return input.new_empty(sizes).bernoulli_(1 - p);
}

Tensor dropped(const Tensor& input, double p, bool train, bool features, bool alpha, bool inplace) {
  if (!(p >= 0 && p <= 1)) throw Error("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return inplace ? input.mul_(0) : input.mul(0);
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

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return dropped(input, p, train, true, false, false);
}
Tensor& feature_dropout_(Tensor& input, double p, bool train) {
  dropped(input, p, train, true, false, true);
  return input;
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) { return dropped(input, p, train, false, true, false); }
Tensor& alpha_dropout_(Tensor& input, double p, bool train) {
  dropped(input, p, train, false, true, true);
  return input;
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return dropped(input, p, train, true, true, false);
}
Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train) {
  dropped(input, p, train, true, true, true);
  return input;
}

}  // namespace tenon
