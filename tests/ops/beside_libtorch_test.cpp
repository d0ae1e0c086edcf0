// Rules of shapes, layouts, indices, reductions and what is made that were broken where random calls were compared with
// libtorch's (bench/tensor/differential).
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "slopes.h"

#include <tenon/nn/functional/pooling.h>
#include <tenon/nn/functional/vision.h>
#include <tenon/ops/nn/attention.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

TEST(BesideLibtorch, APositionWithoutDimensionsIsThatOfAVector) {
  const std::vector<Tensor> found = where(tensor(5.0));
  ASSERT_EQ(found.size(), 1U);
  expect_tensor(found[0], {1}, kInt64, {0});
  EXPECT_EQ(where(tensor(0.0))[0].numel(), 0);
}

TEST(BesideLibtorch, RunsAlongADimensionCountAndPointWhetherAskedToOrNot) {
  const auto [values, inverse, counts] = unique_consecutive(tensor({{1, 1}, {1, 1}, {2, 1}}), false, false, 0);
  expect_tensor(values, {2, 2}, kInt64, {1, 1, 2, 1});
  expect_tensor(inverse, {3}, kInt64, {0, 0, 1});
  expect_tensor(counts, {2}, kInt64, {2, 1});
  EXPECT_EQ(std::get<1>(unique_consecutive(tensor({1, 1}), false, false, 0)).numel(), 0) << "a vector is no rows";
}

TEST(BesideLibtorch, LogSumExpOfIntegersIsComputedAsFloating) {
  const Tensor lowest = tensor({-128, -128}).to(kInt8);
  expect_tensor(lowest.logsumexp({0}), {}, kFloat32, {-128 + std::log(2.0)});
  expect_tensor(tensor({true, true}).logsumexp({0}), {}, kFloat32, {1 + std::log(2.0)});
}

TEST(BesideLibtorch, ACrossProductAsksBothForThree) {
  expect_error([] { cross(ones({3, 3}), ones({1, 3}), 0); }, "must have length 3. Got 3 and 1");
}

TEST(BesideLibtorch, WhatIsMadeOfTemporariesIsNoView) {
  const Tensor picture = rand({2, 4, 4}), batch = rand({1, 4, 2, 2});
  const Tensor grid = zeros({1, 3, 3, 2}), theta = rand({1, 2, 3});
  EXPECT_FALSE(max_pool2d(picture, 2).is_view());
  EXPECT_FALSE(avg_pool2d(picture, 2).is_view());
  EXPECT_FALSE(adaptive_avg_pool2d(picture, 2).is_view());
  EXPECT_FALSE(im2col(picture, 2, 1, 0, 1).is_view());
  EXPECT_FALSE(pixel_shuffle(batch, 2).is_view());
  EXPECT_FALSE(grid_sampler(batch, grid, 0, 0, false).is_view());
  EXPECT_FALSE(affine_grid_generator(theta, {1, 1, 2, 2}, false).is_view());
  EXPECT_FALSE(bilinear(rand({3}), rand({4}), rand({2, 3, 4})).is_view());
  EXPECT_FALSE(picture.roll(1).is_view());
  EXPECT_FALSE(scaled_dot_product_attention(rand({2, 4}), rand({2, 4}), rand({2, 4})).is_view());
  Tensor made;
  {
    const NoGradGuard no_grad;
    made = pixel_shuffle(batch, 2);
  }
  made.mul_(leaf({1}).to(kFloat32));  // a view made without gradients would refuse it
}

TEST(BesideLibtorch, OfOneSizeTensorsAreBroadcastToThemselves) {
  const Tensor x = rand({2}), number = tensor(1.0);
  const std::vector<Tensor> all = broadcast_tensors({x, number});
  EXPECT_TRUE(all[0].is_same(x));
  EXPECT_TRUE(all[1].is_view());
}

TEST(BesideLibtorch, WindowsOverRepeatedElementsHandTheirGradientToEach) {
  const Tensor x = tensor({2.0}, TensorOptions(kFloat64)).expand({4}).detach().requires_grad_(true);
  const Tensor y = x.unfold(0, 2, 1);
  const Tensor weights = tensor({{1., 2.}, {3., 4.}, {5., 6.}}, TensorOptions(kFloat64));
  expect_tensor(slope_of(y * weights, x), {4}, kFloat64, {1, 5, 9, 6});
  const Tensor windows = arange(3, TensorOptions(kFloat64)).unfold(0, 2, 1).detach().requires_grad_(true);
  expect_tensor(
      slope_of(windows.unfold(1, 1, 1).reshape({2, 2}) * tensor({{1., 2.}, {3., 4.}}, TensorOptions(kFloat64)),
               windows),
      {2, 2}, kFloat64, {1, 2, 3, 4});
}

TEST(BesideLibtorch, ANumberIsSelectedByOneIndexOnly) {
  for (const std::int64_t count : {0, 2}) {
    EXPECT_THROW(index_select(tensor(1.0), 0, zeros({count}, TensorOptions(kInt64))), IndexError) << count;
  }
  expect_tensor(index_select(tensor(3.0), 0, tensor({0})), {}, kFloat32, {3});
}

TEST(BesideLibtorch, WholeStepsLieBetweenWholeEnds) {
  expect_tensor(linspace(-1.5, 0.5, 5, TensorOptions(kInt64)), {5}, kInt64, {-1, 0, 0, 0, 0});
}

TEST(BesideLibtorch, MeansOfIntegersAreCutOff) {
  const Tensor x = tensor({-5, 0, 3, 4}).to(kInt64).reshape({1, 1, 4});
  expect_tensor(avg_pool1d(x, {2}), {1, 1, 2}, kInt64, {-2, 3});
  expect_tensor(avg_pool2d(tensor({6, 6, 7, 7}).to(kInt64).reshape({1, 1, 2, 2}), {2, 2}), {1, 1, 1, 1}, kInt64, {6});
  EXPECT_THROW(avg_pool3d(ones({1, 2, 2, 2}), {3, 3, 3}, {1, 1, 1}, {1, 1, 1}), Error) << "the kernel is larger";
}

TEST(BesideLibtorch, AnOutThatOverlapsItselfIsRefusedBeforeItIsResized) {
  Tensor out = ones({1}).expand({3});
  EXPECT_THROW(exp_out(out, ones({2})), Error);
  EXPECT_THROW(add_out(out, ones({2}), ones({2})), Error);
  EXPECT_EQ(out.size(0), 3);
}

TEST(BesideLibtorch, AnOperandIsNotResizedAsOut) {
  Tensor x = ones({2, 1});
  EXPECT_THROW(minimum_out(x, x, ones({2, 2})), Error);
  EXPECT_EQ(x.size(1), 1);
}

TEST(BesideLibtorch, IntegersThatAreWrittenNeedNoGradient) {
  const Tensor whole = zeros({2}, kInt64);
  EXPECT_FALSE(whole.copy_(leaf({1.5, 2})).requires_grad());
}

TEST(BesideLibtorch, AnInfiniteStepIsRefused) {
  EXPECT_THROW(arange(1, 2, -std::numeric_limits<double>::infinity()), Error);
}

TEST(BesideLibtorch, ASequenceFillsTheSizesOfOut) {
  Tensor out = empty({2, 2});
  expect_tensor(arange_out(out, 4), {2, 2}, kFloat32, {0, 1, 2, 3});
  expect_tensor(linspace_out(out, 0, 6, 4), {2, 2}, kFloat32, {0, 2, 4, 6});
  expect_tensor(arange_out(out, 3), {3}, kFloat32, {0, 1, 2});
}

TEST(BesideLibtorch, ARefusedOverlapIsRefusedForIntegersToo) {
  Tensor x = ones({1, 3}, kInt64).expand({2, 3});
  EXPECT_THROW(x.floor_(), Error);
  EXPECT_THROW(x.masked_fill_(x.gt(0), 1), Error);
}

TEST(BesideLibtorch, APowerThatIsNoNumberIsRefused) { EXPECT_THROW(ones({2, 2}).renorm(NAN, 0, 1), Error); }

TEST(BesideLibtorch, TruthLiesBetweenTruths) { EXPECT_TRUE(linspace(0.5, 1, 1, TensorOptions(kBool))[0].item<bool>()); }

TEST(BesideLibtorch, BytesUnderACurveAreAddedUpAsWiderIntegers) {
  expect_tensor(trapezoid(tensor({200, 200, 200}).to(kUInt8), 1), {}, kFloat32, {600 - 0.5 * (400 % 256)});
}

TEST(BesideLibtorch, AnOuterProductLiesAsWhatItIsAddedTo) {
  EXPECT_EQ(addr(ones({3, 2}).t(), ones({2}), ones({3}), 0, 1).stride(0), 1);
}

TEST(BesideLibtorch, ANormThatIsNoNumberIsRefused) { EXPECT_THROW(ones({2, 2}).renorm(1, 0, NAN), Error); }

TEST(BesideLibtorch, AnEmptyTensorIndexedByNothingIsNoView) {
  EXPECT_FALSE(index(empty({2, 0}), {Tensor()}).is_view());
}

TEST(BesideLibtorch, ANumberThatIsNotReplacedHangsOnTheSourceAllTheSame) {
  const Tensor source = leaf({5, 6});
  const Tensor kept = masked_scatter(tensor(1., kFloat64), tensor(false), source);
  EXPECT_TRUE(kept.requires_grad());
  expect_tensor(slope_of(kept, source), {2}, kFloat64, {0, 0});
  const Tensor replaced = masked_scatter(tensor(1., kFloat64), tensor(true), source);
  expect_tensor(replaced.detach(), {}, kFloat64, {5});
  expect_tensor(slope_of(replaced, source), {2}, kFloat64, {1, 0});
  expect_tensor(masked_scatter(tensor(1.), tensor(false), empty({0})), {}, kFloat32, {1});
}

TEST(BesideLibtorch, TheMaximumThatIsNaNHandsItsGradientToTheNaNs) {
  const Tensor x = leaf({kNaN64, 1, kNaN64, 2});
  expect_tensor(slope_of(x.max(), x), {4}, kFloat64, {0.5, 0, 0.5, 0});
  expect_tensor(slope_of(x.min(), x), {4}, kFloat64, {0.5, 0, 0.5, 0});
}

TEST(BesideLibtorch, TheSlopeOfASoftmaxOfNaNIsNaN) {
  const Tensor x = tensor(kNaN64, TensorOptions(kFloat64)).requires_grad_(true);
  const Tensor slope = autograd::grad({x.softmax(0)}, {x}, {}, std::nullopt, true)[0];
  EXPECT_TRUE(slope.isnan().item<bool>());
}

TEST(BesideLibtorch, BesideInfinityTheOthersHaveNoShareOfALogsumexp) {
  const Tensor x = leaf({kInf64, 60000, -kInf64});
  const Tensor slope = slope_of(x.logsumexp({0}), x);
  EXPECT_TRUE(slope[0].isnan().item<bool>());
  expect_tensor(slope.slice(0, 1), {2}, kFloat64, {0, 0});
}

TEST(BesideLibtorch, AnEllipsisDoesNotHideThatIndicesAreTooMany) {
  for (const Tensor& x : {tensor(1.0), tensor({1., 2.})}) {
    const Tensor at = tensor({0, 0});
    const auto refused = "too many indices for tensor of dimension " + std::to_string(x.dim());
    expect_error<IndexError>([&] { x.index({"...", at, at}); }, refused);
    expect_error<IndexError>([&] { x.clone().index_put_({"...", at, at}, 1); }, refused);
  }
  expect_error<IndexError>([] { tensor(1.0).index({"...", tensor({0, 0})}); }, "of dimension 0");
}

TEST(BesideLibtorch, AHistogramOfSixteenBitsCountsLargeNumbers) {
  const Tensor x = tensor({60000., -300., 0., 1., 59000.}, TensorOptions(kFloat16));
  expect_tensor(x.histc(5, 0, 0), {5}, kFloat16, {3, 0, 0, 0, 2});
}

TEST(BesideLibtorch, AProductIntoATensorRecordsNothing) {
  const Tensor x = ones({2, 3}), w = ones({4, 3});
  Tensor out = empty({0}), whole = empty({0}, TensorOptions(kInt64));
  expect_tensor(linear_out(out, x, w, tensor({1., 2., 3., 4.})), {2, 4}, kFloat32, {4, 5, 6, 7, 4, 5, 6, 7});
  expect_error([&] { linear_out(out, x, w.clone().requires_grad_(), {}); }, "don't support automatic differentiation");
  expect_error([&] { linear_out(out, x, w, ones({4}).requires_grad_()); }, "don't support automatic differentiation");
  expect_error([&] { linear_out(whole, x, w, {}); }, "Expected out tensor to have dtype float, but got");
}

TEST(BesideLibtorch, DrawnTruthLiesInOrder) { EXPECT_EQ(bernoulli(ones({2, 3}).t()).strides(), IntArrayRef({2, 1})); }

TEST(BesideLibtorch, ARangeHasAFiniteStep) {
  expect_error([] { range(0, 2, -kInf64); }, "step must be finite but got -inf");
}

TEST(BesideLibtorch, TheEndsOfALinspaceOfBytesAreBytesFirst) {
  const TensorOptions bytes(kUInt8);
  expect_tensor(linspace(-1, 3.7, 4, bytes), {4}, kUInt8, {255, 171, 87, 3});
  expect_tensor(linspace(-2, 0, 4, bytes), {4}, kUInt8, {254, 169, 84, 0});
  expect_tensor(linspace(1, 300, 1, bytes), {1}, kUInt8, {1});
  expect_error([&] { linspace(1, 300, 2, bytes); }, "value cannot be converted to type uint8_t without overflow");
  expect_error([&] { linspace(2.9, -2.9, 3, bytes); }, "value cannot be converted to type uint8_t without overflow");
}

TEST(BesideLibtorch, AViewThatRepeatsElementsHasAGradientAfterItsBaseWasWritten) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor base = x.clone();
  const Tensor repeated = base.narrow(0, 0, 1).expand({3}), windows = base.unfold(0, 2, 1);
  base.mul_(2);
  const Tensor weights = tensor({1., 2., 3.}, TensorOptions(kFloat64));
  expect_tensor(slope_of(repeated * weights, x), {3}, kFloat64, {12, 0, 0});
  expect_tensor(slope_of(windows, x), {3}, kFloat64, {2, 4, 2});
}

TEST(BesideLibtorch, TheLengthOfAShortVectorInSixteenBitsHasASlope) {
  const Tensor x = full({4}, 1e-6, TensorOptions(kFloat16)).requires_grad_(true);
  expect_tensor(slope_of(x.norm(), x), {4}, kFloat16, {0.5, 0.5, 0.5, 0.5});
}

TEST(BesideLibtorch, LengthsBeyond16BitsAreRenormedAsWell) {
  const Tensor x = tensor({{600., 200., 3., 4.}, {60000., 60000., 60000., 60000.}});  // of 17128.6 and 1.536e7 by 1/4
  const Tensor y = x.to(kFloat16).renorm(0.25, 0, 1e4);
  EXPECT_EQ(y.scalar_type(), kFloat16);
  EXPECT_TRUE(y.to(kFloat32).allclose(tensor({{350.29, 116.76, 1.7515, 2.3353}, {39.06, 39.06, 39.06, 39.06}}), 2e-3));
  const Tensor short_one = x.to(kBFloat16).renorm(0.25, 0, 1e4).to(kFloat32);
  EXPECT_TRUE(short_one[0].allclose(tensor({350., 116.5, 1.75, 2.328125}), 1e-2));
}

}  // namespace
}  // namespace tenon::test
