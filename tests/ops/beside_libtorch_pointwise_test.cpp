// Rules of pointwise functions that were broken where random calls were compared with libtorch's
// (bench/tensor/differential).
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "slopes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

TEST(BesideLibtorch, OfCrossedBoundsTheHighOneCounts) {
  expect_tensor(hardtanh(tensor({-1., 1., 3.}), 2, 0), {3}, kFloat32, {0, 0, 0});
  expect_tensor(clamp(tensor({-1., 1., 3.}), 2, 0), {3}, kFloat32, {0, 0, 0});
}

TEST(BesideLibtorch, NaNStaysWhateverTheBounds) {
  EXPECT_TRUE(hardtanh(tensor({std::nan("")}), 2, 0).isnan().item().toBool());
}

TEST(BesideLibtorch, AtABoundAClampHasNoSlope) {
  const Tensor x = leaf({0, 1, 2, 3});
  expect_tensor(slope_of(clamp(x, 1, 2), x), {4}, kFloat64, {0, 0, 0, 0});
  expect_tensor(slope_of(clamp_min(x, 1), x), {4}, kFloat64, {0, 0, 1, 1});
  expect_tensor(slope_of(clamp_max(x, 2), x), {4}, kFloat64, {1, 1, 0, 0});
}

TEST(BesideLibtorch, ANumberModuloATensorHasAGradient) {
  const Tensor x = leaf({2, -3});
  expect_tensor(slope_of(7 % x, x), {2}, kFloat64, {-3, 3});  // -floor(7 / x)
}

TEST(BesideLibtorch, PolygammaOfEvenOrderIsMinusInfinityAtItsPoles) {
  expect_tensor(polygamma(2, tensor({0., -1.})), {2}, kFloat32, {-kInf64, -kInf64});
  expect_tensor(polygamma(1, tensor({0., -1.})), {2}, kFloat32, {kInf64, kInf64});
}

TEST(BesideLibtorch, ThreeOperandsArePromotedTogether) {
  const Tensor number = tensor(2.0), wide = tensor(3.0, TensorOptions(kFloat64));
  EXPECT_EQ(addcdiv(number, wide, number).scalar_type(), kFloat64);
  EXPECT_EQ(addcmul(tensor(1), tensor({2.0}).to(kBFloat16), tensor(3)).scalar_type(), kBFloat16);
}

TEST(BesideLibtorch, ThereIsNoPlusOfTruth) { EXPECT_THROW(positive(ones({1}, kBool)), Error); }

TEST(BesideLibtorch, TheNextNumberLiesTowardsTheOther) {
  const Tensor from = tensor({1.f, 1.f, 0.f, -1.f, 2.f}), to = tensor({2.f, 0.f, -1.f, 0.f, 2.f});
  const Tensor next = nextafter(from, to);
  const std::vector<float> wanted{std::nextafter(1.f, 2.f), std::nextafter(1.f, 0.f), std::nextafter(0.f, -1.f),
                                  std::nextafter(-1.f, 0.f), 2};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(next[static_cast<std::int64_t>(i)].item<float>(), wanted[i]) << i;
  }
  EXPECT_TRUE(nextafter(tensor(NAN), tensor(1.f)).isnan().item<bool>());
  EXPECT_THROW(nextafter(tensor({1}), tensor({2})), Error);
}

TEST(BesideLibtorch, ThereAreWindowsAndPowers) {
  expect_tensor(hann_window(4), {4}, kFloat32, {0, 0.5, 1, 0.5});
  expect_tensor(hann_window(3, false), {3}, kFloat32, {0, 1, 0});
  expect_tensor(hamming_window(2), {2}, kFloat32, {0.08, 1});
  expect_tensor(hamming_window(1), {1}, kFloat32, {1});
  expect_tensor(vander(tensor({2, 3}), 3), {2, 3}, kInt64, {4, 2, 1, 9, 3, 1});
  expect_tensor(vander(tensor({2., 3.}), std::nullopt, true), {2, 2}, kFloat32, {1, 2, 1, 3});
}

TEST(BesideLibtorch, NotIsWrittenInPlace) {
  Tensor x = tensor({0.f, 2.f});
  expect_tensor(x.logical_not_(), {2}, kFloat32, {1, 0});
  Tensor bits = tensor({0, 5});
  expect_tensor(bits.bitwise_not_(), {2}, kInt64, {-1, -6});
}

TEST(BesideLibtorch, AStepToTheNextNumberHasTheSlopeOfItsStart) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 0});
  const std::vector<Tensor> slopes = autograd::grad({nextafter(a, b).sum()}, {a, b});
  expect_tensor(slopes[0], {2}, kFloat64, {1, 1});
  expect_tensor(slopes[1], {2}, kFloat64, {0, 0});
}

TEST(BesideLibtorch, TheSlopeOfAPowerOfZeroIsZeroWhereItIsItselfDifferentiable) {
  const Tensor x = leaf({0, 2});
  const Tensor slope = autograd::grad({pow(x, 0).sum()}, {x}, {}, std::nullopt, true)[0];
  expect_tensor(slope, {2}, kFloat64, {0, 0});
}

TEST(BesideLibtorch, ASlopeThatIsItselfDifferentiableTakesItsCaseElementByElement) {
  const Tensor x = leaf({-1, 2});
  const Tensor slope = autograd::grad({selu(x).sum()}, {x}, {}, std::nullopt, true)[0];
  const double scale = 1.0507009873554804934193, falling = 1.7580993408473768599402 * std::exp(-1.0);
  expect_tensor(slope, {2}, kFloat64, {falling, scale});
  expect_tensor(slope_of(slope, x), {2}, kFloat64, {falling, 0});
}

TEST(BesideLibtorch, EqualNumbersHaveNoStepBetweenThem) {
  const Tensor a = leaf({1, 2});
  expect_tensor(slope_of(nextafter(a, tensor({1., 3.}, TensorOptions(kFloat64))), a), {2}, kFloat64, {0, 1});
}

TEST(BesideLibtorch, TruthCanBeAFactorOfAQuotient) {
  const Tensor x = leaf({4, 9});
  expect_tensor(slope_of(addcdiv(ones({2}, kFloat64), ones({2}, kFloat64), x, true), x), {2}, kFloat64,
                {-1. / 16, -1. / 81});
  expect_tensor(addcmul(zeros({2}), ones({2}), ones({2}), false), {2}, kFloat32, {0, 0});
}

TEST(BesideLibtorch, IntegersGoHalfWayAsRealNumbers) {
  const Tensor from = tensor({0, 2}).to(kInt32), to = tensor({1, 8}).to(kInt32);
  expect_tensor(lerp(from, to, tensor(0.5, kFloat64)), {2}, kFloat64, {0.5, 5});
  expect_tensor(lerp(tensor(1.f), tensor(2.f), tensor(0.5, kFloat64)), {}, kFloat64, {1.5});
  expect_tensor(lerp(tensor({1.f}), tensor({2.f}), tensor(0.5, kFloat64)), {1}, kFloat32, {1.5});
  EXPECT_THROW(from.lerp_(to, tensor(0.5, kFloat64)), Error);
  EXPECT_THROW(lerp(tensor({1.f}), tensor({2.f}), tensor({0.5}, kFloat64)), Error);
}

TEST(BesideLibtorch, AMultipleThatDoesNotFitIsCutOff) {
  expect_tensor(lcm(tensor({17, -4}).to(kInt8), tensor({10, 6}).to(kInt8)), {2}, kInt8, {170 - 256, 12});
}

TEST(BesideLibtorch, AtZeroAnInfiniteAlphaOfEluIsNotRead) {
  expect_tensor(elu(tensor({0., -1., 1.}), kInf64), {3}, kFloat32, {0, -kInf64, 1});
  expect_tensor(celu(tensor({0., 1.}), kInf64), {2}, kFloat32, {0, 1});
}

TEST(BesideLibtorch, OfANaNAThresholdHandsTheGradientThrough) {
  const Tensor x = leaf({kNaN64, 0, 1});
  expect_tensor(slope_of(threshold(x, 0.5, 7), x), {3}, kFloat64, {1, 0, 1});
  expect_tensor(slope_of(threshold(x, kNaN64, 7), x), {3}, kFloat64, {1, 1, 1});
}

TEST(BesideLibtorch, OfANegativeWidthAShrunkElementHasTheSlopeOne) {
  const Tensor x = leaf({-3, 0, 3});
  expect_tensor(slope_of(hardshrink(x, -2), x), {3}, kFloat64, {1, 1, 1});
}

TEST(BesideLibtorch, NumbersAreRoundedToSixteenBitsBeforeTheyAreCompared) {
  const Tensor x = tensor({3.703125}, TensorOptions(kBFloat16));  // what 3.7 is rounded to
  EXPECT_TRUE(x.eq(3.7).item<bool>());
  EXPECT_FALSE(x.ne(3.7).item<bool>());
  EXPECT_FALSE(x.gt(3.7).item<bool>());
  EXPECT_TRUE(tensor({0.1}, TensorOptions(kFloat16)).eq(0.1).item<bool>());
  expect_tensor(pow(2147483648, tensor({-0.0625}, TensorOptions(kFloat16))), {1}, kFloat16, {0});
  const Tensor y = tensor({3.71875}, TensorOptions(kBFloat16));
  expect_tensor(y - 3.7, {1}, kBFloat16, {0.015625});
  expect_tensor(3.7 - y, {1}, kBFloat16, {-0.015625});
  expect_tensor(y.fmod(3.7), {1}, kBFloat16, {0.015625});
  expect_tensor(y.clone().sub_(3.7), {1}, kBFloat16, {0.015625});
  expect_tensor(x.pow(3.7), {1}, kBFloat16, {127.5});
  expect_tensor(tensor({3.03125}, TensorOptions(kBFloat16)) * 3.7, {1}, kBFloat16, {11.1875});  // a factor is not
  expect_tensor(hardshrink(x, 3.7), {1}, kBFloat16, {0});
  expect_tensor(softshrink(tensor({3.734375}, TensorOptions(kBFloat16)), 3.7), {1}, kBFloat16, {0.03125});
}

TEST(BesideLibtorch, FarAboveZeroALogarithmicSigmoidHasASecondDerivative) {
  const Tensor x = leaf({800, kInf64, -800});
  const Tensor slope = autograd::grad({log_sigmoid(x).sum()}, {x}, {}, std::nullopt, true)[0];
  expect_tensor(slope_of(slope, x), {3}, kFloat64, {0, 0, 0});
}

TEST(BesideLibtorch, AtMinusZeroALogitRises) {
  const Tensor x = leaf({-0.0, 0});
  expect_tensor(slope_of(logit(x), x), {2}, kFloat64, {kInf64, kInf64});
  expect_tensor(slope_of(logit(x, 0.0), x), {2}, kFloat64, {kInf64, kInf64});
}

TEST(BesideLibtorch, APowerOfAHalfIsASquareRoot) {
  const Tensor x = leaf({-kInf64, 4, -0.0});
  const Tensor y = x.pow(0.5);
  EXPECT_TRUE(y[0].isnan().item<bool>());
  EXPECT_TRUE(x.detach().clone().pow_(0.5)[0].isnan().item<bool>());
  EXPECT_TRUE(x.pow(-0.5)[0].isnan().item<bool>());
  EXPECT_TRUE(y[2].signbit().item<bool>());
  expect_tensor(slope_of(y, x).slice(0, 1), {2}, kFloat64, {0.25, -kInf64});
}

TEST(BesideLibtorch, APowerOfAHalfOfFloat16IsNoRoot) {
  const Tensor x = tensor({-kInf64, -0.0, 0.0, 4.0}, TensorOptions(kFloat16)).requires_grad_();
  const Tensor y = x.pow(0.5), z = x.pow(-0.5);
  expect_tensor(y.detach(), {4}, kFloat16, {kInf64, 0, 0, 2});
  EXPECT_FALSE(y[1].signbit().item<bool>());
  expect_tensor(slope_of(y, x), {4}, kFloat16, {0, kInf64, kInf64, 0.25});
  expect_tensor(z.detach(), {4}, kFloat16, {0, kInf64, kInf64, 0.5});
  expect_tensor(slope_of(z, x), {4}, kFloat16, {0, -kInf64, -kInf64, -0.0625});
  expect_tensor(x.detach().clone().pow_(0.5), {4}, kFloat16, {kInf64, 0, 0, 2});
}

TEST(BesideLibtorch, TheSlopeOfAnInverseRootIsThatOfAPower) {
  const Tensor x = leaf({-0.0, 0.0, 4});
  const Tensor y = x.pow(-0.5);
  expect_tensor(y.detach(), {3}, kFloat64, {-kInf64, kInf64, 0.5});
  expect_tensor(slope_of(y, x), {3}, kFloat64, {-kInf64, -kInf64, -0.0625});
  expect_tensor(x.detach().clone().pow_(-0.5), {3}, kFloat64, {-kInf64, kInf64, 0.5});
}

TEST(BesideLibtorch, AnElementOnOneOfTwoBoundsSharesTheGradientWithIt) {
  const Tensor x = leaf({0, 1, 2, 1, 3}), low = leaf({0, 1, 0, 2, 2}), high = leaf({1, 1, 2, 0, 2});
  const Tensor y = clamp(x, std::optional<Tensor>(low), std::optional<Tensor>(high));
  const auto slopes = autograd::grad({y.sum()}, {x, low, high});
  expect_tensor(slopes[0], {5}, kFloat64, {0.5, 1, 0.5, 0, 0});
  expect_tensor(slopes[1], {5}, kFloat64, {0.5, 0, 0, 0, 0});
  expect_tensor(slopes[2], {5}, kFloat64, {0, 0, 0.5, 1, 1});
}

// Each of the three counts as it would alone: a number by its kind, not by its width.
TEST(BesideLibtorch, TheDtypeOfAClampedTensorIsThatOfAllThree) {
  const std::optional<Tensor> low = tensor(0.5, kFloat16), high = tensor({2., 3.}, kBFloat16);
  EXPECT_EQ(clamp(tensor({-1, 4}, kInt8), low, high).scalar_type(), kBFloat16);
  EXPECT_EQ(clamp(tensor(1, kInt8), low, tensor(3., kFloat32)).scalar_type(), kFloat32);
}

TEST(BesideLibtorch, XlogyOfNothingHasNoSlopeWhateverTheNumber) {
  const Tensor x = leaf({0, 1});
  expect_tensor(slope_of(xlogy(x, kNaN64).mul(tensor({1., 0.}, TensorOptions(kFloat64))), x).slice(0, 0, 1), {1},
                kFloat64, {0});
}

TEST(BesideLibtorch, AFactorOfAddcmulHasToFitTheDtypeThatItIsComputedIn) {
  const auto by = [](Dtype dtype, const Scalar& value) {
    const Tensor x = ones({2}, dtype);
    return x.addcmul(x, x, value);
  };
  expect_tensor(by(kInt32, 2.7), {2}, kInt32, {3, 3});
  expect_tensor(by(kUInt8, -1), {2}, kUInt8, {0, 0});
  for (const Dtype dtype : {kUInt8, kInt8, kInt32, kInt64})
    for (const double value : {kInf64, -kInf64, kNaN64, 1e300}) EXPECT_THROW(by(dtype, value), Error) << value;
  EXPECT_THROW(by(kUInt8, 300), Error);
  EXPECT_THROW(ones({0}, kInt32).addcmul(ones({0}, kInt32), ones({0}, kInt32), -kInf64), Error);
  expect_tensor(by(kFloat16, 1e5), {2}, kFloat16, {kInf64, kInf64});
  expect_tensor(by(kFloat32, -kInf64), {2}, kFloat32, {-kInf64, -kInf64});
  for (const Dtype dtype : {kFloat16, kBFloat16, kFloat32}) EXPECT_THROW(by(dtype, 1e300), Error);
  const Tensor x = ones({2});
  EXPECT_THROW(x.addcdiv(x, x, 1e300), Error);
}

TEST(BesideLibtorch, TheNumbersOfThresholdHaveToFit) {
  const Tensor x = ones({2}, kFloat16);
  expect_tensor(threshold(x, 1, kInf64), {2}, kFloat16, {kInf64, kInf64});
  expect_tensor(threshold(x, 1e30, 1), {2}, kFloat16, {1, 1});
  EXPECT_THROW(threshold(x, 1, 1e30), Error);
  EXPECT_THROW(threshold(x, 1e300, 1), Error);
  expect_tensor(threshold(ones({2}, kBFloat16), 1, 1e30), {2}, kBFloat16, {0x1.94p99, 0x1.94p99});
  EXPECT_THROW(threshold(ones({2}), 1, 1e300), Error);
  EXPECT_THROW(threshold(ones({2}, kUInt8), 300, 1), Error);
}

TEST(BesideLibtorch, TheSecondSlopeOfSincKeepsItsDigitsNear0) {
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    const Tensor x = tensor({-0.01, 1e-4, 0., 0.02, 0.3, 0.49, 1., 2.5}, TensorOptions(dtype)).requires_grad_(true);
    const Tensor first = autograd::grad({x.sinc().sum()}, {x}, {}, true, true)[0];
    const Tensor second = autograd::grad({first.sum()}, {x})[0].to(kFloat64);
    const Tensor exact = tensor({-3.2888941000126932, -3.2898680362873622, -3.2898681336964524, -3.285972685569879,
                                 -2.458485286266174, -1.2613885485274337, 2., -1.215893396004392},
                                TensorOptions(kFloat64));
    EXPECT_TRUE(second.allclose(exact, 1e-6, 1e-6)) << second;
  }
}

TEST(BesideLibtorch, WhatIsClosedLetsNoGradientThroughNotEvenNaN) {
  const auto check = [](auto f, const std::vector<double>& expected) {
    for (const Dtype dtype : {kFloat32, kFloat64, kBFloat16}) {
      for (const bool again : {false, true}) {
        const Tensor x = tensor({-2., 0., 0.25, 7., -4., -1.5}, TensorOptions(dtype)).requires_grad_(true);
        const Tensor slope = autograd::grad({f(x)}, {x}, {full_like(x, kNaN64)}, again, again)[0];
        expect_tensor(slope.isnan().to(kFloat32), {6}, kFloat32, expected);
        EXPECT_EQ(slope.nan_to_num().abs().sum().item<double>(), 0);
      }
    }
  };
  check([](const Tensor& x) { return relu(x); }, {0, 0, 1, 1, 0, 0});
  check([](const Tensor& x) { return relu6(x); }, {0, 0, 1, 0, 0, 0});
  check([](const Tensor& x) { return hardtanh(x); }, {0, 1, 1, 0, 0, 0});
  check([](const Tensor& x) { return threshold(x, 1, 3); }, {0, 0, 0, 1, 0, 0});
  check([](const Tensor& x) { return clamp(x, -1, 1); }, {0, 1, 1, 0, 0, 0});
  check([](const Tensor& x) { return clamp_min(x, 0); }, {0, 0, 1, 1, 0, 0});
  check([](const Tensor& x) { return clamp_max(x, 0); }, {1, 0, 0, 0, 1, 1});
  check([](const Tensor& x) { return hardshrink(x); }, {1, 0, 0, 1, 1, 1});
  check([](const Tensor& x) { return softshrink(x); }, {1, 0, 0, 1, 1, 1});
  check([](const Tensor& x) { return hardsigmoid(x); }, {1, 1, 1, 0, 0, 1});
  check([](const Tensor& x) { return hardswish(x); }, {1, 1, 1, 1, 0, 1});
  check([](const Tensor& x) { return floor(x); }, {0, 0, 0, 0, 0, 0});
  check([](const Tensor& x) { return sign(x); }, {0, 0, 0, 0, 0, 0});
}

}  // namespace
}  // namespace tenon::test
