// Functions of elements out of several operators: what they choose between, what their gradients are where two formulas
// meet, and what they refuse.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

Tensor doubles(std::initializer_list<double> values) {
  Tensor result = empty({static_cast<std::int64_t>(values.size())}, kFloat64);
  std::copy(values.begin(), values.end(), result.data_ptr<double>());
  return result;
}
bool same(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && a.allclose(b, 1e-12, 1e-12, true); }

TEST(WhereRules, TheConditionIsTruthAndTheRestBroadcasts) {
  const Tensor x = tensor({1.f, 2.f}).requires_grad_(), y = tensor({{5.f}, {6.f}}).requires_grad_();
  const Tensor mask = tensor({true, false});
  EXPECT_EQ(message_of([&] {
              where(tensor({1, 0}), x, y);
            }),
            "where expected condition to be a boolean tensor, but got a tensor with dtype Long");
  EXPECT_TRUE(where(tensor({1, 0}).to(kUInt8), x, y).equal(tensor({{1.f, 5.f}, {1.f, 6.f}})));
  where(mask, x, y).mul(tensor({{1.f, 2.f}, {3.f, 4.f}})).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({4.f, 0.f})));
  EXPECT_TRUE(y.grad().equal(tensor({{2.f}, {4.f}})));
  EXPECT_TRUE(x.where(mask, y).equal(where(mask, x, y)));
  EXPECT_TRUE(x.where(mask, 7).equal(tensor({1.f, 7.f})));
  const auto places = where(tensor({{0, 3}, {4, 0}}));
  ASSERT_EQ(places.size(), 2u);
  EXPECT_TRUE(places[0].equal(tensor({0, 1})));
  EXPECT_TRUE(places[1].equal(tensor({1, 0})));
  EXPECT_EQ(where(tensor(3)).size(), 1u) << "without dimensions as with one";
}

TEST(MaskRules, AMaskIsTruthOrBytesAndFillsWithOneNumber) {
  const Tensor x = tensor({1.f, 2.f}), mask = tensor({{true}, {false}});
  for (const Dtype dtype : {kInt64, kInt8, kFloat32}) {
    const std::string got = std::string("only supports boolean masks, but got mask with dtype ") + toString(dtype);
    EXPECT_EQ(message_of([&] { x.masked_fill(mask.to(dtype), 0); }), "masked_fill " + got);
    EXPECT_EQ(message_of([&] { x.clone().masked_fill_(mask[0].to(dtype), 0); }), "masked_fill_ " + got);
  }
  EXPECT_TRUE(x.masked_fill(mask, 9).equal(tensor({{9.f, 9.f}, {1.f, 2.f}})));
  EXPECT_TRUE(x.masked_fill(mask.to(kUInt8), 9).equal(x.masked_fill(mask, 9)));
  EXPECT_TRUE(x.masked_fill(mask, tensor(9)).equal(x.masked_fill(mask, 9)));
  EXPECT_EQ(message_of([&] { x.masked_fill(mask, tensor({9.f})); }),
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).");
  EXPECT_EQ(message_of([&] { x.clone().masked_fill_(mask, 0); }),
            "output with shape [2] doesn't match the broadcast shape [2, 2]");
  EXPECT_THROW(tensor({1, 2}).masked_fill(tensor({true, false}), 1e30), Error);
  const Tensor leaf = ones({2, 2}).requires_grad_(), value = tensor(3.f).requires_grad_();
  Tensor y = leaf.mul(1);
  y.masked_fill_(mask, value);
  y.sum().backward();
  EXPECT_TRUE(leaf.grad().equal(tensor({{0.f, 0.f}, {1.f, 1.f}})));
  EXPECT_EQ(value.grad().item<float>(), 2);
  Tensor z = leaf.mul(1);
  leaf.mutable_grad() = Tensor();
  z.masked_fill_(mask[0], 5);
  z.sum().backward();
  EXPECT_TRUE(leaf.grad().equal(zeros({2, 2})));
  EXPECT_THROW(leaf.masked_fill_(mask, 1), Error);
  EXPECT_THROW(zeros({1}).expand({2}).masked_fill_(tensor({true, false}), 1), Error);
}

TEST(ClampByTensors, WhatLiesOnABoundSharesItsGradientWithIt) {
  const auto slopes = [](double x, double low, double high) {
    const Tensor a = doubles({x}).requires_grad_(), b = doubles({low}).requires_grad_(),
                 c = doubles({high}).requires_grad_();
    clamp(a, std::optional<Tensor>(b), std::optional<Tensor>(c)).mul(8).sum().backward();
    return std::vector<double>{a.grad().item<double>(), b.grad().item<double>(), c.grad().item<double>()};
  };
  using Slopes = std::vector<double>;
  EXPECT_EQ(slopes(0, -1, 1), (Slopes{8, 0, 0}));
  EXPECT_EQ(slopes(-2, -1, 1), (Slopes{0, 8, 0}));
  EXPECT_EQ(slopes(2, -1, 1), (Slopes{0, 0, 8}));
  EXPECT_EQ(slopes(-1, -1, 1), (Slopes{4, 4, 0}));
  EXPECT_EQ(slopes(1, -1, 1), (Slopes{4, 0, 4}));
  EXPECT_EQ(slopes(1, 1, 1), (Slopes{8, 0, 0}));
  EXPECT_EQ(slopes(0, 1, 1), (Slopes{0, 8, 0}));
  EXPECT_EQ(slopes(3, 1, 1), (Slopes{0, 0, 8}));
  EXPECT_EQ(slopes(0, 1, -1), (Slopes{0, 0, 8})) << "crossed";
  EXPECT_EQ(slopes(-2, 1, -1), (Slopes{0, 0, 8}));
}

TEST(ClampByTensors, TheResultLiesAsTheTensorDoes) {
  const Tensor x = arange(6.).view({3, 2}).t(), low = zeros({2, 3}), high = full({2, 3}, 4.f);
  EXPECT_EQ(clamp(x, std::optional(low), std::optional(high)).strides().vec(), x.strides().vec());
  EXPECT_EQ(clamp(x, std::optional(low), std::optional<Tensor>()).strides().vec(), x.strides().vec());
  EXPECT_EQ(clamp(x, std::optional<Tensor>(), std::optional(high)).strides().vec(), x.strides().vec());
  EXPECT_EQ(clamp(low, std::optional(x), std::optional(x)).strides().vec(), low.strides().vec());
}

TEST(ClampByTensors, EitherBoundMayBeMissingAndInPlaceTheDtypeStays) {
  const Tensor x = tensor({-3.f, 0.f, 5.f}), low = tensor({-1.f, 1.f, 1.f}), high = tensor(2.f);
  const std::optional<Tensor> none;
  EXPECT_TRUE(x.clamp(std::optional(low), none).equal(tensor({-1.f, 1.f, 5.f})));
  EXPECT_TRUE(x.clamp(none, std::optional(high)).equal(tensor({-3.f, 0.f, 2.f})));
  EXPECT_TRUE(x.clamp(std::optional(low), std::optional(high)).equal(tensor({-1.f, 1.f, 2.f})));
  EXPECT_TRUE(x.clamp_min(low).equal(tensor({-1.f, 1.f, 5.f})));
  EXPECT_TRUE(x.clamp_max(high).equal(tensor({-3.f, 0.f, 2.f})));
  EXPECT_TRUE(x.clone().clamp_min_(low).equal(tensor({-1.f, 1.f, 5.f})));
  EXPECT_TRUE(x.clone().clamp_max_(high).equal(tensor({-3.f, 0.f, 2.f})));
  EXPECT_TRUE(x.clone().clamp_(std::optional(low), std::optional(high)).equal(tensor({-1.f, 1.f, 2.f})));
  EXPECT_EQ(tensor({1, 2}).clamp(std::optional(high), std::optional(high)).scalar_type(), kFloat32);
}

TEST(AddcRules, TheThirdTermIsAProductOrAQuotientTimesANumber) {
  const Tensor x = doubles({1, 2}), y = doubles({3, -4}), z = doubles({2, 5});
  EXPECT_TRUE(same(addcmul(x, y, z, 0.5), doubles({4, -8})));
  EXPECT_TRUE(same(addcdiv(x, y, z, 2), doubles({4, 0.4})));
  EXPECT_TRUE(same(addcmul(x, y, z, true), doubles({7, -18})));
  EXPECT_TRUE(same(addcmul(x, y, z, false), x));
  const Tensor a = x.clone().requires_grad_(), b = y.clone().requires_grad_(), c = z.clone().requires_grad_();
  addcmul(a, b, c, 3).mul(doubles({1, 10})).sum().backward();
  EXPECT_TRUE(same(a.grad(), doubles({1, 10})));
  EXPECT_TRUE(same(b.grad(), doubles({6, 150})));
  EXPECT_TRUE(same(c.grad(), doubles({9, -120})));
  for (const Tensor* one : {&a, &b, &c}) one->mutable_grad() = Tensor();
  addcdiv(a, b, c, 3).mul(doubles({1, 10})).sum().backward();
  EXPECT_TRUE(same(a.grad(), doubles({1, 10})));
  EXPECT_TRUE(same(b.grad(), doubles({1.5, 6})));
  EXPECT_TRUE(same(c.grad(), doubles({-2.25, 4.8})));
  EXPECT_EQ(addcmul(tensor({1}), tensor({2}), tensor({3})).item<std::int64_t>(), 7);
  EXPECT_TRUE(same(addcdiv(doubles({1}), tensor({1}), doubles({2})), doubles({1.5}))) << "one of them is fractional";
  EXPECT_TRUE(same(addcdiv(doubles({1}), doubles({1}), tensor({2})), doubles({1.5})));
  EXPECT_EQ(message_of([] { addcdiv(doubles({1}), tensor({1}), tensor({2})); }),
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
            "division of tensor1 and tensor2: convert one of them to a floating dtype");
  EXPECT_EQ(message_of([&] {
              tensor({1, 2}).addcmul_(y, z);
            }),
            "result type Double can't be cast to the desired output type Long (in operator addcmul_)");
  EXPECT_EQ(message_of([&] {
              tensor({1, 2}).addcdiv_(y, z);
            }),
            "result type Double can't be cast to the desired output type Long (in operator addcdiv_)");
  EXPECT_THROW(tensor({1}).to(kInt8).addcmul(tensor({1}).to(kInt8), tensor({1}).to(kInt8), 300), Error);
}

/// 0, 1, 2, …: as many as several vectors of a kernel hold.
Tensor long_line() { return arange(100.).clone(); }

TEST(AddcRules, InPlaceSizesStayAndWhatOverlapsIsReadBefore) {
  const Tensor one = ones({99}), sums = cat({zeros({1}), long_line().slice(0, 0, 99) + long_line().slice(0, 1, 100)});
  Tensor line = long_line();
  line.slice(0, 1, 100).addcmul_(line.slice(0, 0, 99), one);
  EXPECT_TRUE(line.equal(sums));
  line = long_line();
  line.slice(0, 1, 100).addcmul_(one, line.slice(0, 0, 99));
  EXPECT_TRUE(line.equal(sums));
  line = long_line();
  line.slice(0, 1, 100).addcdiv_(line.slice(0, 0, 99), one);
  EXPECT_TRUE(line.equal(sums));
  Tensor x = tensor({1.f, 2.f});
  EXPECT_TRUE(x.addcdiv_(ones({1}), tensor({2.f, 4.f})).equal(tensor({1.5f, 2.25f})));
  EXPECT_THROW(x.addcmul_(ones({2, 2}), ones({2})), Error);
  EXPECT_THROW(zeros({1}).expand({2}).addcmul_(ones({2}), ones({2})), Error);
  EXPECT_THROW(ones({2}).requires_grad_().addcmul_(ones({2}), ones({2})), Error);
  Tensor narrow = tensor({1.f, 2.f}).to(kFloat16);
  EXPECT_EQ(narrow.addcmul_(doubles({0.5, 0.5}), doubles({2, 4})).scalar_type(), kFloat16);
  EXPECT_TRUE(narrow.equal(tensor({2.f, 4.f}).to(kFloat16)));
}

TEST(LerpRules, OperandsHaveOneDtypeButForAWeightThatIsANumber) {
  const Tensor x = tensor({0.f, 2.f}), y = tensor({4.f, 4.f});
  EXPECT_EQ(message_of([&] { lerp(x, y.to(kFloat64), 0.5); }),
            "expected dtype float for `end` but got dtype double (in operator lerp)");
  EXPECT_EQ(message_of([&] {
              lerp(x, y, doubles({0.5, 0.5}));
            }),
            "expected dtype float for `weight` but got dtype double (in operator lerp)");
  EXPECT_EQ(lerp(x, y, doubles({0.5}).view({})).scalar_type(), kFloat32);
  EXPECT_TRUE(lerp(x, y, doubles({0.5}).view({})).equal(tensor({2.f, 3.f})));
  EXPECT_EQ(lerp(tensor({0, 4}), tensor({2, 8}), doubles({0.5}).view({})).scalar_type(), kFloat64);
  EXPECT_TRUE(x.clone().lerp_(y, doubles({0.25}).view({})).equal(tensor({1.f, 2.5f})));
  EXPECT_EQ(message_of([&] {
              tensor({0, 4}).lerp_(tensor({2, 8}), doubles({0.5}).view({}));
            }),
            "result type Double can't be cast to the desired output type Long (in operator lerp_)");
  const Tensor a = doubles({0, 2}).requires_grad_(), b = doubles({4, 5}).requires_grad_(),
               w = doubles({0.25, 0.75}).requires_grad_();
  lerp(a, b, w).mul(doubles({1, 10})).sum().backward();
  EXPECT_TRUE(same(a.grad(), doubles({0.75, 2.5})));
  EXPECT_TRUE(same(b.grad(), doubles({0.25, 7.5})));
  EXPECT_TRUE(same(w.grad(), doubles({4, 30})));
  a.mutable_grad() = b.mutable_grad() = Tensor();
  lerp(a, b, 0.25).mul(doubles({1, 10})).sum().backward();
  EXPECT_TRUE(same(a.grad(), doubles({0.75, 7.5})));
  EXPECT_TRUE(same(b.grad(), doubles({0.25, 2.5})));
  const Tensor first = long_line().slice(0, 0, 99), last = long_line().slice(0, 1, 100);
  Tensor line = long_line();
  line.slice(0, 1, 100).lerp_(line.slice(0, 0, 99), 0.5);
  EXPECT_TRUE(line.slice(0, 1, 100).equal((first + last) * 0.5));
  line = long_line();
  line.slice(0, 1, 100).lerp_(zeros({99}), line.slice(0, 0, 99));
  EXPECT_TRUE(line.slice(0, 1, 100).equal(last - last * first));
  EXPECT_THROW(zeros({1}).expand({2}).lerp_(y, 0.5), Error);
}

TEST(LogitRules, OutsideOfZeroToOneThereIsNoSlopeUnlessEpsBoundsIt) {
  const auto slope = [](double at, std::optional<double> eps) {
    const Tensor x = doubles({at}).requires_grad_();
    x.logit(eps).sum().backward();
    return x.grad().item<double>();
  };
  EXPECT_NEAR(slope(0.25, std::nullopt), 1 / (0.25 * 0.75), 1e-12);
  EXPECT_TRUE(std::isnan(slope(-0.1, std::nullopt)));
  EXPECT_TRUE(std::isnan(slope(1.1, std::nullopt)));
  EXPECT_EQ(slope(0, std::nullopt), kWithoutEnd);
  EXPECT_EQ(slope(1, std::nullopt), kWithoutEnd);
  EXPECT_EQ(slope(0.1, 0.2), 0);
  EXPECT_EQ(slope(0.9, 0.2), 0);
  EXPECT_NEAR(slope(0.25, 0.25), 1 / (0.25 * 0.75), 1e-12) << "on the bound";
  EXPECT_NEAR(slope(0.75, 0.25), 1 / (0.25 * 0.75), 1e-12);
  EXPECT_NEAR(doubles({0.9}).logit(0.25).item<double>(), std::log(3), 1e-12);
  EXPECT_NEAR(doubles({-7}).logit(0.25).item<double>(), -std::log(3), 1e-12);
  EXPECT_TRUE(std::isnan(doubles({-7}).logit().item<double>()));
  EXPECT_EQ(tensor({1}).logit().scalar_type(), kFloat32);
  EXPECT_NEAR(doubles({0.9}).logit_(0.25).item<double>(), std::log(3), 1e-12);
}

TEST(XlogyRules, ZeroTimesWhateverHasNoDigitsIsZeroUnlessItIsNaN) {
  const Tensor x = doubles({0, 0, 0, 2, 2}), y = doubles({0, -1, kNoValue, 0, 3});
  EXPECT_TRUE(same(x.xlogy(y), doubles({0, 0, kNoValue, -kWithoutEnd, 2 * std::log(3)})));
  const Tensor a = doubles({0, 0, 2, 2}).requires_grad_(), b = doubles({0, 4, 4, -1}).requires_grad_();
  a.xlogy(b).sum().backward();
  EXPECT_TRUE(same(a.grad(), doubles({0, std::log(4), std::log(4), kNoValue})));
  EXPECT_TRUE(same(b.grad(), doubles({kNoValue, 0, 0.5, -2})));
  EXPECT_TRUE(same(xlogy(2, doubles({3})), doubles({2 * std::log(3)})));
  EXPECT_TRUE(same(doubles({2}).xlogy(3), doubles({2 * std::log(3)})));
  EXPECT_TRUE(same(doubles({2}).xlogy_(3), doubles({2 * std::log(3)})));
  EXPECT_TRUE(same(doubles({2}).xlogy_(doubles({3})), doubles({2 * std::log(3)})));
  EXPECT_EQ(tensor({2}).xlogy(tensor({3})).scalar_type(), kFloat32);
}

TEST(StepRules, HeavisideOfZeroIsTheSecondOperandAndHasNoSlope) {
  EXPECT_TRUE(same(doubles({-2, 0, 3}).heaviside(doubles({0.5})), doubles({0, 0.5, 1})));
  EXPECT_EQ(message_of([] { doubles({1}).heaviside(tensor({1})); }),
            "heaviside is not yet implemented for tensors with different dtypes, got Double and Long");
  EXPECT_TRUE(same(doubles({-2, 0, 3}).heaviside_(doubles({0.5})), doubles({0, 0.5, 1})));
  EXPECT_THROW(doubles({1}).requires_grad_().heaviside(doubles({1})).sum().backward(), Error);
  EXPECT_THROW(doubles({1}).heaviside(doubles({1}).requires_grad_()).sum().backward(), Error);
}

TEST(DivisorRules, GcdAndLcmAgreeWithLoopsWhateverTheSigns) {
  std::vector<std::int64_t> numbers{0, 1, -1, 2, 6, -9, 12, 15, 100};
  for (const std::int64_t a : numbers) {
    for (const std::int64_t b : numbers) {
      EXPECT_EQ(tensor({a}).gcd(tensor({b})).item<std::int64_t>(), std::gcd(a, b)) << a << ", " << b;
      EXPECT_EQ(tensor({a}).lcm(tensor({b})).item<std::int64_t>(), std::lcm(a, b)) << a << ", " << b;
    }
  }
  EXPECT_TRUE(tensor({{4}, {9}}).gcd(tensor({6, 12})).equal(tensor({{2, 4}, {3, 3}})));
  EXPECT_TRUE(tensor({{4}, {9}}).lcm(tensor({6, 12})).equal(tensor({{12, 12}, {18, 36}})));
  EXPECT_EQ(tensor({100}).to(kInt8).lcm(tensor({7}).to(kInt8)).item<std::int64_t>(), 700 - 768);
  EXPECT_EQ(tensor({std::int64_t{1} << 40}).lcm(tensor({6})).item<std::int64_t>(), 3 * (std::int64_t{1} << 40));
  EXPECT_EQ(message_of([] { ones({1}).gcd(ones({1})); }), "\"gcd\" not implemented for 'Float'");
  EXPECT_THROW(tensor({true}).gcd(tensor({true})), Error);
  EXPECT_TRUE(tensor({12}).gcd_(tensor({18})).equal(tensor({6})));
  EXPECT_TRUE(tensor({12}).lcm_(tensor({18})).equal(tensor({36})));
}

TEST(NumberRules, OfANumberAndNaNTheNumberStays) {
  const Tensor x = doubles({1, kNoValue, 3, kNoValue}), y = doubles({2, 5, kNoValue, kNoValue});
  EXPECT_TRUE(same(x.fmax(y), doubles({2, 5, 3, kNoValue})));
  EXPECT_TRUE(same(x.fmin(y), doubles({1, 5, 3, kNoValue})));
  EXPECT_TRUE(doubles({kWithoutEnd, -kWithoutEnd, 1}).isposinf().equal(tensor({true, false, false})));
  EXPECT_TRUE(doubles({kWithoutEnd, -kWithoutEnd, 1}).isneginf().equal(tensor({false, true, false})));
  EXPECT_TRUE(doubles({kNoValue, kWithoutEnd, -kWithoutEnd, 2}).nan_to_num(1, 8, -9).equal(doubles({1, 8, -9, 2})));
  const double largest = std::numeric_limits<double>::max();
  EXPECT_TRUE(doubles({kNoValue, kWithoutEnd, -kWithoutEnd}).nan_to_num_().equal(doubles({0, largest, -largest})));
  EXPECT_EQ(full({1}, kWithoutEnd, kFloat16).nan_to_num().item<double>(), 65504);
  EXPECT_EQ(full({1}, kWithoutEnd, kBFloat16).nan_to_num().item<double>(), 0x1.fep127);
  EXPECT_EQ(full({1}, -kWithoutEnd).nan_to_num().item<double>(), -std::numeric_limits<float>::max());
  const Tensor whole = tensor({1});
  EXPECT_FALSE(whole.nan_to_num().is_alias_of(whole));
  EXPECT_EQ(message_of([] { tensor({true}).positive(); }), "The `+` operator, on a bool tensor is not supported.");
  EXPECT_TRUE(whole.positive().is_same(whole));
  EXPECT_TRUE(whole.isreal().equal(tensor({true})));
}

TEST(NextAfterRules, EachStepIsTheNextNumberOfItsDtype) {
  const std::vector<double> numbers{0., -0., 1, -1, 1.5, 1e-310, -1e-310, 1e308, kWithoutEnd, -kWithoutEnd, kNoValue};
  for (const double from : numbers) {
    for (const double to : numbers) {
      const double want = std::nextafter(from, to), got = doubles({from}).nextafter(doubles({to})).item<double>();
      EXPECT_TRUE(want == got || (std::isnan(want) && std::isnan(got))) << from << " to " << to << ": " << got;
      EXPECT_EQ(std::signbit(want), std::signbit(got)) << from << " to " << to;
      const auto a = static_cast<float>(from), b = static_cast<float>(to);
      const float single = tensor({a}).nextafter(tensor({b})).item<float>(), expected = std::nextafter(a, b);
      EXPECT_TRUE(expected == single || (std::isnan(expected) && std::isnan(single))) << a << " to " << b;
    }
  }
  EXPECT_EQ(full({1}, 1, kFloat16).nextafter(full({1}, 2, kFloat16)).item<double>(), 1 + 0x1p-10);
  EXPECT_EQ(full({1}, 1, kBFloat16).nextafter(full({1}, 0, kBFloat16)).item<double>(), 1 - 0x1p-8);
  EXPECT_TRUE(doubles({1, 1}).view({2, 1}).nextafter(doubles({2, 0})).sizes() == IntArrayRef({2, 2}));
  EXPECT_EQ(message_of([] { tensor({1}).nextafter(tensor({2})); }), "\"nextafter\" not implemented for 'Long'");
  const Tensor a = doubles({1, 2}).requires_grad_(), b = doubles({1, 3}).requires_grad_();
  a.nextafter(b).sum().backward();
  EXPECT_TRUE(a.grad().equal(doubles({0, 1}))) << "where there is no step, no slope";
  EXPECT_TRUE(b.grad().equal(doubles({0, 0})));
  EXPECT_EQ(doubles({1}).nextafter_(doubles({2})).item<double>(), std::nextafter(1., 2.));
}

TEST(RoundRules, DecimalsCountToEitherSideOfThePoint) {
  const Tensor x = doubles({12.345, -1555, 0.05});
  EXPECT_TRUE(same(x.round(0), doubles({12, -1555, 0})));
  EXPECT_TRUE(same(x.round(1), doubles({12.3, -1555, 0})));
  EXPECT_TRUE(same(x.round(2), doubles({12.34, -1555, 0.05})));
  EXPECT_TRUE(same(x.round(-2), doubles({0, -1600, 0})));
  EXPECT_TRUE(same(x.clone().round_(-1), doubles({10, -1560, 0})));
  EXPECT_EQ(full({1}, 1234.5, kFloat16).round(2).scalar_type(), kFloat16);
  EXPECT_EQ(full({1}, 1234, kFloat16).round(3).item<double>(), 1234) << "16 bits hold no scaled value";
  EXPECT_THROW(tensor({1}).round(1), Error);
}

TEST(ShiftRules, IntegersAreShiftedFromEitherSide) {
  const Tensor x = tensor({1, 5, -8}), places = tensor({3, 1, 2});
  EXPECT_TRUE(x.bitwise_left_shift(places).equal(tensor({8, 10, -32})));
  EXPECT_TRUE(x.bitwise_right_shift(places).equal(tensor({0, 2, -2})));
  EXPECT_TRUE(x.bitwise_left_shift(2).equal(tensor({4, 20, -32})));
  EXPECT_TRUE(x.bitwise_right_shift(1).equal(tensor({0, 2, -4})));
  EXPECT_TRUE(bitwise_left_shift(3, places).equal(tensor({24, 6, 12})));
  EXPECT_TRUE(bitwise_right_shift(24, places).equal(tensor({3, 12, 6})));
  EXPECT_TRUE(x.clone().bitwise_left_shift_(places).equal(tensor({8, 10, -32})));
  EXPECT_TRUE(x.clone().bitwise_right_shift_(1).equal(tensor({0, 2, -4})));
  EXPECT_TRUE(x.clone().bitwise_left_shift_(1).equal(tensor({2, 10, -16})));
  EXPECT_TRUE(x.clone().bitwise_right_shift_(places).equal(tensor({0, 2, -2})));
  EXPECT_EQ(message_of([&] { x.bitwise_left_shift(ones({3})); }), "\"bitwise_left_shift\" not implemented for 'Float'");
  EXPECT_EQ(message_of([&] { x.bitwise_right_shift(0.5); }), "\"bitwise_right_shift\" not implemented for 'Float'");
  EXPECT_THROW(tensor({true}).bitwise_left_shift(tensor({true})), Error);
  EXPECT_EQ(x.view({3, 1}).bitwise_left_shift(places).sizes().vec(), (std::vector<std::int64_t>{3, 3}));
}

}  // namespace
}  // namespace tenon::test
