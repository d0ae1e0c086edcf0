// Scans and counts.
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "front_end_inputs.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

using test::expect_error;
using test::expect_tensor;
using test::Inputs;
using test::kInf;
using test::kNan;

TEST(Scan, RunningExtremesNameTheirLastPlace) {
  const Inputs in;
  {
    const auto result = in.M.cummax(1);
    expect_tensor(std::get<0>(result), {3, 4}, kFloat, {3, 3, 3, 3, 0, 0, 4, 4, 2, 2, 2, 2});
    expect_tensor(std::get<1>(result), {3, 4}, kLong, {0, 0, 0, 0, 0, 0, 2, 3, 0, 1, 1, 1});
  }
  {
    const auto result = in.M.cummin(0);
    expect_tensor(std::get<0>(result), {3, 4}, kFloat, {3, 1, 2, 1, 0, -1, 2, 1, 0, -1, -3, 0.5});
    expect_tensor(std::get<1>(result), {3, 4}, kLong, {0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2});
  }
  {
    const auto result = in.N.cummax(0);
    expect_tensor(std::get<0>(result), {3, 3}, kFloat, {1, kNan, 2, kNan, kNan, kNan, kNan, kNan, kNan});
    expect_tensor(std::get<1>(result), {3, 3}, kLong, {0, 0, 0, 1, 1, 1, 1, 1, 1});
  }
  {
    const auto result = in.N.cummin(1);
    expect_tensor(std::get<0>(result), {3, 3}, kFloat, {1, kNan, kNan, kNan, kNan, kNan, 3, -kInf, -kInf});
    expect_tensor(std::get<1>(result), {3, 3}, kLong, {0, 1, 1, 0, 1, 2, 0, 1, 1});
  }
  {
    const auto result = in.I.cummax(-1);
    expect_tensor(std::get<0>(result), {2, 3}, kLong, {5, 5, 5, -2, 0, 3});
    expect_tensor(std::get<1>(result), {2, 3}, kLong, {0, 0, 2, 0, 1, 2});
  }
  {
    const auto result = in.S.cummax(0);
    expect_tensor(std::get<0>(result), {}, kFloat, {2.5});
    expect_tensor(std::get<1>(result), {}, kLong, {0});
  }
  {
    const auto result = in.E.cummax(0);
    expect_tensor(std::get<0>(result), {0, 3}, kFloat, {});
    expect_tensor(std::get<1>(result), {0, 3}, kLong, {});
  }
  {
    const auto result = in.B.cummax(1);
    expect_tensor(std::get<0>(result), {2, 3}, kBool, {1, 1, 1, 0, 0, 1});
    expect_tensor(std::get<1>(result), {2, 3}, kLong, {0, 0, 2, 0, 1, 2});
  }
  expect_tensor(in.M.logcumsumexp(1), {3, 4}, kFloat,
                {3, 3.12692809, 3.40760589, 3.49381161, 0, 0.313261688, 4.02474499, 4.70559597, 2, 2.69314718,
                 2.69651055, 2.80194235});
  expect_tensor(
      in.M.logcumsumexp(0), {3, 4}, kFloat,
      {3, 1, 2, 1, 3.04858732, 1.12692797, 4.12692785, 4.04858732, 3.34901214, 2.34901214, 4.12773085, 4.07694674});
  expect_tensor(tensor({-kInf, -kInf, 1.f, kInf}).logcumsumexp(0), {4}, kFloat, {-kInf, -kInf, 1, kInf});
  expect_tensor(in.S.logcumsumexp(0), {}, kFloat, {2.5});
  expect_tensor(in.M.clone().cumsum_(1), {3, 4}, kFloat, {3, 4, 6, 7, 0, -1, 3, 7, 2, 4, 1, 1.5});
  expect_tensor(in.M.clone().cumprod_(0), {3, 4}, kFloat, {3, 1, 2, 1, 0, -1, 8, 4, 0, -2, -24, 2});
  expect_tensor(in.I.clone().cumsum_(0), {2, 3}, kLong, {5, 3, 5, 3, 3, 8});
  expect_tensor(tensor({{100, 100, 100}}, kByte).cumsum_(1), {1, 3}, kByte, {100, 200, 44});
}

TEST(Scan, DifferencesAndAreasOfNeighbours) {
  const Inputs in;
  expect_tensor(in.V.diff(), {4}, kFloat, {5, -6, 7, -6});
  expect_tensor(in.M.diff(2, 1), {3, 2}, kFloat, {3, -2, 6, -5, -5, 8.5});
  expect_tensor(in.B.diff(1, 1), {2, 2}, kBool, {1, 1, 0, 1});
  expect_tensor(in.I.diff(1, 0), {1, 3}, kLong, {-7, -3, -2});
  expect_tensor(in.V.diff(1, -1, tensor({0.f}), tensor({5.f, 6.f})), {7}, kFloat, {2, 5, -6, 7, -6, 3, 1});
  expect_tensor(in.V.diff(9), {0}, kFloat, {});
  expect_tensor(in.V.diff(0), {5}, kFloat, {2, 7, 1, 8, 2});
  expect_tensor(trapezoid(in.V), {}, kFloat, {18});
  expect_tensor(trapezoid(in.M, 0.5, 0), {4}, kFloat, {1.25, 0.25, 1.75, 2.375});
  expect_tensor(trapezoid(in.M, tensor({0., 1., 3., 7.})), {3}, kFloat, {11, 18.5, -4});
  expect_tensor(trapezoid(in.I), {2}, kFloat, {8, 0.5});
  expect_tensor(trapezoid(in.I.to(kByte), in.I.to(kByte)), {2}, kFloat, {128, 130.5});
  expect_tensor(cumulative_trapezoid(in.M), {3, 3}, kFloat, {2, 3.5, 5, -0.5, 1, 5, 2, 1.5, 0.25});
  expect_tensor(cumulative_trapezoid(in.M, in.M.cumsum(1), 1), {3, 3}, kFloat,
                {2, 5, 6.5, 0.5, 6.5, 22.5, 4, 5.5, 4.875});
}

TEST(Scan, DifferencesEndWithTheElements) {
  const Tensor x = arange(5, kFloat);
  expect_tensor(x.diff(std::int64_t{1} << 40), {0}, kFloat, {});
  expect_tensor(x.diff(4), {1}, kFloat, {0});
  expect_tensor(x.diff(0, -1, tensor({9.f}), tensor({1.f})), {5}, kFloat, {0, 1, 2, 3, 4});
  expect_error([&] { zeros({2, 3}).diff(1, 0, zeros({1, 2})); }, "input.size(1) = 3, but got tensor.size(1) = 2");
}

TEST(Counting, CountsOfNonzeroNumbersAndIntervals) {
  const Inputs in;
  expect_tensor(in.M.count_nonzero(0), {4}, kLong, {2, 3, 3, 3});
  expect_tensor(in.M.count_nonzero({0, 1}), {}, kLong, {11});
  expect_tensor(in.N.count_nonzero(1), {3}, kLong, {3, 3, 3});
  expect_tensor(in.E.count_nonzero(0), {3}, kLong, {0, 0, 0});
  expect_tensor(count_nonzero(in.B, -1), {2}, kLong, {2, 1});
  expect_tensor(in.K.bincount(), {3}, kLong, {1, 1, 2});
  expect_tensor(in.K.bincount(std::nullopt, 5), {5}, kLong, {1, 1, 2, 0, 0});
  expect_tensor(in.K.bincount(tensor({1.f, 2.f, 3.f, 0.5f})), {3}, kFloat, {1, 3, 2.5});
  expect_tensor(in.K.bincount(in.K), {3}, kDouble, {0, 1, 4});
  expect_tensor(empty({0}, kLong).bincount(std::nullopt, 2), {2}, kLong, {0, 0});
  expect_tensor(in.M.histc(4), {4}, kFloat, {1, 2, 6, 3});
  expect_tensor(in.M.histc(3, 0, 3), {3}, kFloat, {2, 2, 4});
  expect_tensor(in.V.histc(2, 100, 200), {2}, kFloat, {0, 0});
  expect_tensor(zeros({3}).histc(3), {3}, kFloat, {0, 3, 0});
  expect_tensor(zeros({0}).histc(2), {2}, kFloat, {0, 0});
  expect_tensor(tensor({1.0f, 2.0f, kNan}).histc(3, 0, 3), {3}, kFloat, {0, 1, 1});
}

TEST(Scan, InPlaceFormsKeepTheirGradients) {
  const Tensor x = tensor({2.f, 3.f, 4.f}).set_requires_grad(true);
  Tensor y = x * 1;
  y.cumprod_(0).sum().backward();
  EXPECT_TRUE(x.grad().allclose(tensor({1.f + 3 + 12, 2.f + 8, 6.f})));
}

TEST(Scan, MistakesAreNamed) {
  expect_error([] { tensor(1.f).diff(); }, "diff expects input to be at least one-dimensional");
  expect_error([] { zeros({3}).cumsum_(0, kInt); },
               "Bad in-place call: input tensor dtype float and output tensor dtype int should match");
  expect_error([] { zeros({3}).diff(-1); }, "order must be non-negative but got -1");
  expect_error(
      [] {
        zeros({3}).diff(1, 0, zeros({1, 1}));
      },
      "diff expects prepend or append to be the same dimension as input");
  expect_error([] { tensor({1}).logcumsumexp(0); }, "not implemented for 'Long'");
  expect_error([] { trapezoid(zeros({3}), zeros({2})); }, "There must be one `x` value for each sample point");
  expect_error([] { tensor({1}).bincount(ones({1}).requires_grad_()).sum().backward(); },
               "the derivative for 'bincount' is not implemented");
  expect_error([] { tensor({1.f}).bincount(); }, "not implemented for 'Float'");
  expect_error([] { tensor({1, -1}).bincount(); }, "bincount only supports 1-d non-negative integral inputs.");
  expect_error([] { tensor({1}).bincount(zeros({2})); }, "weights should be 1-d and have the same length as input");
  expect_error([] { tensor({1}).bincount(std::nullopt, -1); }, "minlength should be >= 0");
  expect_error([] { zeros({2}).histc(0); }, "bins must be > 0, but got 0");
  expect_error([] { zeros({2}).histc(3, 2, 1); }, "max must be larger than min");
  expect_error([] { tensor({1.f, kNan}).histc(3); }, "is not finite");
}

}  // namespace
}  // namespace tenon
