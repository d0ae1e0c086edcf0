// Random numbers: within which bounds and how often, from whose generator, into which layouts; dropout's masks.
#include <tenon/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

constexpr std::int64_t kMany = 40'000;

double mean_of(const Tensor& x) { return x.to(kFloat64).mean().item<double>(); }
double deviation_of(const Tensor& x) { return x.to(kFloat64).std().item<double>(); }
double least_of(const Tensor& x) { return x.to(kFloat64).min().item<double>(); }
double most_of(const Tensor& x) { return x.to(kFloat64).max().item<double>(); }

/// Whole, and with gaps and its dims the other way round in memory.
std::vector<Tensor> layouts(const TensorOptions& options) {
  return {empty({200, kMany / 200}, options), empty({kMany / 200, 400}, options).slice(1, 0, 400, 2).t()};
}

TEST(RandomDraws, OfUniformNumbersStayBelowTheirUpperBoundInEveryDtype) {
  manual_seed(6);
  for (const auto& [dtype, last_odd] : {std::pair{kFloat16, 2047.0},
                                        {kBFloat16, 255.0},
                                        {kFloat32, 16'777'215.0},
                                        {kFloat64, 9'007'199'254'740'991.0}}) {
    const TensorOptions options(dtype);
    EXPECT_LT(most_of(rand({kMany}, options)), 1) << name_of(dtype);
    EXPECT_GE(least_of(empty({kMany}, options).uniform_(-2, -1)), -2) << name_of(dtype);
    EXPECT_LT(most_of(empty({kMany}, options).uniform_(-2, -1)), -1) << name_of(dtype);
    EXPECT_LT(most_of(empty({kMany}, options).uniform_(-1, 0)), 0) << name_of(dtype);
    // Between two neighbours there is the lower one alone.
    const Tensor x = empty({kMany}, options).uniform_(last_odd, last_odd + 1);
    EXPECT_EQ(least_of(x), last_odd) << name_of(dtype);
    EXPECT_EQ(most_of(x), last_odd) << name_of(dtype);
  }
}

TEST(RandomDraws, HaveTheBoundsAndMomentsAskedForInEveryLayout) {
  manual_seed(5);
  for (const Dtype dtype : {kFloat64, kFloat32}) {
    for (const Tensor& x : layouts(TensorOptions(dtype))) {
      x.uniform_(-1, 3);
      EXPECT_GE(least_of(x), -1);
      EXPECT_LT(most_of(x), 3);
      EXPECT_NEAR(mean_of(x), 1, 0.05);
      EXPECT_NEAR(deviation_of(x), 4 / std::sqrt(12.), 0.05);
      x.normal_(2, 0.5);
      EXPECT_NEAR(mean_of(x), 2, 0.02);
      EXPECT_NEAR(deviation_of(x), 0.5, 0.02);
      x.exponential_(4);
      EXPECT_GE(least_of(x), 0);
      EXPECT_NEAR(mean_of(x), 0.25, 0.01);
      EXPECT_NEAR(deviation_of(x), 0.25, 0.02);
      x.bernoulli_(0.2);
      EXPECT_TRUE(x.eq(0).logical_or(x.eq(1)).all().item<bool>());
      EXPECT_NEAR(mean_of(x), 0.2, 0.02);
      // A chance for each row, broadcast.
      x.bernoulli_(linspace(0, 1, 200, TensorOptions(kFloat64)).view({200, 1}));
      EXPECT_EQ(mean_of(x[0]), 0);
      EXPECT_EQ(mean_of(x[199]), 1);
      EXPECT_NEAR(mean_of(x.narrow(0, 0, 100)), 0.25, 0.02);
      EXPECT_NEAR(mean_of(x.narrow(0, 100, 100)), 0.75, 0.02);
    }
  }
}

// Where the first word is 2^32 - 1, of which the minus logarithm of (word + 1) * 2^-32 is 0.
const Generator::State kLastWord{1, 1711276032 + 696008 / 4};

TEST(RandomDraws, AnExponentialIsNeverZero) {
  for (const Dtype dtype : {kFloat64, kFloat32}) {
    default_generator(kCPU).set_state(kLastWord);
    const Tensor x = empty({8}, TensorOptions(dtype)).exponential_(2);
    EXPECT_EQ(x[0].item<double>(), 0x1p-33) << "as if the draw were 1 - 2^-32";
    EXPECT_GT(least_of(x.narrow(0, 1, 7)), 1e-6);
  }
}

TEST(RandomDraws, WhatHasNoChanceIsNotDrawn) {
  for (const std::int64_t certain : {0, 1, 7}) {
    const Tensor chances = zeros({8});
    chances.select(0, certain).fill_(1);
    for (const bool replacement : {false, true}) {
      default_generator(kCPU).set_state(kLastWord);
      EXPECT_EQ(multinomial(chances, 1, replacement).item<std::int64_t>(), certain);
    }
  }
}

TEST(RandomDraws, RefuseWhatIsNoDistribution) {
  const Tensor x = empty({3});
  EXPECT_NO_THROW(x.uniform_(1, 1));
  EXPECT_TRUE(x.eq(1).all().item<bool>());
  EXPECT_THROW(x.uniform_(1, 0.999), Error);
  EXPECT_NO_THROW(x.normal_(7, 0));
  EXPECT_TRUE(x.eq(7).all().item<bool>());
  EXPECT_THROW(x.normal_(0, -1e-9), Error);
  EXPECT_THROW(x.exponential_(0), Error);
  EXPECT_THROW(x.exponential_(-1), Error);
  for (const double p : {-0.001, 1.001, std::nan("")}) EXPECT_THROW(x.bernoulli_(p), Error) << p;
  EXPECT_NO_THROW(x.bernoulli_(0));
  EXPECT_TRUE(x.eq(0).all().item<bool>());
  EXPECT_NO_THROW(x.bernoulli_(1));
  EXPECT_TRUE(x.eq(1).all().item<bool>());
  const Tensor whole = empty({3}, TensorOptions(kInt64));
  EXPECT_THROW(whole.uniform_(), Error);
  EXPECT_THROW(whole.normal_(), Error);
  EXPECT_THROW(whole.exponential_(), Error);
  EXPECT_NO_THROW(whole.bernoulli_(0.5));
}

TEST(RandomIntegers, AreAllBetweenTheirBoundsAndNoOthers) {
  manual_seed(6);
  for (const Tensor& x : layouts(TensorOptions(kInt64))) {
    x.random_(-2, 3);
    for (const std::int64_t value : {-2, -1, 0, 1, 2}) EXPECT_NEAR(mean_of(x.eq(value)), 0.2, 0.02) << value;
    x.random_(4);
    for (const std::int64_t value : {0, 1, 2, 3}) EXPECT_NEAR(mean_of(x.eq(value)), 0.25, 0.02) << value;
  }
  EXPECT_THROW(empty({2}).random_(3, 3), Error);
  EXPECT_THROW(empty({2}).random_(0), Error);
  EXPECT_EQ(randint(2, 5, {300}).scalar_type(), kInt64);
  EXPECT_EQ(least_of(randint(2, 5, {300})), 2);
  EXPECT_EQ(most_of(randint(2, 5, {300})), 4);
  EXPECT_EQ(most_of(randint(2, {300})), 1);
  EXPECT_EQ(randint(2, 5, {3}, TensorOptions(kFloat32)).scalar_type(), kFloat32);
}

/// With the first bound alone.
constexpr std::optional<std::int64_t> kNoEnd;

TEST(RandomIntegers, OfADtypeReachItsEndsAndBoundsBeyondThemAreRefused) {
  manual_seed(7);
  struct Range {
    Dtype dtype;
    std::int64_t lowest, highest;
  };
  for (const Range& r :
       {Range{kBool, 0, 1}, Range{kUInt8, 0, 255}, Range{kInt8, -128, 127}, Range{kInt16, -32768, 32767},
        Range{kInt32, -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1}}) {
    SCOPED_TRACE(toString(r.dtype));
    const Tensor x = empty({kMany}, TensorOptions(r.dtype));
    EXPECT_NO_THROW(x.random_(r.lowest, r.highest + 1));
    EXPECT_THROW(x.random_(r.lowest - 1, r.highest + 1), Error);
    EXPECT_THROW(x.random_(r.lowest, r.highest + 2), Error);
    EXPECT_NO_THROW(x.random_(r.highest, r.highest + 1));
    EXPECT_EQ(least_of(x), static_cast<double>(r.highest));
    x.random_(r.highest - 1, kNoEnd);
    EXPECT_EQ(least_of(x), static_cast<double>(r.highest - 1)) << "one bound: from there to the largest";
    EXPECT_EQ(most_of(x), static_cast<double>(r.highest));
    EXPECT_NO_THROW(x.random_(r.lowest, kNoEnd));
    EXPECT_THROW(x.random_(r.lowest - 1, kNoEnd), Error);
    EXPECT_THROW(x.random_(r.highest + 1, kNoEnd), Error);
    // Without bounds: from 0 to the largest, evenly.
    x.random_();
    const auto most = static_cast<double>(r.highest);
    EXPECT_GE(least_of(x), 0);
    EXPECT_LE(most_of(x), most);
    EXPECT_NEAR(mean_of(x), most / 2, most * 0.02);
    if (r.highest < 300) {
      EXPECT_EQ(most_of(x), most);
    }
  }
  // Of a floating dtype those that it holds without gaps.
  for (const auto& [dtype, most] : {std::pair(kFloat16, 2048.), std::pair(kBFloat16, 256.), std::pair(kFloat32, 0x1p24),
                                    std::pair(kFloat64, 0x1p53)}) {
    const Tensor x = empty({kMany}, TensorOptions(dtype)).random_(static_cast<std::int64_t>(most) - 1, kNoEnd);
    EXPECT_EQ(least_of(x), most - 1);
    EXPECT_EQ(most_of(x), most);
    x.random_();
    EXPECT_GE(least_of(x), 0);
    EXPECT_LE(most_of(x), most);
    EXPECT_NEAR(mean_of(x), most / 2, most * 0.02) << toString(dtype);
    if (most < 300) {
      EXPECT_EQ(most_of(x), most);
    }
  }
  EXPECT_NO_THROW(empty({3}).random_(-1000, 1000)) << "a floating dtype has no such bounds";
}

TEST(RandomDraws, ComeFromTheGeneratorGivenAndLeaveTheOtherAlone) {
  manual_seed(8);
  const Tensor first = rand({5});
  manual_seed(8);
  Generator own(9);
  const Tensor drawn = rand({5}, own), next = rand({5}, own);
  EXPECT_TRUE(rand({5}).equal(first));
  EXPECT_FALSE(drawn.equal(next));
  Generator again(9);
  EXPECT_TRUE(empty({5}).uniform_(0, 1, again).equal(drawn));
  for (const bool is_other : {false, true}) {
    Generator a(3), b(is_other ? 4 : 3);
    EXPECT_EQ(randn({9}, a).equal(randn({9}, b)), !is_other);
    EXPECT_EQ(empty({9}).exponential_(1, a).equal(empty({9}).exponential_(1, b)), !is_other);
    EXPECT_EQ(empty({99}).bernoulli_(0.5, a).equal(empty({99}).bernoulli_(0.5, b)), !is_other);
    EXPECT_EQ(empty({9}).random_(0, 1000, a).equal(empty({9}).random_(0, 1000, b)), !is_other);
    EXPECT_EQ(normal(1, 2, {9}, a).equal(normal(1, 2, {9}, b)), !is_other);
    EXPECT_EQ(ones({50}).multinomial(9, false, a).equal(ones({50}).multinomial(9, false, b)), !is_other);
    EXPECT_EQ(ones({50}).multinomial(9, true, a).equal(ones({50}).multinomial(9, true, b)), !is_other);
  }
}

TEST(RandomDraws, OfAChanceAreOneWhereTheWordIsBelowItWhateverTheDtype) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Generator words(seed);
    const auto drawn = empty({1}, TensorOptions(kInt64)).random_(0, std::int64_t{1} << 62, words).item<std::int64_t>();
    const auto word = static_cast<double>(drawn & 0xffffffff);  // the first of the seed
    for (const Dtype dtype : {kFloat16, kFloat32, kFloat64, kBool, kUInt8, kInt64}) {
      SCOPED_TRACE(toString(dtype));
      for (const int is_below : {0, 1}) {
        const double chance = (word + is_below) * 0x1p-32;
        Generator one(seed), of_each(seed);
        EXPECT_EQ(mean_of(empty({1}, TensorOptions(dtype)).bernoulli_(chance, one)), is_below);
        const Tensor chances = full({1}, chance, TensorOptions(kFloat64));
        EXPECT_EQ(mean_of(empty({1}, TensorOptions(dtype)).bernoulli_(chances, of_each)), is_below);
      }
    }
  }
}

TEST(RandomDraws, AreFreshTensorsThatMayWantAGradient) {
  for (const Tensor& x :
       {rand({3}, requires_grad()), randn({3}, requires_grad()), normal(0, 1, {3}, std::nullopt, requires_grad())}) {
    EXPECT_TRUE(x.requires_grad());
    EXPECT_TRUE(x.is_leaf());
    EXPECT_EQ(x._version(), 0);
  }
  const Tensor turned = zeros({3, 4}).t();
  for (const Tensor& x : {rand_like(turned), randn_like(turned)}) {
    EXPECT_EQ(x.strides(), turned.strides());
    EXPECT_EQ(x._version(), 0);
    EXPECT_FALSE(x.eq(0).all().item<bool>());
  }
  EXPECT_GE(least_of(rand_like(turned)), 0);
  EXPECT_LT(least_of(randn_like(zeros({1000}).view({10, 100}).t())), 0);
  EXPECT_EQ(bernoulli(full({3, 4}, 0.5))._version(), 0);
  EXPECT_EQ(rand_like(turned, TensorOptions(kFloat64)).scalar_type(), kFloat64);
}

TEST(RandomDraws, OverwriteSoThatWhatWasThereGetsNoGradient) {
  const Tensor x = ones({4}, requires_grad());
  const Tensor y = x * 2;
  y.uniform_();
  (y * 3).sum().backward();
  EXPECT_TRUE(x.grad().equal(zeros({4})));
  EXPECT_THROW(x.uniform_(), Error) << "a leaf that wants a gradient";
}

TEST(RandomOrder, IsAPermutationOfEachLength) {
  manual_seed(10);
  for (const std::int64_t n : {0, 1, 2, 3, 100}) {
    const Tensor order = randperm(n);
    EXPECT_EQ(order.scalar_type(), kInt64);
    EXPECT_TRUE(std::get<0>(order.sort()).equal(arange(n, TensorOptions(kInt64)))) << n;
  }
  EXPECT_FALSE(randperm(100).equal(randperm(100)));
  EXPECT_EQ(randperm(3, TensorOptions(kFloat32)).scalar_type(), kFloat32);
  EXPECT_THROW(randperm(-1), Error);
  std::map<std::int64_t, int> firsts;
  for (int i = 0; i < 3000; ++i) ++firsts[randperm(3)[0].item<std::int64_t>()];
  for (const std::int64_t value : {0, 1, 2}) EXPECT_NEAR(firsts[value], 1000, 150) << value;
}

TEST(Multinomial, DrawsByWeightWithAndWithoutReplacement) {
  manual_seed(11);
  const Tensor weights = tensor({{0., 1., 3., 0.}, {2., 0., 0., 6.}});
  const Tensor drawn = weights.multinomial(4000, /*replacement=*/true);
  ASSERT_EQ(drawn.sizes().vec(), (std::vector<std::int64_t>{2, 4000}));
  for (const std::int64_t row : {0, 1}) {
    for (const std::int64_t category : {0, 1, 2, 3}) {
      EXPECT_NEAR(mean_of(drawn[row].eq(category)), weights[row][category].item<double>() / (row == 0 ? 4 : 8), 0.03)
          << row << ", " << category;
    }
  }
  int heavy_first = 0;
  for (int i = 0; i < 2000; ++i) {
    const Tensor pair = weights.multinomial(2);
    ASSERT_EQ(pair.sizes().vec(), (std::vector<std::int64_t>{2, 2}));
    ASSERT_EQ(pair[0].sum().item<std::int64_t>(), 3) << "1 and 2, each once";
    ASSERT_EQ(pair[1].sum().item<std::int64_t>(), 3) << "0 and 3, each once";
    heavy_first += pair[0][0].item<std::int64_t>() == 2 ? 1 : 0;
  }
  EXPECT_NEAR(heavy_first / 2000., 0.75, 0.04);
  const Tensor line = tensor({0., 5., 0.});
  EXPECT_EQ(line.multinomial(1).sizes().vec(), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(line.multinomial(1)[0].item<std::int64_t>(), 1);
  EXPECT_TRUE(line.multinomial(7, true).eq(1).all().item<bool>());
  EXPECT_EQ(tensor({1., 1.}).multinomial(2).sum().item<std::int64_t>(), 1);
}

TEST(Multinomial, RefusesWhatIsNoDistribution) {
  const Tensor weights = tensor({1., 2., 3.});
  EXPECT_THROW(weights.multinomial(0), Error);
  EXPECT_THROW(weights.multinomial(4), Error);
  EXPECT_NO_THROW(weights.multinomial(4, true));
  EXPECT_NO_THROW(weights.multinomial(3));
  EXPECT_THROW(ones({2, 2, 2}).multinomial(1), Error);
  EXPECT_THROW(tensor({1, 2}).multinomial(1), Error);
  for (const double wrong : {-1., double(NAN), double(INFINITY)})
    EXPECT_THROW(tensor({1., wrong}).multinomial(1), Error) << wrong;
  EXPECT_THROW(zeros({3}).multinomial(1), Error);
  EXPECT_THROW(tensor({{1., 1.}, {0., 0.}}).multinomial(1), Error);
}

// --- dropout --------------------------------------------------------------------------------------------------------

using Drop = std::function<Tensor(const Tensor&, double, bool)>;
using DropInPlace = std::function<Tensor&(Tensor&, double, bool)>;

TEST(Dropout, KeepsEverythingWhenItDoesNotTrainOrDropsNothingAndNothingAtOne) {
  const Tensor x = arange(1, 13, TensorOptions(kFloat32)).view({2, 2, 3});
  for (const Drop& drop :
       {Drop(&dropout), Drop(&feature_dropout), Drop(&alpha_dropout), Drop(&feature_alpha_dropout)}) {
    EXPECT_TRUE(drop(x, 0.5, false).equal(x));
    EXPECT_TRUE(drop(x, 0, true).equal(x));
    EXPECT_TRUE(drop(x, 1, true).equal(zeros_like(x)));
    EXPECT_EQ(x.sum().item<float>(), 78) << "the input is left as it was";
    EXPECT_THROW(drop(x, -0.01, true), Error);
    EXPECT_THROW(drop(x, 1.01, false), Error);
    EXPECT_EQ(drop(x.narrow(0, 0, 0), 0.5, true).numel(), 0);
  }
  EXPECT_THROW(feature_dropout(ones({3}), 0.5, true), Error);
  EXPECT_NO_THROW(feature_dropout(ones({3, 2}), 0.5, true));
}

TEST(Dropout, ZeroesAShareAndScalesTheOthersSoThatTheMeanStays) {
  manual_seed(12);
  for (const double p : {0.2, 0.5, 0.8}) {
    const Tensor x = ones({kMany}, requires_grad());
    const Tensor y = dropout(x, p, true);
    const Tensor is_zero = y.eq(0);
    EXPECT_NEAR(mean_of(is_zero), p, 0.02);
    EXPECT_TRUE(y.masked_select(is_zero.logical_not()).allclose(full({1}, 1 / (1 - p))));
    y.sum().backward();
    EXPECT_TRUE(x.grad().equal(y.detach())) << "the gradient passes where the value does";
  }
}

TEST(Dropout, OfFeaturesTakesOrLeavesAChannelAsAWhole) {
  manual_seed(13);
  const Tensor y = feature_dropout(ones({100, 40, 3, 2}), 0.25, true);
  const Tensor first = y.select(3, 0).select(2, 0);
  EXPECT_TRUE(y.equal(first.unsqueeze(2).unsqueeze(3).expand({100, 40, 3, 2})));
  EXPECT_NEAR(mean_of(first.eq(0)), 0.25, 0.03);
  EXPECT_GT(deviation_of(first.mean(1)), 0) << "samples differ";
  EXPECT_GT(deviation_of(first.mean(0)), 0) << "channels differ";
}

TEST(Dropout, OfSelfNormalisingNetworksKeepsMeanAndDeviation) {
  manual_seed(14);
  for (const double p : {0.1, 0.4}) {
    const Tensor x = randn({kMany});
    const Tensor y = alpha_dropout(x, p, true);
    EXPECT_NEAR(mean_of(y), 0, 0.03) << p;
    EXPECT_NEAR(deviation_of(y), 1, 0.03) << p;
    // A dropped element becomes -1.758 and is then scaled and moved as all are.
    const double alpha = 1.7580993408473766, a = 1 / std::sqrt((1 - p) * (1 + p * alpha * alpha));
    const Tensor dropped = y.sub(x.mul(a).add(alpha * a * p)).abs().gt(1e-5);
    EXPECT_NEAR(mean_of(dropped), p, 0.02);
    EXPECT_TRUE(y.masked_select(dropped).allclose(full({1}, a * (-alpha + alpha * p)), 1e-4, 1e-5));
    const Tensor channels = feature_alpha_dropout(ones({50, 20, 4}), p, true);
    EXPECT_TRUE(channels.equal(channels.narrow(2, 0, 1).expand({50, 20, 4})));
  }
}

TEST(Dropout, InPlaceIsTheSame) {
  const std::vector<std::pair<Drop, DropInPlace>> forms{{&dropout, &dropout_},
                                                        {&feature_dropout, &feature_dropout_},
                                                        {&alpha_dropout, &alpha_dropout_},
                                                        {&feature_alpha_dropout, &feature_alpha_dropout_}};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    for (const double p : {0., 0.4, 1.}) {
      const Tensor x = arange(1, 25, TensorOptions(kFloat32)).view({2, 3, 4});
      manual_seed(15);
      const Tensor expected = forms[i].first(x, p, true);
      Tensor y = x.clone();
      manual_seed(15);
      EXPECT_EQ(forms[i].second(y, p, true).data_ptr(), y.data_ptr());
      EXPECT_TRUE(y.equal(expected)) << "form " << i << ", p " << p;
    }
  }
}

}  // namespace
}  // namespace tenon::test
