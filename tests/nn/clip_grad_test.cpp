// Gradients clipped by their norm and by value: each order of norm, what is left alone, what is not finite.
#include "support/expect_error.h"

#include <tenon/nn/clip_grad.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor with_gradient(std::vector<double> gradient) {
  const Tensor given = tenon::tensor(gradient, TensorOptions(kFloat64));
  const Tensor x = tenon::zeros(given.sizes(), TensorOptions(kFloat64)).requires_grad_();
  x.mutable_grad() = given;
  return x;
}

std::vector<double> gradient_of(const Tensor& x) {
  const Tensor gradient = x.grad().contiguous();
  return {gradient.data_ptr<double>(), gradient.data_ptr<double>() + gradient.numel()};
}

TEST(ClipGradNorm, ScalesAllGradientsByTheNormOfAll) {
  const std::vector<double> first{3, -4}, second{-12};
  for (const double p : {0.5, 1., 2., 3., kInfinity}) {
    double total = 0;
    for (const double value : {3., -4., -12.})
      total = std::isinf(p) ? std::max(total, std::abs(value)) : total + std::pow(std::abs(value), p);
    if (!std::isinf(p)) total = std::pow(total, 1 / p);
    const Tensor a = with_gradient(first), b = with_gradient(second);
    const Tensor without = tenon::zeros({2}).requires_grad_();
    EXPECT_NEAR(nn::utils::clip_grad_norm_({a, without, b}, 2, p), total, 1e-12 * total) << p;
    const double scale = 2 / (total + 1e-6);
    EXPECT_NEAR(gradient_of(a)[0], 3 * scale, 1e-12) << p;
    EXPECT_NEAR(gradient_of(a)[1], -4 * scale, 1e-12) << p;
    EXPECT_NEAR(gradient_of(b)[0], -12 * scale, 1e-12) << p;
    EXPECT_FALSE(without.grad().defined());
  }
}

TEST(ClipGradNorm, LeavesWhatIsSmallEnoughToTheBit) {
  for (const double p : {1., 2., kInfinity}) {
    const Tensor a = with_gradient({0.1, -0.7});
    EXPECT_LT(nn::utils::clip_grad_norm_(a, 1, p), 1);
    EXPECT_EQ(gradient_of(a), (std::vector<double>{0.1, -0.7}));
  }
}

TEST(ClipGradNorm, OfNoGradientsIsZero) {
  EXPECT_EQ(nn::utils::clip_grad_norm_(tenon::zeros({2}).requires_grad_(), 1), 0);
}

TEST(ClipGradNorm, WhatIsNotFiniteScalesAsInPyTorchOrIsAnError) {
  const Tensor nan = with_gradient({1, NAN});
  EXPECT_TRUE(std::isnan(nn::utils::clip_grad_norm_(nan, 1)));
  for (const double value : gradient_of(nan)) EXPECT_TRUE(std::isnan(value));

  const Tensor infinite = with_gradient({1, kInfinity});
  EXPECT_EQ(nn::utils::clip_grad_norm_(infinite, 1), kInfinity);
  EXPECT_EQ(gradient_of(infinite)[0], 0);
  EXPECT_TRUE(std::isnan(gradient_of(infinite)[1]));

  const Tensor refused = with_gradient({1, kInfinity});
  expect_error([&] { nn::utils::clip_grad_norm_(refused, 1, 2, /*error_if_nonfinite=*/true); },
               "is non-finite, so it cannot be clipped");
  EXPECT_EQ(gradient_of(refused)[0], 1);
}

TEST(ClipGradValue, HoldsEachElementWithinBothBounds) {
  const Tensor a = with_gradient({-3, -0.5, 0, 0.5, 3, NAN});
  nn::utils::clip_grad_value_(a, 0.5);
  const std::vector<double> got = gradient_of(a);
  EXPECT_THAT(std::vector<double>(got.begin(), got.end() - 1), testing::ElementsAre(-0.5, -0.5, 0, 0.5, 0.5));
  EXPECT_TRUE(std::isnan(got.back()));
}

}  // namespace
}  // namespace tenon::test
