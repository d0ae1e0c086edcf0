// Tensors whose elements count, so that each tells where it has come from.
#pragma once

#include <tenon/ops/all_ops.h>

#include <cstdint>
#include <vector>

namespace tenon::test {

/// 0, 1, 2, … in these sizes.
inline Tensor numbered(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(count).view(sizes);
}

/// The gradient at `at` where the elements of what `made` gives count 1, 2, 3, …, as integers.
template <class F>
Tensor numbered_back(const Tensor& at, F made) {
  const Tensor x = at.to(kFloat64).clone().requires_grad_();
  const Tensor y = made(x);
  y.mul(arange(1, static_cast<double>(y.numel()) + 1, TensorOptions(kFloat64)).view(y.sizes())).sum().backward();
  return x.grad().to(kInt64);
}

}  // namespace tenon::test
