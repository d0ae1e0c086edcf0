// The tensors that the tests of the front end's functions start from.
#pragma once

#include <tenon/ops/ops.h>

#include <limits>

namespace tenon::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// What the expected numbers, which are PyTorch 2.15's, were computed from.
struct Inputs {
  Tensor M = tensor({{3., 1., 2., 1.}, {0., -1., 4., 4.}, {2., 2., -3., 0.5}});
  Tensor N = tensor({{1.f, kNan, 2.f}, {kNan, kNan, kNan}, {3.f, -kInf, kInf}});
  Tensor V = tensor({2., 7., 1., 8., 2.});
  Tensor I = tensor({{5, 3, 5}, {-2, 0, 3}});
  Tensor K = tensor({0, 2, 1, 2});
  Tensor T = arange(24., kFloat).reshape({2, 3, 4});
  Tensor B = tensor({{true, false, true}, {false, false, true}});
  Tensor E = zeros({0, 3});
  Tensor S = tensor(2.5f);
};

}  // namespace tenon::test
