// Gradients held against central differences, for the tests by generation.
#pragma once

#include "draws.h"

namespace tenon::test {

/// The gradient of sum(f(x) * weights), with weights drawn for f's result, by central differences; x lies in memory
/// differently each time. `x` must keep clear of places where f has no slope.
inline void expect_gradient(Draws& draws, const Array& x, const std::function<Tensor(const Tensor&)>& function,
                            double tolerance = 2e-5) {
  const Tensor input = draws.laid_out(x).set_requires_grad(true);
  const Tensor y = function(input);
  const Tensor weight = draws.tensor(y.sizes().vec());
  (y * weight).sum().backward();
  Array want(x.sizes);
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    double sides[2];
    for (const int side : {0, 1}) {
      Array moved = x;
      moved.values[i] += side == 0 ? -kStep : kStep;
      sides[side] = (function(draws.laid_out(moved)) * weight).sum().item<double>();
    }
    want.values[i] = (sides[1] - sides[0]) / (2 * kStep);
  }
  expect_near(input.grad(), want, tolerance);
}

}  // namespace tenon::test
