// Values made by formulas that another program can repeat, and one number that tells two tensors apart: how results are
// held against PyTorch's without long tables.
//
//   def fingerprint(t): return (t.reshape(-1) * torch.cos(0.37 * torch.arange(1, t.numel() + 1))).sum()
//   def wave(*sizes):   return torch.sin(0.9 * torch.arange(math.prod(sizes))).view(sizes)
//   parameter number k: 0.5 * torch.cos(0.7 * torch.arange(numel) + k)               all in float64
#pragma once

#include <tenon/nn/module.h>
#include <tenon/ops/ops.h>

namespace tenon::test {

inline Tensor count_up(std::int64_t first, std::int64_t count) {
  return arange(first, first + count, TensorOptions(kFloat64));
}

/// The sum of all elements, each with a weight of its own; differentiable.
inline Tensor weighted_sum(const Tensor& t) {
  return (t * count_up(1, t.numel()).mul(0.37).cos().view(t.sizes())).sum();
}
inline double fingerprint(const Tensor& t) { return weighted_sum(t.detach()).item<double>(); }

inline Tensor wave(IntArrayRef sizes, double scale = 1) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count_up(0, count).mul(0.9).sin().mul(scale).view(sizes).set_requires_grad(true);
}

/// Converts a module to float64 and gives its parameters the values above.
inline void fill_parameters(nn::Module& module) {
  module.to(kFloat64);
  NoGradGuard no_grad;
  double k = 0;
  for (const Tensor& parameter : module.parameters()) {
    parameter.copy_(count_up(0, parameter.numel()).mul(0.7).add(k).cos().mul(0.5).view(parameter.sizes()));
    k += 1;
  }
}

/// The gradients of all parameters in one number.
inline double gradient_fingerprint(const nn::Module& module) {
  double sum = 0, k = 1;
  for (const Tensor& parameter : module.parameters()) sum += k++ * fingerprint(parameter.grad());
  return sum;
}

}  // namespace tenon::test
