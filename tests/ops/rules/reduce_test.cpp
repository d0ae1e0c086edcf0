// Reductions, scans and statistics: which dimensions they take, what of nothing, whom gradients go to, what they
// refuse.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Dimensions = std::vector<std::int64_t>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const double kUnbounded = std::numeric_limits<double>::infinity();

Tensor exact(const Tensor& x) { return x.to(kFloat64); }
bool near(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && exact(a).allclose(exact(b), 1e-9, 1e-9, true);
}
/// The gradient at x of the sum over what `made` gives, its elements counting 1, 2, 3, ….
template <class F>
Tensor pulled(const Tensor& at, F made) {
  const Tensor x = exact(at).clone().requires_grad_();
  const Tensor y = made(x);
  y.mul(arange(1, static_cast<double>(y.numel()) + 1, y.options()).view(y.sizes())).sum().backward();
  return x.grad();
}

TEST(ReduceRules, DimensionsAreNamedFromEitherEndAndKeptIfAskedFor) {
  const Tensor x = arange(24.).view({2, 3, 4});
  const auto sizes = [](const Tensor& t) { return t.sizes().vec(); };
  for (const bool keep : {false, true}) {
    const Dimensions want = keep ? Dimensions{2, 1, 4} : Dimensions{2, 4},
                     none = keep ? Dimensions{1, 1, 1} : Dimensions{};
    for (const std::int64_t dim : {1, -2}) {
      EXPECT_EQ(sizes(x.sum(dim, keep)), want);
      EXPECT_EQ(sizes(x.mean(dim, keep)), want);
      EXPECT_EQ(sizes(x.prod(dim, keep)), want);
      EXPECT_EQ(sizes(x.amax(dim, keep)), want);
      EXPECT_EQ(sizes(x.amin(dim, keep)), want);
      EXPECT_EQ(sizes(std::get<0>(x.max(dim, keep))), want);
      EXPECT_EQ(sizes(std::get<1>(x.min(dim, keep))), want);
      EXPECT_EQ(sizes(x.argmax(dim, keep)), want);
      EXPECT_EQ(sizes(x.argmin(dim, keep)), want);
      EXPECT_EQ(sizes(x.any(dim, keep)), want);
      EXPECT_EQ(sizes(x.all(dim, keep)), want);
      EXPECT_EQ(sizes(x.norm(2, dim, keep)), want);
      EXPECT_EQ(sizes(x.var(dim, true, keep)), want);
      EXPECT_EQ(sizes(x.std(dim, true, keep)), want);
      EXPECT_EQ(sizes(x.logsumexp(dim, keep)), want);
      EXPECT_EQ(sizes(std::get<0>(x.median(dim, keep))), want);
      EXPECT_EQ(sizes(std::get<0>(x.mode(dim, keep))), want);
      EXPECT_EQ(sizes(std::get<0>(x.kthvalue(1, dim, keep))), want);
      EXPECT_EQ(sizes(x.quantile(0.5, dim, keep)), want);
      EXPECT_EQ(sizes(std::get<0>(x.aminmax(dim, keep))), want);
    }
    EXPECT_EQ(sizes(x.argmax(std::nullopt, keep)), none);
    EXPECT_EQ(sizes(std::get<1>(x.aminmax(std::nullopt, keep))), none);
    EXPECT_EQ(sizes(x.quantile(0.5, std::nullopt, keep)), none);
    EXPECT_EQ(sizes(x.sum({0, -1}, keep)), (keep ? Dimensions{1, 3, 1} : Dimensions{3}));
  }
  EXPECT_EQ(sizes(x.sum(Dimensions{})), (Dimensions{})) << "none named are all";
  EXPECT_EQ(message_of([&] { x.sum({1, -2}); }), "dim 1 appears multiple times in the list of dims");
  EXPECT_THROW(x.sum(3), Error);
  EXPECT_THROW(x.argmax(-4), Error);
  EXPECT_EQ(tensor(3.).sum(-1).item<double>(), 3);
  EXPECT_EQ(std::get<1>(tensor(3.).max(0)).item<std::int64_t>(), 0);
  EXPECT_EQ(tensor(3.).argmax(-1).item<std::int64_t>(), 0);
  EXPECT_EQ(tensor(3.).prod(0).item<double>(), 3);
}

TEST(ReduceRules, SumsOfIntegersAreWideAndMeansFloating) {
  const Tensor bytes = tensor({200, 100}).to(kUInt8), truth = tensor({true, true, false}), whole = tensor({1, 2});
  EXPECT_EQ(bytes.sum().item<std::int64_t>(), 300);
  EXPECT_EQ(bytes.sum().scalar_type(), kInt64);
  EXPECT_EQ(bytes.prod().item<std::int64_t>(), 20000);
  EXPECT_EQ(truth.sum().item<std::int64_t>(), 2);
  EXPECT_EQ(bytes.sum(kUInt8).item<std::int64_t>(), 44);
  EXPECT_EQ(whole.sum(kFloat64).scalar_type(), kFloat64);
  EXPECT_EQ(tensor({2.9, 2.9}).sum(kInt64).item<std::int64_t>(), 4) << "converted first";
  EXPECT_EQ(tensor({2.9, 2.9}).prod(kInt64).item<std::int64_t>(), 4);
  EXPECT_EQ(whole.mean(kFloat64).item<double>(), 1.5);
  EXPECT_EQ(message_of([&] { whole.mean(); }),
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            "Long");
  EXPECT_THROW(ones({2}).mean(kInt64), Error);
  EXPECT_EQ(bytes.any().scalar_type(), kUInt8) << "of bytes, bytes";
  EXPECT_EQ(bytes.all(0).scalar_type(), kUInt8);
  EXPECT_EQ(whole.any().scalar_type(), kBool);
  EXPECT_TRUE(tensor({{0, 1}, {0, 0}}).any(1).equal(tensor({true, false})));
  EXPECT_TRUE(tensor({{0, 1}, {3, 2}}).all(1).equal(tensor({false, true})));
  EXPECT_EQ(tensor({{0, 1}, {3, 2}}).count_nonzero().item<std::int64_t>(), 3);
  EXPECT_TRUE(tensor({{0, 1}, {3, 2}}).count_nonzero(0).equal(tensor({1, 2})));
  EXPECT_TRUE(tensor({1, 5}).max(tensor({3, 2})).equal(tensor({3, 5})));
  EXPECT_TRUE(tensor({1, 5}).min(tensor({3, 2})).equal(tensor({1, 2})));
}

TEST(ReduceRules, OfNothingOnlyWhatHasANeutralElement) {
  const Tensor none = empty({0}), rows = empty({2, 0}), columns = empty({0, 2});
  EXPECT_EQ(none.sum().item<float>(), 0);
  EXPECT_EQ(none.prod().item<float>(), 1);
  EXPECT_TRUE(std::isnan(none.mean().item<float>()));
  EXPECT_TRUE(rows.sum(1).equal(zeros({2})));
  EXPECT_EQ(columns.amax(1).numel(), 0);
  EXPECT_TRUE(rows.all(1).equal(tensor({true, true})));
  EXPECT_FALSE(none.any().item<bool>());
  EXPECT_EQ(rows.logsumexp(1)[0].item<double>(), -kUnbounded);
  EXPECT_TRUE(std::isnan(none.median().item<float>()));
  const std::string dim = "(): Expected reduction dim 1 to have non-zero size.";
  EXPECT_EQ(message_of<IndexError>([&] { rows.amax(1); }), "amax" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.amin(-1); }), "amin" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.max(1); }), "max" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.min(1); }), "min" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.argmax(1); }), "argmax" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.median(1); }), "median" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.mode(1); }), "mode" + dim);
  EXPECT_EQ(message_of<IndexError>([&] { rows.aminmax(1); }),
            "aminmax: Expected reduction dim 1 to have non-zero size.");
  const std::string whole = "(): Expected reduction dim to be specified for input.numel() == 0.";
  EXPECT_EQ(message_of([&] { rows.max(); }),
            "max" + whole + " Specify the reduction dim with the 'dim' argument. (input has shape [2, 0])");
  EXPECT_EQ(message_of([&] {
              rows.amin({0, 1});
            }),
            "amin" + whole + " Specify the reduction dim with the 'dim' argument. (input has shape [2, 0])");
  EXPECT_EQ(message_of<IndexError>([&] { rows.argmin(); }), "argmin" + whole);
  EXPECT_EQ(message_of([&] { rows.aminmax(); }),
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  EXPECT_EQ(columns.argmax(1).numel(), 0);
  EXPECT_EQ(std::get<0>(columns.max(1)).numel(), 0);
}

TEST(ReduceRules, EqualWinnersShareTheGradientAndTheFirstOfADimensionHasIt) {
  const Tensor x = tensor({{3., 1., 3.}, {2., 2., 2.}});
  EXPECT_TRUE(
      near(pulled(x, [](const Tensor& t) { return t.amax(1); }), exact(tensor({{1.5, 0., 1.5}, {2., 2., 2.}})) / 3));
  EXPECT_TRUE(near(pulled(x,
                          [](const Tensor& t) {
                            return t.amin({0, 1}, true);
                          }),
                   tensor({{0., 1., 0.}, {0., 0., 0.}})));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return t.max(); }), tensor({{0.5, 0., 0.5}, {0., 0., 0.}})));
  EXPECT_TRUE(
      near(pulled(x, [](const Tensor& t) { return std::get<0>(t.max(1)); }), tensor({{1., 0., 0.}, {2., 0., 0.}})));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return std::get<0>(t.min(0, true)); }),
                   tensor({{0., 2., 0.}, {1., 0., 3.}})));
  const Tensor holes = tensor({1., kNone, kNone});
  EXPECT_TRUE(near(pulled(holes, [](const Tensor& t) { return t.max(); }), tensor({0., 0.5, 0.5})));
  EXPECT_TRUE(near(pulled(holes, [](const Tensor& t) { return t.min(); }), tensor({0., 0.5, 0.5})));
  EXPECT_TRUE(near(pulled(tensor(4.), [](const Tensor& t) { return std::get<0>(t.max(0)); }), tensor(1.)));
}

TEST(ReduceRules, TheGradientOfAProductIsThatOfTheOthersZerosOrNot) {
  const Tensor x = tensor({{2., 3., 4.}, {0., 3., 5.}, {0., 0., 5.}});
  const Tensor want = tensor({{12., 8., 6.}, {30., 0., 0.}, {0., 0., 0.}});
  for (const bool keep : {false, true})
    EXPECT_TRUE(near(pulled(x, [&](const Tensor& t) { return t.prod(1, keep); }), want));
  EXPECT_TRUE(near(pulled(tensor({2., 3.}), [](const Tensor& t) { return t.prod(); }), tensor({3., 2.})));
  EXPECT_TRUE(near(pulled(tensor(2.), [](const Tensor& t) { return t.prod(0); }), tensor(1.)));
  EXPECT_EQ(pulled(empty({0}), [](const Tensor& t) { return t.prod(); }).numel(), 0);
}

TEST(ReduceRules, NormsOfEachOrderAndTheirSlopes) {
  const Tensor x = tensor({3., -4., 0.});
  const auto norm = [&](double p) { return x.norm(p).item<double>(); };
  EXPECT_EQ(norm(0), 2);
  EXPECT_EQ(norm(1), 7);
  EXPECT_NEAR(norm(2), 5, 1e-12);
  EXPECT_NEAR(norm(3), std::cbrt(91), 1e-6);
  EXPECT_EQ(norm(kUnbounded), 4);
  EXPECT_EQ(norm(-kUnbounded), 0);
  const auto slope = [&](double p) { return pulled(x, [p](const Tensor& t) { return t.norm(p); }); };
  EXPECT_TRUE(near(slope(0), tensor({0., 0., 0.})));
  EXPECT_TRUE(near(slope(1), tensor({1., -1., 0.})));
  EXPECT_TRUE(slope(2).allclose(exact(tensor({0.6, -0.8, 0.})), 1e-6));
  EXPECT_TRUE(slope(3).allclose(exact(tensor({9., -16., 0.})) / std::pow(91, 2. / 3), 1e-6));
  EXPECT_TRUE(
      slope(1.5).allclose(exact(tensor({std::sqrt(3.), -2., 0.})) / std::pow(std::pow(3, 1.5) + 8, 1. / 3), 1e-6));
  EXPECT_TRUE(near(slope(kUnbounded), tensor({0., -1., 0.})));
  EXPECT_TRUE(near(pulled(tensor({2., -2.}), [](const Tensor& t) { return t.norm(kUnbounded); }), tensor({0.5, -0.5})));
  EXPECT_TRUE(near(pulled(zeros({2}), [](const Tensor& t) { return t.norm(); }), zeros({2})));
  EXPECT_TRUE(near(pulled(tensor({{3., 4.}, {0., 0.}}), [](const Tensor& t) { return t.norm(2, 1); }),
                   exact(tensor({{3., 4.}, {0., 0.}})) / 5));
  EXPECT_EQ(tensor({{3., 4.}}).norm(std::nullopt, 1).item<double>(), 5) << "2 unless an order is given";
  EXPECT_EQ(message_of([] { tensor({1}).norm(); }),
            "norm(): input dtype should be either floating point or complex. Got Long instead.");
}

TEST(ReduceRules, VariancesDivideByOneLessUnlessBiased) {
  const Tensor x = exact(tensor({{1., 2., 6.}, {4., 4., 4.}}));
  EXPECT_TRUE(near(x.var(1), tensor({7., 0.})));
  EXPECT_TRUE(near(x.var(1, false), exact(tensor({14., 0.})) / 3));
  EXPECT_TRUE(near(x.std(1), exact(tensor({7., 0.})).sqrt()));
  EXPECT_TRUE(near(x.std(OptionalIntArrayRef(std::int64_t{1}), false), (exact(tensor({14., 0.})) / 3).sqrt()));
  EXPECT_TRUE(near(x.var(), x.view({-1}).var(0)));
  EXPECT_TRUE(near(x.var(false), x.view({-1}).var(0) * 5 / 6));
  EXPECT_TRUE(near(x.std(false), x.var(false).sqrt()));
  EXPECT_TRUE(near(std::get<0>(var_mean(x, 1)), x.var(1)) && near(std::get<1>(var_mean(x, 1)), x.mean(1)));
  EXPECT_TRUE(near(std::get<0>(var_mean(x, false)), x.var(false)) && near(std::get<1>(var_mean(x, false)), x.mean()));
  EXPECT_TRUE(near(std::get<0>(std_mean(x, 1)), x.std(1)) && near(std::get<1>(std_mean(x, 1)), x.mean(1)));
  EXPECT_TRUE(near(std::get<0>(std_mean(x, true)), x.std()) && near(std::get<1>(std_mean(x, true)), x.mean()));
  const Dimensions zero{0};
  const OptionalIntArrayRef first(zero);
  EXPECT_TRUE(near(std::get<0>(std_mean(x, first, false, true)), x.std(first, false, true)));
  EXPECT_TRUE(near(std::get<1>(var_mean(x, first, false, true)), x.mean(0, true)));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return t.var(1); }), tensor({{-2., -1., 3.}, {0., 0., 0.}})));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return t.var(1, false); }),
                   exact(tensor({{-4., -2., 6.}, {0., 0., 0.}})) / 3));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return t.std(1); }),
                   exact(tensor({{-1., -0.5, 1.5}, {0., 0., 0.}})) / std::sqrt(7.)));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return t.var(1).mul_(3); }), tensor({{-6., -3., 9.}, {0., 0., 0.}})))
      << "a variance is not read again";
  EXPECT_THROW(pulled(x, [](const Tensor& t) { return t.std(1).mul_(3); }), Error) << "a deviation is";
  EXPECT_TRUE(std::isnan(tensor(1.).var().item<double>()));
  EXPECT_EQ(message_of([] {
              tensor({1, 2}).var();
            }),
            "std and var only support floating point and complex dtypes, got Long");
}

TEST(ReduceRules, SummedToASizeWhatWasBroadcast) {
  const Tensor x = arange(12.).view({2, 2, 3});
  EXPECT_TRUE(x.sum_to_size({2, 2, 3}).is_same(x));
  EXPECT_TRUE(x.sum_to_size({3}).equal(x.sum({0, 1})));
  EXPECT_TRUE(x.sum_to_size({2, 1}).equal(x.sum({0, 2}).view({2, 1})));
  EXPECT_TRUE(x.sum_to_size({1, 2, 1}).equal(x.sum({0, 2}, true)));
  EXPECT_TRUE(x.sum_to_size({}).equal(x.sum()));
  EXPECT_EQ(ones({1, 1, 3}).sum_to_size({3}).sizes().vec(), (Dimensions{3}));
  EXPECT_EQ(message_of([&] { x.sum_to_size({2}); }), "size {[2]} is not expandable to size {[2, 2, 3]}.");
}

TEST(ScanRules, RunningSumsAndProductsHaveTheDtypeOfSums) {
  const Tensor bytes = tensor({200, 100}).to(kUInt8);
  EXPECT_TRUE(bytes.cumsum(0).equal(tensor({200, 300})));
  EXPECT_TRUE(bytes.cumprod(0).equal(tensor({200, 20000})));
  EXPECT_TRUE(bytes.cumsum(0, kFloat64).equal(exact(tensor({200., 300.}))));
  EXPECT_TRUE(bytes.clone().cumsum_(0).equal(tensor({200, 44}).to(kUInt8)));
  EXPECT_TRUE(tensor({2, 3}).cumprod_(-1).equal(tensor({2, 6})));
  EXPECT_EQ(message_of([&] { bytes.clone().cumsum_(0, kInt64); }),
            "Bad in-place call: input tensor dtype unsigned char and output tensor dtype long int should match");
  EXPECT_THROW(bytes.clone().cumprod_(0, kInt64), Error);
  EXPECT_NO_THROW(bytes.clone().cumsum_(0, kUInt8));
  EXPECT_TRUE(near(pulled(ones({3}), [](const Tensor& t) { return t.cumsum(0); }), tensor({6., 5., 3.})));
  EXPECT_TRUE(near(pulled(ones({2, 2}), [](const Tensor& t) { return t.cumsum(0); }), tensor({{4., 6.}, {3., 4.}})));
  EXPECT_TRUE(
      near(pulled(tensor({2., 3., 4.}), [](const Tensor& t) { return t.cumprod(0); }), tensor({43., 28., 18.})));
  EXPECT_TRUE(near(pulled(tensor({2., 0., 4.}), [](const Tensor& t) { return t.cumprod(0); }), tensor({1., 28., 0.})));
  EXPECT_TRUE(
      near(pulled(tensor({0., 3., 0., 5.}), [](const Tensor& t) { return t.cumprod(0); }), tensor({7., 0., 0., 0.})));
  EXPECT_TRUE(near(pulled(tensor({{0., 2.}, {3., 4.}}), [](const Tensor& t) { return t.cumprod(1); }),
                   tensor({{5., 0.}, {19., 12.}})));
  EXPECT_TRUE(near(pulled(tensor(2.), [](const Tensor& t) { return t.cumprod(0); }), tensor(1.)));
  EXPECT_TRUE(near(pulled(tensor(2.), [](const Tensor& t) { return t.logcumsumexp(0); }), tensor(1.)));
  EXPECT_THROW(tensor({1}).logcumsumexp(0), Error);
}

TEST(ScanRules, TheRunningExtremeAndWhereItStands) {
  const Tensor x = tensor({2., 1., 2., 3., 0.});
  const auto [high, high_at] = x.cummax(0);
  const auto [low, low_at] = x.cummin(-1);
  EXPECT_TRUE(high.equal(tensor({2., 2., 2., 3., 3.})));
  EXPECT_TRUE(high_at.equal(tensor({0, 0, 2, 3, 3})));
  EXPECT_TRUE(low.equal(tensor({2., 1., 1., 1., 0.})));
  EXPECT_TRUE(low_at.equal(tensor({0, 1, 1, 1, 4})));
  EXPECT_TRUE(near(pulled(x, [](const Tensor& t) { return std::get<0>(t.cummax(0)); }), tensor({3., 0., 3., 9., 0.})));
}

TEST(CurveRules, AreasAndDifferencesTakeNoTruthAndFittingPoints) {
  const Tensor y = tensor({1., 2., 4.}), x = tensor({0., 1., 3.});
  EXPECT_EQ(trapezoid(y, x).item<double>(), 7.5);
  EXPECT_EQ(trapezoid(y, 2).item<double>(), 9);
  EXPECT_TRUE(cumulative_trapezoid(y, x).equal(tensor({1.5, 7.5})));
  EXPECT_TRUE(cumulative_trapezoid(y, 2).equal(tensor({3., 9.})));
  EXPECT_EQ(trapezoid(empty({0, 3}), x, 0).sizes().vec(), (Dimensions{3}));
  EXPECT_EQ(trapezoid(empty({0, 3}), 1, 0).sizes().vec(), (Dimensions{3}));
  const Tensor truth = tensor({true, false, true});
  EXPECT_EQ(message_of([&] { trapezoid(truth, x); }),
            "trapezoid: received a bool input for `y`, but bool is not supported");
  EXPECT_EQ(message_of([&] { trapezoid(y, truth); }),
            "trapezoid: received a bool input for `x`, but bool is not supported");
  EXPECT_EQ(message_of([&] { cumulative_trapezoid(truth, 1); }),
            "cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
  EXPECT_THROW(trapezoid(truth, 1), Error);
  EXPECT_THROW(cumulative_trapezoid(truth, x), Error);
  EXPECT_EQ(message_of([&] {
              trapezoid(y, tensor({1., 2.}));
            }),
            "trapezoid: There must be one `x` value for each sample point, but got 2 values for 3 points");
  EXPECT_TRUE(y.diff().equal(tensor({1., 2.})));
  EXPECT_TRUE(y.diff(2).equal(tensor({1.})));
  EXPECT_EQ(y.diff(7).numel(), 0);
  EXPECT_TRUE(y.diff(0).equal(y));
  EXPECT_FALSE(y.diff(0).is_alias_of(y));
  EXPECT_TRUE(y.diff(1, -1, tensor({0.}), tensor({5.})).equal(tensor({1., 1., 2., 1.})));
  EXPECT_TRUE(truth.diff().equal(tensor({true, true})));
  EXPECT_EQ(message_of([] { tensor(1.).diff(); }), "diff expects input to be at least one-dimensional");
  EXPECT_EQ(message_of([&] { y.diff(-1); }), "order must be non-negative but got -1");
  EXPECT_EQ(message_of([&] { y.diff(1, 0, tensor({{1.}})); }),
            "diff expects prepend or append to be the same dimension as input");
  EXPECT_EQ(
      message_of([&] {
        y.view({1, 3}).diff(1, 1, ones({2, 1}));
      }),
      "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
      "dimension; input.size(0) = 1, but got tensor.size(0) = 2");
}

TEST(SortRules, ATopIsAsLongAsTheDimensionAtMost) {
  const Tensor x = tensor({3., 1., 2.});
  EXPECT_TRUE(std::get<0>(x.topk(3)).equal(tensor({3., 2., 1.})));
  EXPECT_EQ(std::get<0>(x.topk(0)).numel(), 0);
  EXPECT_TRUE(std::get<1>(x.topk(2, 0, false)).equal(tensor({1, 2})));
  EXPECT_EQ(message_of([&] { x.topk(4); }), "selected index k out of range: k = 4 of 3");
  EXPECT_EQ(message_of([&] { x.topk(-1); }), "selected index k out of range: k = -1 of 3");
  EXPECT_EQ(message_of([] { tensor(1.).topk(2); }), "selected index k out of range: k = 2 of 1");
  EXPECT_TRUE(x.argsort(0, true).equal(tensor({0, 2, 1})));
  EXPECT_EQ(message_of([&] { x.kthvalue(0); }),
            "kthvalue(): selected number k out of range for dimension 0: k = 0 of 3");
  EXPECT_EQ(message_of([&] { x.kthvalue(4); }),
            "kthvalue(): selected number k out of range for dimension 0: k = 4 of 3");
  EXPECT_EQ(std::get<0>(x.kthvalue(3)).item<double>(), 3);
  const auto [value, place] = tensor({true, false, true}).mode();
  EXPECT_TRUE(value.equal(tensor(true)));
  EXPECT_EQ(place.item<std::int64_t>(), 2);
  EXPECT_EQ(message_of([] { tensor({true}).median(0); }), "\"median\" not implemented for 'Bool'");
}

}  // namespace
}  // namespace tenon::test
