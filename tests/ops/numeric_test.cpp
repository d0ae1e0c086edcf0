// Functions of single elements, bounds and reductions.
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

TEST(Numeric, WhatIsNotFiniteIsReplaced) {
  const Inputs in;
  expect_tensor(in.N.nan_to_num(), {3, 3}, kFloat, {1, 0, 2, 0, 0, 0, 3, -3.40282347e+38, 3.40282347e+38});
  expect_tensor(in.N.nan_to_num(0.5, 9, -9), {3, 3}, kFloat, {1, 0.5, 2, 0.5, 0.5, 0.5, 3, -9, 9});
}

TEST(Numeric, LogitIsTheInverseOfSigmoidWithinItsBounds) {
  expect_tensor(tensor({0., 0.25, 1., 2.}).logit(), {4}, kFloat, {-kInf, -1.09861231, kInf, kNan});
  expect_tensor(tensor({0., 0.25, 1., 2.}).logit(0.1), {4}, kFloat, {-2.19722462, -1.09861231, 2.19722438, 2.19722438});
  expect_tensor(tensor({1, 0}).logit(), {2}, kFloat, {kInf, -kInf});
}

TEST(Numeric, SignsOfIntegersAreIntegers) {
  const Inputs in;
  expect_tensor(in.I.sgn(), {2, 3}, kLong, {1, 1, 1, -1, 0, 1});
}

TEST(Numeric, NothingTimesALogarithmIsNothing) {
  const Inputs in;
  expect_tensor(xlogy(tensor({0.0f, 0.0f, 2.0f, 0.0f}), tensor({0.0f, kNan, 3.0f, -1.0f})), {4}, kFloat,
                {0, kNan, 2.19722462, 0});
  expect_tensor(in.I.xlogy(2), {2, 3}, kFloat, {3.46573591, 2.07944155, 3.46573591, -1.38629436, 0, 2.07944155});
  expect_tensor(xlogy(3, tensor({1, 2})), {2}, kFloat, {0, 2.07944155});
}

TEST(Numeric, HeavisideTakesItsValueAtZero) {
  const Inputs in;
  expect_tensor(heaviside(in.M, tensor(0.25f)), {3, 4}, kFloat, {1, 1, 1, 1, 0.25, 0, 1, 1, 1, 1, 0, 1});
  expect_tensor(heaviside(tensor({-1, 0, 3}), tensor({7, 8, 9})), {3}, kLong, {0, 8, 1});
}

TEST(Numeric, CommonDivisorsAndMultiplesArePositive) {
  const Inputs in;
  expect_tensor(gcd(tensor({12, -18, 0, 0, 7}), tensor({18, 12, 5, 0, 3})), {5}, kLong, {6, 6, 5, 0, 1});
  expect_tensor(lcm(tensor({12, -18, 0, 0, 7}), tensor({18, 12, 5, 0, 3})), {5}, kLong, {36, 36, 0, 0, 21});
  // 251 without dimensions is -5 beside int8.
  expect_tensor(lcm(tensor({4, -8}, kInt8), tensor(251, kUInt8)), {2}, kInt8, {20, 40});
  expect_tensor(gcd(in.I, tensor(15)), {2, 3}, kLong, {5, 3, 5, 1, 15, 3});
}

TEST(Numeric, NansGiveWayToNumbersInFmaxAndFmin) {
  const Inputs in;
  expect_tensor(fmax(in.N, tensor(1.5f)), {3, 3}, kFloat, {1.5, 1.5, 2, 1.5, 1.5, 1.5, 3, 1.5, kInf});
  expect_tensor(fmin(tensor({kNan, 1.f}), tensor({kNan, kNan})), {2}, kFloat, {kNan, 1});
}

TEST(Numeric, DecimalsAreRoundedOnEitherSideOfThePoint) {
  expect_tensor(round(tensor({3.255, 15.15, -2.5}), 1), {3}, kFloat, {3.29999995, 15.1999998, -2.5});
  expect_tensor(round(tensor({1234.5, 1250., -1350.}), -2), {3}, kFloat, {1200, 1200, -1400});
}

TEST(Numeric, DivisionsRoundToZeroOrDown) {
  const Inputs in;
  expect_tensor(div(in.I, 2, "trunc"), {2, 3}, kLong, {2, 1, 2, -1, 0, 1});
  expect_tensor(div(in.M, -2, "floor"), {3, 4}, kFloat, {-2, -1, -1, -1, -0, 0, -2, -2, -1, -1, 1, -1});
  expect_tensor(in.I.clone().div_(2, "floor"), {2, 3}, kLong, {2, 1, 2, -1, 0, 1});
  expect_tensor(in.M.clone().div_(tensor(2.5f), "trunc"), {3, 4}, kFloat, {1, 0, 0, 0, 0, -0, 1, 1, 0, 0, -1, 0});
}

TEST(Numeric, ARemainderHasTheSignOfItsDivisor) {
  expect_tensor(remainder(7, tensor({3, -4, 2})), {3}, kLong, {1, -1, 1});
  expect_tensor(remainder(7.5, tensor({3., -4.})), {2}, kFloat, {1.5, -0.5});
}

TEST(Numeric, InfinitiesAreToldBySign) {
  const Inputs in;
  expect_tensor(in.N.isposinf(), {3, 3}, kBool, {0, 0, 0, 0, 0, 0, 0, 0, 1});
  expect_tensor(in.N.isneginf(), {3, 3}, kBool, {0, 0, 0, 0, 0, 0, 0, 1, 0});
}

TEST(Numeric, DecimalsOf16BitNumbersAreRoundedIn32) {
  expect_tensor(tensor({700.f, 0.9253f}, kHalf).round(2), {2}, kHalf, {700, 0.93017578125});
  expect_tensor(tensor({2.546875f}, kBFloat16).round(1), {1}, kBFloat16, {2.5});
  expect_tensor(tensor({12345.f}, kHalf).round_(-2), {1}, kHalf, {12304});
  const Tensor x = tensor({0.9253f}, kHalf).set_requires_grad(true);
  x.round(2).sum().backward();
  EXPECT_EQ(x.grad().item<float>(), 0);
}

TEST(Numeric, ShiftsKeepToTheWidthOfTheirType) {
  const Inputs in;
  expect_tensor(in.I.bitwise_left_shift(2), {2, 3}, kLong, {20, 12, 20, -8, 0, 12});
  expect_tensor(in.I.bitwise_right_shift(tensor({1, 0, 70})), {2, 3}, kLong, {2, 3, 0, -1, 0, 0});
  expect_tensor(tensor({1, 3, 127}, kChar).bitwise_left_shift(tensor({7, 1, 9}, kChar)), {3}, kChar, {-128, 6, 0});
  expect_tensor(tensor({-128, -3, 127}, kChar).bitwise_right_shift(tensor({7, 9, -1}, kChar)), {3}, kChar, {-1, -1, 0});
  expect_tensor(tensor({255, 128}, kByte).bitwise_right_shift(tensor({1, 9}, kByte)), {2}, kByte, {127, 0});
  expect_tensor(bitwise_left_shift(1, tensor({0, 3, 62})), {3}, kLong, {1, 8, 4611686018427387904});
  expect_tensor(in.K.__lshift__(1), {4}, kLong, {0, 4, 2, 4});
  expect_tensor(in.K.clone().__ilshift__(in.K), {4}, kLong, {0, 8, 2, 8});
}

TEST(Bounds, MayBeTensors) {
  const Inputs in;
  expect_tensor(in.M.clamp(tensor({0., 1., 2., 3.})), {3, 4}, kFloat, {3, 1, 2, 3, 0, 1, 4, 4, 2, 2, 2, 3});
  expect_tensor(in.M.clip(0, 2), {3, 4}, kFloat, {2, 1, 2, 1, 0, 0, 2, 2, 2, 2, 0, 0.5});
  expect_tensor(in.M.clone().clamp_(in.M.mul(0), in.M.mul(0).add(1)), {3, 4}, kFloat,
                {1, 1, 1, 1, 0, -0, 1, 1, 1, 1, -0, 0.5});
  expect_tensor(clamp_max(in.M, tensor({{1.f}, {2.f}, {0.f}})), {3, 4}, kFloat, {1, 1, 1, 1, 0, -1, 2, 2, 0, 0, -3, 0});
  expect_tensor(in.M.clone().clamp_min_(in.S), {3, 4}, kFloat, {3, 2.5, 2.5, 2.5, 2.5, 2.5, 4, 4, 2.5, 2.5, 2.5, 2.5});
  expect_tensor(in.I.clip(std::optional<Tensor>(tensor({1.5f}))), {2, 3}, kFloat, {5, 3, 5, 1.5, 1.5, 3});
}

TEST(Summary, ReductionsOutOfOthers) {
  const Inputs in;
  {
    const auto result = in.M.aminmax();
    expect_tensor(std::get<0>(result), {}, kFloat, {-3});
    expect_tensor(std::get<1>(result), {}, kFloat, {4});
  }
  {
    const auto result = in.M.aminmax(1);
    expect_tensor(std::get<0>(result), {3}, kFloat, {1, -1, -3});
    expect_tensor(std::get<1>(result), {3}, kFloat, {3, 4, 2});
  }
  {
    const auto result = in.N.aminmax(0, true);
    expect_tensor(std::get<0>(result), {1, 3}, kFloat, {kNan, kNan, kNan});
    expect_tensor(std::get<1>(result), {1, 3}, kFloat, {kNan, kNan, kNan});
  }
  {
    const auto result = in.M.aminmax(std::nullopt, true);
    expect_tensor(std::get<0>(result), {1, 1}, kFloat, {-3});
    expect_tensor(std::get<1>(result), {1, 1}, kFloat, {4});
  }
  expect_tensor(in.N.nansum(), {}, kFloat, {kNan});
  expect_tensor(in.N.nansum(0), {3}, kFloat, {4, -kInf, kInf});
  expect_tensor(in.N.nansum({0, 1}, true, kDouble), {1, 1}, kDouble, {kNan});
  expect_tensor(in.I.nansum(1), {2}, kLong, {13, 1});
  expect_tensor(in.N.nanmean(1), {3}, kFloat, {1.5, kNan, kNan});
  expect_tensor(in.N.nanmean(0), {3}, kFloat, {2, -kInf, kInf});
  expect_tensor(in.M.trace(), {}, kFloat, {-1});
  expect_tensor(in.I.trace(), {}, kLong, {5});
  expect_tensor(in.M.dist(in.M.mul(2)), {}, kFloat, {8.07774734});
  expect_tensor(in.M.dist(in.S, 1), {}, kFloat, {21.5});
  expect_tensor(dist(in.V, in.V.flip(0), kInf), {}, kFloat, {1});
  expect_tensor(in.M.renorm(2, 0, 3), {3, 4}, kFloat,
                {2.32378983, 0.774596632, 1.54919326, 0.774596632, 0, -0.52223295, 2.0889318, 2.0889318, 1.44463027,
                 1.44463027, -2.16694546, 0.361157566});
  expect_tensor(in.T.renorm(1, 1, 40), {2, 3, 4}, kFloat,
                {0,          0.666666687, 1.33333337, 2,          1.73913038, 2.173913,   2.60869551, 3.04347825,
                 2.58064508, 2.90322566,  3.22580624, 3.54838705, 8,          8.66666698, 9.33333397, 10,
                 6.95652151, 7.39130402,  7.82608652, 8.26086903, 6.45161247, 6.77419329, 7.0967741,  7.41935444});
  expect_tensor(in.M.clone().renorm_(2, 1, 0), {3, 4}, kFloat, {0, 0, 0, 0, 0, -0, 0, 0, 0, 0, -0, 0});
  expect_tensor(cdist(in.M, in.M.slice(0, 1)), {3, 2}, kFloat, {5.09901953, 5.22015333, 0, 8.61684418, 8.61684418, 0});
  expect_tensor(cdist(in.T, in.T.slice(1, 0, 2), 1), {2, 3, 2}, kFloat, {0, 16, 16, 0, 32, 16, 0, 16, 16, 0, 32, 16});
  expect_tensor(cdist(in.M, in.M, kInf), {3, 3}, kFloat, {0, 3, 5, 3, 0, 7, 5, 7, 0});
  expect_tensor(cdist(zeros({0, 4}), in.M), {0, 3}, kFloat, {});
  expect_tensor(cdist(in.M, in.M, 0), {3, 3}, kFloat, {0, 4, 4, 4, 0, 4, 4, 4, 0});
}

TEST(Summary, DistancesOfManyRowsNeedNoMemoryForTheirDifferences) {
  manual_seed(3);
  const Tensor x = rand({2, 30, 4}).set_requires_grad(true);
  const Tensor y = rand({26, 4});
  EXPECT_TRUE(cdist(x, y).allclose(cdist(x, y, 2, 2), 1e-3, 1e-4));
  EXPECT_TRUE(cdist(y, y, 2, 1).diagonal().lt(1e-2).all().item<bool>());
  cdist(zeros({1, 4}).add(x.narrow(1, 0, 1)), x, 2, 1).sum().backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  expect_error([&] { cdist(x, y, 2, 3); }, "possible modes: 0, 1, 2, but was: 3");
}

TEST(Numeric, EqualNumbersShareTheGradientOfAnExtreme) {
  const Tensor x = tensor({1.f, kNan, 3.f}).set_requires_grad(true);
  fmax(x, tensor({1.f, 2.f, 2.f})).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({0.5f, 0.f, 1.f})));
}

TEST(Numeric, InPlaceFormsKeepTheirGradients) {
  const Tensor x = tensor({0.25f, 0.5f}).set_requires_grad(true);
  Tensor y = x * 1;
  y.logit_().sum().backward();
  EXPECT_TRUE(x.grad().allclose(tensor({1 / (0.25f * 0.75f), 4.f})));
  const Tensor outside = tensor({2.f}).set_requires_grad(true);
  outside.logit().backward();
  EXPECT_TRUE(outside.grad().isnan().item<bool>()) << "PyTorch's: without eps there is no slope outside of [0, 1]";
}

TEST(Numeric, MistakesAreNamed) {
  expect_error([] { heaviside(zeros({1}), tensor({1})); },
               "heaviside is not yet implemented for tensors with different dtypes");
  expect_error([] { gcd(zeros({1}), tensor({1})); }, "\"gcd\" not implemented for 'Float'");
  expect_error([] { tensor({1}).round(1); }, "not implemented for 'Long'");
  expect_error([] { tensor({1}).xlogy_(2); }, "can't be cast to the desired output type Long");
  expect_error([] { zeros({1}).bitwise_left_shift(1); }, "not implemented for 'Float'");
  expect_error([] { zeros({2}).clamp_(std::optional<Tensor>(zeros({2, 2}))); }, "doesn't match the broadcast shape");
  expect_error([] { zeros({0}).aminmax(); }, "cannot compute aminmax over an empty dimension");
  expect_error([] { zeros({0, 2}).aminmax(0); }, "aminmax: Expected reduction dim 0 to have non-zero size.");
  expect_error([] { tensor({1}).nanmean(); }, "expected input to have floating point or complex dtype but got Long");
  expect_error([] { zeros({3}).trace(); }, "trace: expected a matrix, but got tensor with dim 1");
  expect_error([] { zeros({3}).renorm(2, 0, 1); }, "renorm: input needs at least 2 dimensions, got 1 dimensions");
  expect_error([] { zeros({3, 1}).renorm(0, 0, 1); }, "renorm: non-positive-norm not supported");
  expect_error(
      [] {
        cdist(zeros({2, 3}), zeros({2, 4}));
      },
      "X1 and X2 must have the same number of columns. X1: 3 X2: 4");
}

TEST(Out, ResultsGoIntoTheTensorGiven) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}});
  Tensor out = empty({0});
  EXPECT_TRUE(mm_out(out, a, a).is_same(out));
  EXPECT_TRUE(out.equal(a.mm(a)));
  const void* memory = out.data_ptr();
  add_out(out, a, a);
  exp_out(out, a);
  sum_out(out, a, {1}, true);
  EXPECT_TRUE(out.equal(a.sum({1}, true)));
  cat_out(out, {a, a}, 1);
  EXPECT_TRUE(out.equal(cat({a, a}, 1)));
  cumsum_out(out, a, 0);
  EXPECT_EQ(out.sizes().vec(), a.sizes().vec());
  matmul_out(out, a, a);
  clamp_out(out, a, 2, 3);
  EXPECT_TRUE(out.equal(a.clamp(2, 3)));
  Tensor places = empty({0}, kLong);
  max_out(out, places, a, 1);
  EXPECT_TRUE(places.equal(tensor({1, 1})));
  lt_out(out, a, 3);
  EXPECT_EQ(out.scalar_type(), kFloat);
  arange_out(out, 3);
  EXPECT_TRUE(out.equal(tensor({0.f, 1.f, 2.f})));
  EXPECT_NE(memory, nullptr);
  expect_error([&] { exp_out(places, a); }, "result type Float can't be cast to the desired output type Long");
  const Tensor leaf = ones({2, 2}).set_requires_grad(true);
  expect_error([&] { mm_out(out, leaf, a); },
               "mm(): functions with out=... arguments don't support automatic differentiation");
  expect_error([&] { cat_out(out, {a, leaf}); }, "don't support automatic differentiation");
}

TEST(Out, FunctionsWithoutAGradientTakeInputsThatRequireOne) {
  const Tensor leaf = tensor({{1.f, 2.f}}).set_requires_grad(true);
  Tensor truth = empty({0}, kBool), places = empty({0}, kLong);
  EXPECT_TRUE(eq_out(truth, leaf, leaf).equal(tensor({{true, true}})));
  EXPECT_TRUE(lt_out(truth, leaf, 2).equal(tensor({{true, false}})));
  EXPECT_TRUE(ge_out(truth, leaf, 2).equal(tensor({{false, true}})));
  EXPECT_TRUE(logical_not_out(truth, leaf).equal(tensor({{false, false}})));
  EXPECT_TRUE(any_out(truth, leaf, 1).equal(tensor({true})));
  EXPECT_TRUE(argmax_out(places, leaf, 1).equal(tensor({1})));
  EXPECT_TRUE(nonzero_out(places, leaf).equal(tensor({{0, 0}, {0, 1}})));
  Tensor real = empty({1, 2}).set_requires_grad(true);
  EXPECT_TRUE(eq_out(real, leaf, leaf).equal(tensor({{1.f, 1.f}})));
}

TEST(Out, TruthOfBytesGoesIntoBools) {
  const Tensor bytes = tensor({{0, 3}}, kByte);
  Tensor truth = empty({0}, kBool), byte = empty({0}, kByte), real = empty({0});
  EXPECT_TRUE(any_out(truth, bytes, 1).equal(tensor({true})));
  EXPECT_TRUE(all_out(truth, bytes, 1).equal(tensor({false})));
  EXPECT_TRUE(any_out(byte, bytes.to(kBool), 1).equal(tensor({1}, kByte)));
  expect_error([&] { any_out(real, bytes, 1); }, "any only supports bool tensor for result, got: Float");
}

TEST(Out, HasTheDtypeThatItsFunctionAsksFor) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}});
  Tensor out = empty({2, 2}, kDouble), places = empty({0}, kLong), half = empty({0}, kHalf);
  EXPECT_TRUE(exp_out(out, a).equal(a.exp().to(kDouble))) << "what computes in the inputs' dtype, casts";
  cat_out(out, {a, a});
  addcmul_out(out, a, a, a);
  constexpr const char* kText = "Expected out tensor to have dtype float, but got double instead";
  expect_error([&] { mm_out(out, a, a); }, kText);
  expect_error([&] { neg_out(out, a); }, kText);
  expect_error([&] { clamp_out(out, a, 0); }, kText);
  expect_error([&] { softmax_out(out, a, 0); }, kText);
  expect_error([&] { tril_out(out, a); }, kText);
  expect_error([&] { gather_out(out, a, 0, tensor({{0, 1}})); }, kText);
  expect_error([&] { max_out(out, places, a, 0); }, kText);
  expect_error([&] { amax_out(half, tensor({1e6f}), 0); }, "Expected out tensor to have dtype float");
  expect_error([&] { argmax_out(out, a, 0); }, "Expected out tensor to have dtype long int, but got double instead");
  const Tensor tenths = tensor({0.1f, 0.2f, 0.3f});
  EXPECT_TRUE(sum_out(out, tenths, 0).equal(tenths.to(kDouble).sum())) << "sums are computed in out's dtype";
  EXPECT_TRUE(mean_out(out, tenths, 0).equal(tenths.to(kDouble).mean()));
  EXPECT_TRUE(cumsum_out(out, tenths, 0).equal(tenths.to(kDouble).cumsum(0)));
  expect_error([&] { sum_out(out, tenths, 0, false, kFloat); }, kText);
}

}  // namespace
}  // namespace tenon
