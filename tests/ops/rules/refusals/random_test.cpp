// What draws of random numbers and factories refuse, word for word, and that they take what lies just inside.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "support/refusal.h"

namespace tenon {
namespace {

Tensor of(Dtype dtype) { return zeros({4}, dtype); }

TEST(RandomRefusals, ARangeThatIsNoneIsNamedWithItsBounds) {
  EXPECT_EQ(refusal_of([] { of(kFloat32).uniform_(1, 0.5); }),
            "uniform_ expects to return a [from, to) range, but found from=1.000000 > to=0.500000");
  EXPECT_EQ(refusal_of([] { EXPECT_TRUE(of(kFloat32).uniform_(2, 2).equal(full({4}, 2.))); }), "");
  EXPECT_EQ(refusal_of([] { of(kFloat32).normal_(0, -0.5); }), "normal expects std >= 0.0, but found std -0.500000");
  EXPECT_EQ(refusal_of([] { EXPECT_TRUE(of(kFloat32).normal_(3, 0).equal(full({4}, 3.))); }), "");
  EXPECT_EQ(refusal_of([] { of(kFloat32).exponential_(0); }),
            "exponential_ expects lambda > 0.0, but found lambda=0.000000");
  EXPECT_EQ(refusal_of([] { of(kFloat32).exponential_(1e-3); }), "");
  for (const double p : {-0.25, 1.25}) {
    EXPECT_EQ(refusal_of([&] { of(kFloat32).bernoulli_(p); }),
              "bernoulli_ expects p to be in [0, 1], but got p=" + std::to_string(p));
  }
  EXPECT_NE(refusal_of([] { of(kFloat32).bernoulli_(std::nan("")); }), "");
  for (const double p : {0., 1.}) {
    EXPECT_EQ(refusal_of([&] { EXPECT_TRUE(of(kFloat32).bernoulli_(p).equal(full({4}, p))); }), "");
  }
}

TEST(RandomRefusals, RealDrawsAreOfFloatingTensors) {
  const std::string of_long = "\" not implemented for 'Long': it needs a floating point dtype";
  EXPECT_EQ(refusal_of([] { of(kInt64).uniform_(); }), "\"uniform_" + of_long);
  EXPECT_EQ(refusal_of([] { of(kInt64).normal_(); }), "\"normal_" + of_long);
  EXPECT_EQ(refusal_of([] { of(kInt64).exponential_(); }), "\"exponential_" + of_long);
  EXPECT_EQ(refusal_of([] { multinomial(of(kInt64), 1); }), "\"multinomial" + of_long);
}

TEST(RandomRefusals, WholeNumbersFitTheirDtype) {
  EXPECT_EQ(refusal_of([] { of(kInt64).random_(3, 3); }),
            "random_ expects 'from' to be less than 'to', but got from=3 >= to=3");
  EXPECT_EQ(refusal_of([] { of(kInt64).random_(0); }),
            "random_ expects 'from' to be less than 'to', but got from=0 >= to=0");
  EXPECT_EQ(refusal_of([] { EXPECT_TRUE(of(kInt64).random_(3, 4).equal(full({4}, 3, kInt64))); }), "");
  struct Limits {
    Dtype dtype;
    const char* name;
    std::int64_t low, high;
  };
  for (const Limits& one : {Limits{kBool, "bool", 0, 1}, Limits{kUInt8, "unsigned char", 0, 255},
                            Limits{kInt8, "signed char", -128, 127}, Limits{kInt16, "short", -32768, 32767},
                            Limits{kInt32, "int", -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1}}) {
    EXPECT_EQ(refusal_of([&] { of(one.dtype).random_(one.low, one.high + 1); }), "") << one.name;
    EXPECT_EQ(refusal_of([&] { of(one.dtype).random_(one.low - 1, one.high); }),
              std::string("from is out of bounds for ") + one.name + ": " + std::to_string(one.low - 1));
    EXPECT_EQ(refusal_of([&] { of(one.dtype).random_(one.low, one.high + 2); }),
              std::string("to - 1 is out of bounds for ") + one.name + ": " + std::to_string(one.high + 1));
    const std::string beyond = std::to_string(one.high + 1);
    EXPECT_EQ(refusal_of([&] { of(one.dtype).random_(one.high + 1, std::optional<std::int64_t>()); }),
              std::string("from is out of bounds for ") + one.name + ": " + beyond);
    EXPECT_EQ(refusal_of([&] { of(one.dtype).random_(one.high + 1, one.high + 1); }),
              "random_ expects 'from' to be less than 'to', but got from=" + beyond + " >= to=" + beyond)
        << "of two bounds their order comes first";
  }
  EXPECT_EQ(refusal_of([] { of(kFloat32).random_(-1000, 100000); }), "") << "a floating one holds any";
}

TEST(RandomRules, WholeNumbersOfADtypeReachItsEndsAndNoFurther) {
  manual_seed(3);
  const auto highest = [](Dtype dtype) {
    const Tensor drawn = zeros({20000}, dtype).random_();
    EXPECT_GE(drawn.to(kFloat64).min().item<double>(), 0);
    return drawn.to(kFloat64).max().item<double>();
  };
  EXPECT_EQ(highest(kBool), 1);
  EXPECT_EQ(highest(kUInt8), 255);
  EXPECT_EQ(highest(kInt8), 127);
  EXPECT_EQ(highest(kBFloat16), 256);
  EXPECT_EQ(highest(kFloat16), 2048);
  for (const auto& [dtype, bits] :
       {std::pair(kInt16, 15), std::pair(kInt32, 31), std::pair(kFloat32, 24), std::pair(kFloat64, 53)}) {
    const double top = highest(dtype), end = std::ldexp(1., bits);
    EXPECT_LE(top, end);
    EXPECT_GT(top, 0.99 * end);
  }
  EXPECT_GT(zeros({100}, kInt64).random_().max().item<std::int64_t>(), std::int64_t{1} << 60);
}

TEST(RandomRefusals, APermutationHasALengthAndAChoiceHasChances) {
  EXPECT_EQ(refusal_of([] { randperm(-1); }), "n must be non-negative, got -1");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(randperm(0).numel(), 0); }), "");
  EXPECT_EQ(refusal_of([] { multinomial(ones({3}), 0, true); }), "cannot sample n_sample <= 0 samples");
  for (const auto& sizes : {std::vector<std::int64_t>{}, {1, 1, 3}}) {
    EXPECT_EQ(refusal_of([&] { multinomial(ones(sizes), 1); }),
              "prob_dist must be 1 or 2 dim, got " + std::to_string(sizes.size()));
  }
  EXPECT_EQ(refusal_of([] {
              multinomial(ones({2, 3}), 4, false);
            }),
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement (4 > 3)");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(multinomial(ones({2, 3}), 3, false).sizes(), IntArrayRef({2, 3})); }), "");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(multinomial(ones({2, 3}), 4, true).sizes(), IntArrayRef({2, 4})); }), "");
  for (const double bad : {-0.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(refusal_of([&] {
                multinomial(tensor({1., bad, 1.}), 1);
              }),
              "probability tensor contains either `inf`, `nan` or element < 0");
  }
  EXPECT_EQ(refusal_of([] {
              multinomial(tensor({{1., 1.}, {0., 0.}}), 1);
            }),
            "invalid multinomial distribution (sum of probabilities <= 0)");
}

TEST(RandomRules, AChoiceTakesWhatHasAChanceAloneAndWithoutReplacementEachOnce) {
  manual_seed(5);
  const Tensor chances = tensor({0., 2., 0., 1., 0.});
  const Tensor with = multinomial(chances, 2000, true);
  EXPECT_TRUE(with.eq(1).logical_or(with.eq(3)).all().item<bool>());
  const double share = with.eq(1).sum().item<double>() / 2000;
  EXPECT_NEAR(share, 2. / 3, 0.05);
  for (int i = 0; i < 20; ++i) {
    const Tensor both = std::get<0>(multinomial(chances, 2, false).sort(0));
    EXPECT_TRUE(both.equal(tensor({1, 3})));
    EXPECT_TRUE(multinomial(tensor({{0., 1.}, {1., 0.}}), 3, true).equal(tensor({{1, 1, 1}, {0, 0, 0}})));
    const Tensor all = std::get<0>(multinomial(ones({2, 6}), 6, false).sort(1));
    EXPECT_TRUE(all.equal(arange(6).expand({2, 6})));
  }
}

TEST(RandomRefusals, DropoutHasAProbabilityAndFeaturesHaveChannels) {
  for (const double p : {-0.5, 1.5}) {
    const std::string text =
        "dropout probability has to be between 0 and 1, but got " + std::string(p < 0 ? "-0.5" : "1.5");
    for (const bool train : {true, false}) {
      EXPECT_EQ(refusal_of([&] { dropout(ones({2}), p, train); }), text);
      EXPECT_EQ(refusal_of([&] { feature_dropout(ones({2, 2}), p, train); }), text);
      EXPECT_EQ(refusal_of([&] { alpha_dropout(ones({2}), p, train); }), text);
      EXPECT_EQ(refusal_of([&] { feature_alpha_dropout(ones({2, 2}), p, train); }), text);
    }
  }
  EXPECT_EQ(refusal_of([] { feature_dropout(ones({4}), 0.5, true); }),
            "Feature dropout requires at least 2 dimensions in the input");
  EXPECT_EQ(refusal_of([] { feature_dropout(ones({4, 2}), 0.5, true); }), "");
  for (const double p : {0., 1.}) {
    EXPECT_EQ(refusal_of([&] { EXPECT_TRUE(dropout(ones({3}), p, true).equal(full({3}, 1 - p))); }), "");
    EXPECT_TRUE(dropout(ones({3}), p, false).equal(ones({3})));
  }
}

TEST(FactoryRefusals, ThereIsOneLayout) {
  EXPECT_EQ(refusal_of([] { gelu(ones({2}), "sigmoid"); }),
            "approximate argument must be either none or tanh, got 'sigmoid'");
  EXPECT_EQ(refusal_of([] { gelu(ones({2}, kInt64)); }),
            "\"GeluKernelImpl\" not implemented for 'Long': it needs a floating point dtype");
}

}  // namespace
}  // namespace tenon
