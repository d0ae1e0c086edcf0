// Special functions and covariances, copies with one view written: PyTorch 2.15's values and slopes, and their rules.
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "slopes.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tenon::test {
namespace {

struct Point {
  double x, y, slope;
};

void expect_same(double got, double want, double at, const char* what) {
  if (std::isfinite(want) && std::isfinite(got)) {
    EXPECT_NEAR(got, want, 1e-12 * std::abs(want) + 1e-300) << what << " at " << at;
  } else {
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
        << what << " at " << at << ": " << got << ", not " << want;
  }
}

/// Value and slope at each point; the reference is torch 2.15.0 in float64.
template <class Function>
void expect_points(Function function, const std::vector<Point>& points) {
  for (const Point& point : points) {
    const Tensor x = tensor({point.x}, TensorOptions(kFloat64)).requires_grad_(true);
    const Tensor y = function(x);
    expect_same(y.item<double>(), point.y, point.x, "value");
    expect_same(autograd::grad({y.sum()}, {x})[0].item<double>(), point.slope, point.x, "slope");
  }
}

TEST(Special, ErfcxHasPyTorchsValuesAndSlopes) {
  expect_points([](const Tensor& x) { return special::erfcx(x); }, {{-kInf64, kInf64, -kInf64},
                                                                    {-30, kInf64, -kInf64},
                                                                    {-5, 144009798674.661, -1440097986747.739},
                                                                    {-1, 5.008980080762283, -11.14633932862008},
                                                                    {-0.25, 1.358642370104722, -1.807700352147873},
                                                                    {0, 1, -1.128379167095513},
                                                                    {0.25, 0.770346547730997, -0.7432058932300141},
                                                                    {1, 0.427583576155807, -0.2732120147838986},
                                                                    {3.5, 0.1552936556088943, -0.04132357783325236},
                                                                    {4.5, 0.1224848042738414, -0.02601592863093982},
                                                                    {30, 0.01879588886141675, -0.0006258354105073138},
                                                                    {10000000000, 5.641895835477563e-11, 0},
                                                                    {kInf64, 0, kNaN64},
                                                                    {kNaN64, kNaN64, kNaN64}});
}
// At -infinity, and far below 0, where libtorch's slope is an exponential of a difference of squares, the limit counts.
TEST(Special, LogNdtrHasPyTorchsValuesAndTrueSlopes) {
  expect_points([](const Tensor& x) { return special::log_ndtr(x); },
                {{-kInf64, -kInf64, kInf64},
                 {-100000, -5000000012.431865, 100000.00001},
                 {-40, -804.6084420137539, 40.02496884720726},
                 {-5, -15.06499839398873, 5.18650396712585},
                 {-1, -1.841021645009264, 1.525135276160982},
                 {-0.25, -0.913061764811135, 0.9635539794164039},
                 {0, -0.6931471805599453, 0.7978845608028654},
                 {0.25, -0.5129840754094305, 0.6458393710168173},
                 {1, -0.1727537790234498, 0.2875999709391784},
                 {5, -2.866516129637633e-07, 1.486719940904905e-06},
                 {40, -0, 0},
                 {kInf64, -0, 0},
                 {kNaN64, kNaN64, kNaN64}});
}
TEST(Special, NdtriHasPyTorchsValuesAndSlopes) {
  expect_points([](const Tensor& x) { return special::ndtri(x); }, {{-0.5, kNaN64, kNaN64},
                                                                    {0, -kInf64, kInf64},
                                                                    {1e-300, -37.0470962993612, 2.697304465042887e+298},
                                                                    {1e-10, -6.361340902404056, 1535723698.196382},
                                                                    {0.01, -2.326347874040841, 37.52043615729513},
                                                                    {0.02, -2.053748910631823, 20.65341801805598},
                                                                    {0.25, -0.6744897501960817, 3.146865080561092},
                                                                    {0.5, 0, 2.506628274631},
                                                                    {0.75, 0.6744897501960817, 3.146865080561092},
                                                                    {0.99, 2.326347874040841, 37.52043615729513},
                                                                    {1, kInf64, kInf64},
                                                                    {1.5, kNaN64, kNaN64},
                                                                    {kNaN64, kNaN64, kNaN64}});
}
TEST(Special, MvlgammaHasPyTorchsValuesAndSlopes) {
  expect_points([](const Tensor& x) { return special::multigammaln(x, 3); },
                {{1.25, 3.11012646848166, -5.540767946539003},
                 {2, 1.596312591138855, -0.1179413558244895},
                 {5.5, 11.30669919758321, 4.50608174337308},
                 {100, 1072.225768541404, 13.78534679670073}});
  expect_error([] { mvlgamma(ones({2}), 0); }, "p has to be greater than or equal to 1");
  expect_error([] { mvlgamma(ones({2}, kBool), 1); }, "may not be a boolean tensor");
  expect_tensor(ones({2}).mvlgamma_(1), {2}, kFloat32, {0, 0});
}
TEST(Special, Xlog1pyIsZeroAtZeroUnlessTheOtherIsNaN) {
  const std::vector<double> a{0, 0, 0, 1, 2, -1, 0.5, 0, kNaN64, 0}, b{0, -1, -2, 1, -0.5, 3, -1, kInf64, 0, kNaN64};
  const Tensor x = tensor(a, TensorOptions(kFloat64)).requires_grad_(true);
  const Tensor y = tensor(b, TensorOptions(kFloat64)).requires_grad_(true);
  const Tensor z = special::xlog1py(x, y);
  const std::vector<Tensor> slopes = autograd::grad({z.sum()}, {x, y});
  const std::vector<double> value{0, 0,      0,     0.6931471805599453, -1.386294361119891, -1.386294361119891, -kInf64,
                                  0, kNaN64, kNaN64},
      by_x{0, 0, 0, 0.6931471805599453, -0.6931471805599453, 1.386294361119891, -kInf64, kInf64, 0, kNaN64},
      by_y{0, kNaN64, -0, 0.5, 4, -0.25, kInf64, 0, kNaN64, kNaN64};
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    expect_same(z[at].item<double>(), value[i], a[i], "value");
    expect_same(slopes[0][at].item<double>(), by_x[i], a[i], "slope by x");
    expect_same(slopes[1][at].item<double>(), by_y[i], a[i], "slope by y");
  }
  expect_tensor(special::xlog1py(ones({1}, kLong), 1), {1}, kFloat32, {std::log(2.)});
  expect_tensor(special::xlog1py(2, zeros({2})), {2}, kFloat32, {0, 0});
}
TEST(Special, EveryNameOfTheListIsThatFunction) {
  const Tensor x = tensor({0.25, 0.75});
  EXPECT_TRUE(equal(special_expit(x), sigmoid(x)));
  EXPECT_TRUE(equal(special_gammaln(x), lgamma(x)));
  EXPECT_TRUE(equal(special::psi(x), digamma(x)));
  EXPECT_TRUE(equal(special_psi(x), digamma(x)));
  EXPECT_TRUE(equal(special_logit(x), logit(x)));
  EXPECT_TRUE(equal(special_round(x, 1), round(x, 1)));
  EXPECT_TRUE(equal(special_softmax(x, 0), softmax(x, 0)));
  EXPECT_TRUE(equal(special_polygamma(1, x), polygamma(1, x)));
}
TEST(Special, SixteenBitsAreRoundedOnce) {
  const Tensor x = tensor({-3., -0.5, 0.25, 2.}).to(kBFloat16);
  EXPECT_TRUE(equal(special_erfcx(x), special_erfcx(x.to(kFloat64)).to(kBFloat16)));
  EXPECT_TRUE(equal(special_log_ndtr(x), special_log_ndtr(x.to(kFloat64)).to(kBFloat16)));
}
TEST(Special, ResultsLieAsTheirOperandDoes) {
  const Tensor x = full({2, 3}, 0.25).t();
  for (const Tensor& y : {special_ndtri(x), special_erfcx(x), special_log_ndtr(x), special_xlog1py(x, x)})
    EXPECT_EQ(y.strides(), x.strides());
}
TEST(Special, DigammaOfFloat32KeepsItsDigitsBetweenPoles) {
  const Tensor x = linspace(-30.96, -30.04, 93);
  const Tensor error = (digamma(x) - digamma(x.to(kFloat64))).abs() / digamma(x.to(kFloat64)).abs().clamp_min(1);
  EXPECT_LT(error.max().item<double>(), 2e-6);
}
TEST(Special, ErfcxOfFloat32HasItsSlopeFarAboveZero) {
  const Tensor x = tensor({60000.}).requires_grad_(true);
  EXPECT_NEAR(autograd::grad({special_erfcx(x).sum()}, {x})[0].item<float>() * 1e10, -1.567, 1e-2);
}
TEST(Special, SincHasTheDigitsOfItsSlopeNearZero) {
  const Tensor x = tensor({0.0390625}).requires_grad_(true);
  EXPECT_NEAR(autograd::grad({x.sinc().sum()}, {x})[0].item<float>(), -0.12831704356, 1e-7);
}

TEST(FloatPower, IsOfFloat64) {
  expect_tensor(float_power(tensor({2, 3}, TensorOptions(kInt8)), tensor({0.5, -1.})), {2}, kFloat64,
                {std::sqrt(2.), 1. / 3});
  expect_tensor(float_power(2, tensor({1, -1})), {2}, kFloat64, {2, 0.5});
  expect_tensor(tensor({4., 9.}).float_power(0.5), {2}, kFloat64, {2, 3});
  expect_tensor(tensor({4., 9.}, TensorOptions(kFloat64)).float_power_(2), {2}, kFloat64, {16, 81});
  expect_error([] { ones({2}).float_power_(2); }, "has dtype Float but the operation's result requires dtype Double");
}

TEST(Covariance, HasPyTorchsValues) {
  const Tensor m = tensor({{1., 4., 2., -1.}, {3., -2., 0.5, 1.}, {2., 2., 1., 5.}}, TensorOptions(kFloat64));
  expect_tensor(m.cov(), {3, 3}, kFloat64,
                {4.333333333333333, -2.916666666666667, -2.666666666666667, -2.916666666666667, 4.229166666666667,
                 0.4166666666666667, -2.666666666666667, 0.4166666666666667, 3});
  expect_tensor(cov(m, 0), {3, 3}, kFloat64, {3.25, -2.1875, -2, -2.1875, 3.171875, 0.3125, -2, 0.3125, 2.25});
  const Tensor frequencies = tensor({1, 2, 0, 3}), weights = tensor({0.5, 1., 2., 0.25}, TensorOptions(kFloat64));
  expect_tensor(cov(m, 1, frequencies, weights), {3, 3}, kFloat64,
                {5.907692307692307, -4.430769230769231, -3.046153846153846, -4.430769230769231, 4.923076923076923,
                 1.384615384615385, -3.046153846153846, 1.384615384615385, 2.076923076923077});
  expect_tensor(m[0].cov(), {}, kFloat64, {4.333333333333333});
  expect_tensor(m.corrcoef(), {3, 3}, kFloat64,
                {1, -0.6813156254133328, -0.7396002616336389, -0.6813156254133328, 1, 0.1169770677239328,
                 -0.7396002616336389, 0.1169770677239328, 1});
  expect_tensor(corrcoef(m[0]), {}, kFloat64, {1});
  EXPECT_TRUE(corrcoef(tensor({3., 3.})).isnan().item<bool>());
  EXPECT_TRUE(cov(tensor({{3.}})).isnan().item<bool>());
}
TEST(Covariance, RefusesWeightsThatAreNone) {
  const Tensor x = ones({2, 3});
  expect_error([&] { cov(ones({1, 2, 3})); }, "two or fewer dimensions but got an input with 3");
  expect_error([&] { corrcoef(ones({1, 2, 3})); }, "two or fewer dimensions but got an input with 3");
  expect_error([&] { cov(ones({3}, kBool)); }, "bool dtype is not supported");
  expect_error([&] { cov(x, 1, ones({3})); }, "expected fweights to have integral dtype but got fweights with Float");
  expect_error([&] { cov(x, 1, ones({2}, kLong)); },
               "same numel as there are observations in the input but got 2 != 3");
  expect_error([&] { cov(x, 1, ones({1, 3}, kLong)); }, "one or fewer dimensions but got fweights with 2");
  expect_error([&] { cov(x, 1, full({3}, -1, kLong)); }, "fweights cannot be negative");
  expect_error([&] { cov(x, 1, {}, ones({3}, kLong)); }, "expected aweights to have floating point dtype");
  expect_error([&] { cov(x, 1, {}, zeros({3})); }, "weights sum to zero");
}

TEST(ScatteredViews, AreCopiesWithOneViewWritten) {
  const Tensor x = zeros({2, 3});
  expect_tensor(slice_scatter(x, ones({2, 2}), 1, 0, 3, 2), {2, 3}, kFloat32, {1, 0, 1, 1, 0, 1});
  expect_tensor(x.select_scatter(tensor({1, 2, 3}), 0, -1), {2, 3}, kFloat32, {0, 0, 0, 1, 2, 3});
  expect_tensor(x.diagonal_scatter(ones({2}), 1), {2, 3}, kFloat32, {0, 1, 0, 0, 0, 1});
  expect_tensor(x, {2, 3}, kFloat32, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(x.t().slice_scatter(ones({3, 2})).strides(), IntArrayRef({1, 3}));
  expect_error(
      [&] {
        slice_scatter(x, ones({2, 3}), 1, 0, 2);
      },
      "expected src to have a size equal to the slice of self. src size = [2, 3], slice size = [2, 2]");
}
TEST(ScatteredViews, PassGradientsToBoth) {
  const Tensor x = ones({2, 3}).requires_grad_(true);
  const Tensor row = ones({3}, kFloat64).requires_grad_(true);
  const Tensor factors = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const std::vector<Tensor> slopes = autograd::grad({(select_scatter(x, row, 0, 1) * factors).sum()}, {x, row});
  expect_tensor(slopes[0], {2, 3}, kFloat32, {1, 2, 3, 0, 0, 0});
  expect_tensor(slopes[1], {3}, kFloat64, {4, 5, 6});
}
TEST(BlockDiag, LaysMatricesAlongTheDiagonal) {
  expect_tensor(block_diag({tensor({{1, 2}, {3, 4}}), tensor({5, 6}), tensor(8.5)}), {4, 5}, kFloat32,
                {1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0, 0, 8.5});
  EXPECT_EQ(block_diag({ones({2}, kFloat16), ones({})}).scalar_type(), kFloat16);
  expect_tensor(block_diag({zeros({0, 2}), ones({1, 1})}), {1, 3}, kFloat32, {0, 0, 1});
  EXPECT_EQ(block_diag({}).sizes(), IntArrayRef({1, 0}));
  expect_error([] { block_diag({ones({2}), ones({1, 1, 1})}); }, "Input 1 has 3 dimensions");
}
TEST(UnravelIndex, GivesACoordinateForEachDim) {
  const std::vector<Tensor> at = unravel_index(tensor({{0, 5}, {7, 11}}), {2, 3, 2});
  ASSERT_EQ(at.size(), 3U);
  expect_tensor(at[0], {2, 2}, kLong, {0, 0, 1, 1});
  expect_tensor(at[1], {2, 2}, kLong, {0, 2, 0, 2});
  expect_tensor(at[2], {2, 2}, kLong, {0, 1, 1, 1});
  expect_error([] { unravel_index(ones({2}), {2}); }, "expected 'indices' to be integer dtype");
  expect_error([] { unravel_index(ones({2}, kLong), {-1}); }, "'shape' cannot have negative values");
  expect_error([] { unravel_index(ones({2}, kLong), {0}); }, "cannot have zero dimensions");
}
TEST(RandintLike, HasSizesDtypeAndRange) {
  const Tensor like = zeros({50, 4}, kInt16).t();
  const Tensor drawn = randint_like(like, -2, 3);
  EXPECT_EQ(drawn.sizes(), like.sizes());
  EXPECT_EQ(drawn.strides(), like.strides());
  EXPECT_EQ(drawn.scalar_type(), kInt16);
  EXPECT_EQ(drawn.min().item<int>(), -2);
  EXPECT_EQ(drawn.max().item<int>(), 2);
  EXPECT_EQ(randint_like(like, 2, TensorOptions(kFloat32)).scalar_type(), kFloat32);
  expect_error([&] { randint_like(like, 3, 3); }, "from=3 >= to=3");
}

TEST(Filled, OneElementOfSixteenBitsBecomesInfiniteWhereItDoesNotFit) {
  const auto refuses = [](auto write) {
    expect_error([&] { write(zeros({3}, kFloat16)); }, "at::Half without overflow");
  };
  const auto writes = [](auto write) {
    Tensor x = zeros({3}, kFloat16);
    write(x);
    expect_tensor(x, {3}, kFloat16, {kInf64, 0, 0});
  };
  writes([](Tensor x) { x.index_put_({0}, 1e30); });
  writes([](Tensor x) { x.index_put_({0, "..."}, 1e30); });
  writes([](Tensor x) { x.index_put_({indexing::Slice(0, 1)}, 1e30); });
  writes([](Tensor x) { x[0] = 1e30; });
  refuses([](Tensor x) { x.index_put_({tensor({0})}, 1e30); });
  refuses([](Tensor x) { x.index_put_({indexing::Slice(0, 2)}, 1e30); });
  refuses([](Tensor x) { x.index_put_({indexing::None}, 1e30); });
  refuses([](Tensor x) { x.fill_(1e30); });
  expect_tensor(full({1}, 1e30, kFloat16), {1}, kFloat16, {kInf64});
  expect_tensor(full({1}, 3.4e38, kBFloat16), {1}, kBFloat16, {kInf64});
  expect_error([] { full({1}, 1e40); }, "type float without overflow");
}
TEST(Filled, EmptyTensorsKeepTheirStrides) {
  const Tensor x = empty({2, 3, 0, 5}, TensorOptions().memory_format(MemoryFormat::ChannelsLast));
  EXPECT_EQ(x.clone().strides(), x.strides());
  EXPECT_EQ(zeros_like(x).strides(), x.strides());
}

}  // namespace
}  // namespace tenon::test
