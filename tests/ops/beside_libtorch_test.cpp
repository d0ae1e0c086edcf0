// Rules that were broken where random calls were compared with libtorch's (bench/tensor/differential).
// Long: what random calls found has nothing in common but that; each test is a rule of a few lines.
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"

#include <tenon/autograd/autograd.h>
#include <tenon/nn/functional/loss.h>
#include <tenon/nn/functional/pooling.h>
#include <tenon/nn/functional/vision.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/recurrent/packing.h>
#include <tenon/ops/nn/recurrent/rnn.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(const std::vector<double>& values) { return tensor(values, TensorOptions(kFloat64)).requires_grad_(true); }

Tensor slope_of(const Tensor& y, const Tensor& x) { return autograd::grad({y.sum()}, {x})[0]; }

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

TEST(BesideLibtorch, ANumberModuloATensorHasAGradient) {
  const Tensor x = leaf({2, -3});
  expect_tensor(slope_of(7 % x, x), {2}, kFloat64, {-3, 3});  // -floor(7 / x)
}

TEST(BesideLibtorch, PolygammaOfEvenOrderIsMinusInfinityAtItsPoles) {
  expect_tensor(polygamma(2, tensor({0., -1.})), {2}, kFloat32, {-kInf, -kInf});
  expect_tensor(polygamma(1, tensor({0., -1.})), {2}, kFloat32, {kInf, kInf});
}

TEST(BesideLibtorch, ALossOfNoSamplesWithPlacesIsNaN) {
  expect_tensor(nll_loss_nd(zeros({0, 3, 2}), zeros({0, 2}, TensorOptions(kInt64))), {}, kFloat32, {std::nan("")});
}

TEST(BesideLibtorch, ACrossProductAsksBothForThree) {
  expect_error([] { cross(ones({3, 3}), ones({1, 3}), 0); }, "must have length 3. Got 3 and 1");
}

TEST(BesideLibtorch, ThreeOperandsArePromotedTogether) {
  const Tensor number = tensor(2.0), wide = tensor(3.0, TensorOptions(kFloat64));
  EXPECT_EQ(addcdiv(number, wide, number).scalar_type(), kFloat64);
  EXPECT_EQ(addcmul(tensor(1), tensor({2.0}).to(kBFloat16), tensor(3)).scalar_type(), kBFloat16);
}

TEST(BesideLibtorch, AFactorOfOneShufflesNothingAndCopies) {
  const Tensor x = arange(4).to(kFloat32).reshape({1, 1, 2, 2});
  for (const Tensor& y : {pixel_shuffle(x, 1), pixel_unshuffle(x, 1)}) {
    EXPECT_TRUE(y.equal(x));
    EXPECT_FALSE(y.is_alias_of(x));
  }
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

TEST(BesideLibtorch, ASlopeOfOneElementLeavesANumberWithoutDimensions) {
  expect_tensor(prelu(tensor(-2.0), tensor({0.5})), {}, kFloat32, {-1});
}

TEST(BesideLibtorch, ANumberIsSelectedByOneIndexOnly) {
  for (const std::int64_t count : {0, 2}) {
    EXPECT_THROW(index_select(tensor(1.0), 0, zeros({count}, TensorOptions(kInt64))), IndexError) << count;
  }
  expect_tensor(index_select(tensor(3.0), 0, tensor({0})), {}, kFloat32, {3});
}

TEST(BesideLibtorch, AFlooredLengthKeepsTheSlopeOfTheNorm) {
  const Tensor x = leaf({0.03, 0.04}), y = tensor({1., 0.}, TensorOptions(kFloat64));
  const Tensor similar = cosine_similarity(x, y, 0, 0.5);  // the norm 0.05 counts as 0.5
  expect_tensor(similar, {}, kFloat64, {0.06});
  // 1 / 0.5 less the slope of the length, x / |x|, times x.y / 0.25
  expect_tensor(slope_of(similar, x), {2}, kFloat64, {2 - 0.12 * 0.6, -0.12 * 0.8});
}

TEST(BesideLibtorch, BytesAsTargetsAreNegatedAsNumbers) {
  expect_tensor(soft_margin_loss(tensor({1.0, 0.0}), tensor({1, 1}).to(kUInt8), 0), {2}, kFloat32,
                {std::log1p(std::exp(-1.0)), std::log(2.0)});
}

TEST(BesideLibtorch, WholeStepsLieBetweenWholeEnds) {
  expect_tensor(linspace(-1.5, 0.5, 5, TensorOptions(kInt64)), {5}, kInt64, {-1, 0, 0, 0, 0});
}

TEST(BesideLibtorch, WhatACircularPaddingCutsOffDoesNotComeBack) {
  const Tensor x = tensor({1., 2., 3.}).reshape({1, 1, 3});
  expect_tensor(pad(x, {-1, 1}, "circular"), {1, 1, 3}, kFloat32, {2, 3, 2});
  expect_tensor(pad(x, {1, -1}, "circular"), {1, 1, 3}, kFloat32, {2, 1, 2});
}

TEST(BesideLibtorch, ABilinearFormOfIntegersKeepsTheirDtype) {
  const Tensor a = tensor({1, 2}).to(kInt16);
  EXPECT_EQ(bilinear(a, a, ones({3, 2, 2}).to(kInt16)).scalar_type(), kInt16);
}

TEST(BesideLibtorch, AWindowOfZerosHasNoInfiniteSlope) {
  const Tensor x = leaf({0, 0, 3, 4});
  const Tensor y = nn::functional::lp_pool1d(x.reshape({1, 4}), nn::functional::LPPool1dFuncOptions(2, 2));
  expect_tensor(y, {1, 2}, kFloat64, {0, 5});
  expect_tensor(slope_of(y, x), {4}, kFloat64, {0, 0, 0.6, 0.8});
}

TEST(BesideLibtorch, WindowsOfVolumesHaveNorms) {
  const Tensor x = (arange(24, kFloat64) / 4 - 3).requires_grad_(true);
  const auto options = nn::functional::LPPool3dFuncOptions(2, {1, 2, 3}).stride({1, 1, 2}).ceil_mode(true);
  const Tensor y = nn::functional::lp_pool3d(x.view({1, 2, 3, 4}), options);
  expect_tensor(y, {1, 2, 2, 2}, kFloat64,
                {5.667892024377317, 4.763139720814412, 3.3354160160315836, 2.48746859276655, 2.2638462845343543,
                 3.031088913245535, 4.4860896112315904, 5.356071321407137});
  expect_tensor(slope_of(y, x).narrow(0, 0, 4), {4}, kFloat64,
                {-0.5292973096694771, -0.48518920053035397, -1.2283769130134479, -0.7085662394599953});
  EXPECT_TRUE(nn::LPPool3d(options)(x.view({1, 2, 3, 4})).equal(y));
}

TEST(BesideLibtorch, MeansOfIntegersAreCutOff) {
  const Tensor x = tensor({-5, 0, 3, 4}).to(kInt64).reshape({1, 1, 4});
  expect_tensor(avg_pool1d(x, {2}), {1, 1, 2}, kInt64, {-2, 3});
  expect_tensor(avg_pool2d(tensor({6, 6, 7, 7}).to(kInt64).reshape({1, 1, 2, 2}), {2, 2}), {1, 1, 1, 1}, kInt64, {6});
  EXPECT_THROW(avg_pool3d(ones({1, 2, 2, 2}), {3, 3, 3}, {1, 1, 1}, {1, 1, 1}), Error) << "the kernel is larger";
}

TEST(BesideLibtorch, TruthValuesMayBeTargets) {
  const Tensor x = tensor({0.5, 2.0}), truth = tensor({1, 0}).to(kBool);
  expect_tensor(mse_loss(x, truth, 0), {2}, kFloat32, {0.25, 4});
  expect_tensor(l1_loss(truth, x, 0), {2}, kFloat32, {0.5, 2});
  expect_tensor(huber_loss(x, truth, 0), {2}, kFloat32, {0.125, 1.5});
}

TEST(BesideLibtorch, AWeightWithoutDimensionsMayHaveAnotherDtype) {
  const Tensor a = tensor({0., 2.}, TensorOptions(kFloat64)), w = tensor(0.5f);
  expect_tensor(lerp(a, a + 2, w), {2}, kFloat64, {1, 3});
}

TEST(BesideLibtorch, SixteenBitsMeetParametersOfFloat32) {
  const Tensor x = tensor({1.0, 3.0}).reshape({1, 2}).to(kFloat16), w = tensor({2.f, 2.f}), b = tensor({1.f, 1.f});
  const Tensor y = layer_norm(x, {2}, w, b, 0);
  EXPECT_EQ(y.scalar_type(), kFloat16);
  expect_tensor(y.to(kFloat32), {1, 2}, kFloat32, {-1, 3});
  expect_tensor(group_norm(x, 1, w, b, 0).to(kFloat32), {1, 2}, kFloat32, {-1, 3});
  expect_tensor(batch_norm(x.t(), tensor({2.f}), tensor({1.f}), {}, {}, true, 0.1, 0).t().to(kFloat32), {1, 2},
                kFloat32, {-1, 3});
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

TEST(BesideLibtorch, SizesThatABilinearFormDoesNotHaveAreRefused) {
  EXPECT_THROW(bilinear(ones({3, 3}), ones({3, 2}), ones({3, 3, 1})), Error);
}

TEST(BesideLibtorch, UnderNoPointsLiesAnAreaOfTheirDtype) {
  expect_tensor(trapezoid(zeros({0}, kInt16), 1), {}, kInt16, {0});
  EXPECT_FALSE(trapezoid(zeros({0}).requires_grad_(), 1).requires_grad());
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

TEST(BesideLibtorch, APaddingLeavesSomething) { EXPECT_THROW(pad(ones({1, 1, 1}), {0, -1}, "replicate"), Error); }

TEST(BesideLibtorch, NoPartOfATemporaryIsAView) {
  const Tensor x = ones({1, 2}), hidden = zeros({1, 2}), w = ones({2, 2});
  EXPECT_FALSE(rnn_tanh_cell(x, hidden, w, w).is_view());
  EXPECT_FALSE(tensor(1.f).scatter_reduce(0, tensor(0), tensor(2.f), "amax").is_view());
  EXPECT_FALSE(nll_loss_nd(zeros({1, 2, 2}), zeros({1, 2}, kInt64), {}, 0).is_view());
}

TEST(BesideLibtorch, APictureOfOnePixelInARowIsNotTakenForChannelsLast) {
  const Tensor x = arange(4).reshape({2, 2, 1, 1}).transpose(0, 3);
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(x.suggest_memory_format(), MemoryFormat::Contiguous);
}

TEST(BesideLibtorch, TheSecondSlopeOfASoftMarginDoesNotOverflow) {
  const Tensor x = tensor({64.f}).requires_grad_();
  const Tensor first = autograd::grad({soft_margin_loss(x, tensor({-1.f}), 0).sum()}, {x}, {}, std::nullopt, true)[0];
  expect_tensor(first, {1}, kFloat32, {1});
  expect_tensor(autograd::grad({first.sum()}, {x})[0], {1}, kFloat32, {0});
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

TEST(BesideLibtorch, ARefusedOverlapIsRefusedForIntegersToo) {
  Tensor x = ones({1, 3}, kInt64).expand({2, 3});
  EXPECT_THROW(x.floor_(), Error);
  EXPECT_THROW(x.masked_fill_(x.gt(0), 1), Error);
}

TEST(BesideLibtorch, ATensorWithoutDimensionsCountsInASimilarity) {
  EXPECT_EQ(cosine_similarity(tensor(1.f), ones({2}, kFloat16), 0, 0.5).scalar_type(), kFloat32);
}

TEST(BesideLibtorch, APowerThatIsNoNumberIsRefused) { EXPECT_THROW(ones({2, 2}).renorm(NAN, 0, 1), Error); }

TEST(BesideLibtorch, TruthLiesBetweenTruths) { EXPECT_TRUE(linspace(0.5, 1, 1, TensorOptions(kBool))[0].item<bool>()); }

TEST(BesideLibtorch, AnInfiniteInputLeavesTheSlopesOfOthersAlone) {
  const Tensor slope = leaf({0.25}), x = tensor({kInf, -2.0}, TensorOptions(kFloat64));
  expect_tensor(slope_of(prelu(x, slope), slope), {1}, kFloat64, {-2});
}

TEST(BesideLibtorch, ASequenceWithoutStepsHasNoEnds) {
  EXPECT_EQ(linspace(0.5, 1e30, 0, TensorOptions(kInt16)).numel(), 0);
}

TEST(BesideLibtorch, BytesUnderACurveAreAddedUpAsWiderIntegers) {
  expect_tensor(trapezoid(tensor({200, 200, 200}).to(kUInt8), 1), {}, kFloat32, {600 - 0.5 * (400 % 256)});
}

TEST(BesideLibtorch, AnOuterProductLiesAsWhatItIsAddedTo) {
  EXPECT_EQ(addr(ones({3, 2}).t(), ones({2}), ones({3}), 0, 1).stride(0), 1);
}

TEST(BesideLibtorch, ChannelsLastSurvivesGroupNormAndInterpolation) {
  const Tensor x = arange(2 * 4 * 3 * 3, kFloat32).reshape({2, 4, 3, 3}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_EQ(group_norm(x, 2).suggest_memory_format(), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(group_norm(x, 2).equal(group_norm(x.contiguous(), 2)));
  const auto wider = nn::functional::InterpolateFuncOptions().size(std::vector<std::int64_t>{3, 6}).mode(kNearest);
  EXPECT_EQ(nn::functional::interpolate(x, wider).suggest_memory_format(), MemoryFormat::ChannelsLast);
}

TEST(BesideLibtorch, AWeightOfAnotherDtypeLeavesThatOfTheInput) {
  EXPECT_EQ(rms_norm(ones({3}, kFloat16), {3}, ones({3}, kFloat64)).scalar_type(), kFloat16);
}

TEST(BesideLibtorch, ALossLiesWhereItsInputDoes) {
  EXPECT_TRUE(huber_loss(ones({1, 3}).expand({2, 3}), ones({3, 2}).t(), 0).is_contiguous());
}

TEST(BesideLibtorch, ALossThatIsLaidOutAnewPassesItsSlopesOn) {
  const Tensor x = leaf({0, 0, 0});
  const Tensor truth = tensor({{0.5, 4.}, {-0.25, -4.}, {0., 1.}}, TensorOptions(kFloat64)).t();
  const Tensor loss = huber_loss(x.expand({2, 3}), truth, 0);
  EXPECT_EQ(loss.grad_fn()->name(), "CloneBackward0");
  expect_tensor(slope_of(loss, x), {3}, kFloat64, {-1.5, 1.25, -1});
}

TEST(BesideLibtorch, ALossThatLiesAsItsInputDoesIsNotCopied) {
  EXPECT_NE(huber_loss(leaf({0, 0}), ones({2}), 0).grad_fn()->name(), "CloneBackward0");
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

TEST(BesideLibtorch, AMeanIsOverTheClassesOfTheInput) {
  const Tensor loss = nn::functional::multilabel_soft_margin_loss(tensor({0.}), tensor({1., 0.}));
  expect_tensor(loss, {}, kFloat32, {2 * std::log(2)});
}

TEST(BesideLibtorch, AMultipleThatDoesNotFitIsCutOff) {
  expect_tensor(lcm(tensor({17, -4}).to(kInt8), tensor({10, 6}).to(kInt8)), {2}, kInt8, {170 - 256, 12});
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(BesideLibtorch, AtZeroAnInfiniteAlphaOfEluIsNotRead) {
  expect_tensor(elu(tensor({0., -1., 1.}), kInf), {3}, kFloat32, {0, -kInf, 1});
  expect_tensor(celu(tensor({0., 1.}), kInf), {2}, kFloat32, {0, 1});
}

TEST(BesideLibtorch, OfANaNAThresholdHandsTheGradientThrough) {
  const Tensor x = leaf({kNaN, 0, 1});
  expect_tensor(slope_of(threshold(x, 0.5, 7), x), {3}, kFloat64, {1, 0, 1});
  expect_tensor(slope_of(threshold(x, kNaN, 7), x), {3}, kFloat64, {1, 1, 1});
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
  const Tensor x = leaf({800, kInf, -800});
  const Tensor slope = autograd::grad({log_sigmoid(x).sum()}, {x}, {}, std::nullopt, true)[0];
  expect_tensor(slope_of(slope, x), {3}, kFloat64, {0, 0, 0});
}

TEST(BesideLibtorch, TheMaximumThatIsNaNHandsItsGradientToTheNaNs) {
  const Tensor x = leaf({kNaN, 1, kNaN, 2});
  expect_tensor(slope_of(x.max(), x), {4}, kFloat64, {0.5, 0, 0.5, 0});
  expect_tensor(slope_of(x.min(), x), {4}, kFloat64, {0.5, 0, 0.5, 0});
}

TEST(BesideLibtorch, TheSlopeOfASoftmaxOfNaNIsNaN) {
  const Tensor x = tensor(kNaN, TensorOptions(kFloat64)).requires_grad_(true);
  const Tensor slope = autograd::grad({x.softmax(0)}, {x}, {}, std::nullopt, true)[0];
  EXPECT_TRUE(slope.isnan().item<bool>());
}

TEST(BesideLibtorch, AtMinusZeroALogitRises) {
  const Tensor x = leaf({-0.0, 0});
  expect_tensor(slope_of(logit(x), x), {2}, kFloat64, {kInf, kInf});
  expect_tensor(slope_of(logit(x, 0.0), x), {2}, kFloat64, {kInf, kInf});
}

TEST(BesideLibtorch, BesideInfinityTheOthersHaveNoShareOfALogsumexp) {
  const Tensor x = leaf({kInf, 60000, -kInf});
  const Tensor slope = slope_of(x.logsumexp({0}), x);
  EXPECT_TRUE(slope[0].isnan().item<bool>());
  expect_tensor(slope.slice(0, 1), {2}, kFloat64, {0, 0});
}

TEST(BesideLibtorch, APowerOfAHalfIsASquareRoot) {
  const Tensor x = leaf({-kInf, 4, -0.0});
  const Tensor y = x.pow(0.5);
  EXPECT_TRUE(y[0].isnan().item<bool>());
  EXPECT_TRUE(x.detach().clone().pow_(0.5)[0].isnan().item<bool>());
  EXPECT_TRUE(x.pow(-0.5)[0].isnan().item<bool>());
  EXPECT_TRUE(y[2].signbit().item<bool>());
  expect_tensor(slope_of(y, x).slice(0, 1), {2}, kFloat64, {0.25, -kInf});
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

TEST(BesideLibtorch, UnflattenHasADimensionToTakeApart) {
  const auto apart = [](std::int64_t dim, const Tensor& x) {
    return nn::Unflatten(nn::UnflattenOptions(dim, std::vector<std::int64_t>{-1}))->forward(x);
  };
  EXPECT_THROW(apart(0, tensor(1.0)), Error);
  expect_error(
      [&] {
        apart(4, ones({1, 3, 2, 2}));
      },
      "Dimension out of range (expected to be in range of [-4, 3], but got 4)");
  EXPECT_EQ(apart(0, ones({5, 2, 0})).sizes(), IntArrayRef({5, 2, 0}));
}

TEST(BesideLibtorch, PaddedSequencesHaveTheDtypeOfTheFirst) {
  const Tensor whole = tensor({1, 2}), half = tensor({0.5});
  expect_tensor(pad_sequence({whole, half}, true, 1.5), {2, 2}, kInt64, {1, 2, 0, 1});
  expect_tensor(pad_sequence({half, whole}, true, 1.5), {2, 2}, kFloat32, {0.5, 1.5, 1, 2});
}

TEST(BesideLibtorch, ACellRefusesAStateOfAnotherBatch) {
  const Tensor x = ones({2, 3}), w = ones({12, 3}), u = ones({12, 4});
  const auto gru = [&](const Tensor& input, const Tensor& h) { return gru_cell(input, h, w, u, {}, {}); };
  EXPECT_EQ(gru(x, ones({2, 4})).sizes(), IntArrayRef({2, 4}));
  expect_error([&] { gru(x, ones({1, 4})); }, "Input batch size 2 doesn't match hidden0 batch size 1");
  expect_error([&] { gru(x, ones({2, 5})); }, "hidden0 has inconsistent hidden_size: got 5, expected 4");
  expect_error([&] { gru(ones({2, 2}), ones({2, 4})); }, "input has inconsistent input_size: got 2 expected 3");
  expect_error(
      [&] {
        lstm_cell(x, {ones({2, 3}), ones({1, 3})}, w, ones({12, 3}), {}, {});
      },
      "Input batch size 2 doesn't match hidden1 batch size 1");
}

TEST(BesideLibtorch, OfNaNTheSlopeOfARecurrentReluIsOne) {
  const Tensor x = leaf({kNaN}), w = full({1, 1}, 2, TensorOptions(kFloat64));
  const Tensor h = zeros({1, 1, 1}, TensorOptions(kFloat64));
  const auto y = std::get<0>(rnn_relu(x.view({1, 1, 1}), h, {w, w}, false, 1, 0, false, false, false));
  expect_tensor(slope_of(y, x), {1}, kFloat64, {2});
}

TEST(BesideLibtorch, TheSecondSlopeOfGeluKeepsItsDigitsFarFromZero) {
  const Tensor x = tensor({3.28125, 2.75, -3.5, 4.}, TensorOptions(kFloat32)).requires_grad_(true);
  const Tensor first = autograd::grad({gelu(x, "tanh").sum()}, {x}, {}, true, true)[0];
  const std::vector<double> second{-0.0160137497666872, -0.05206602009844705, -0.008549459160865075,
                                   -0.0014740596637657867};
  const Tensor difference = slope_of(first, x) - tensor(second, TensorOptions(kFloat32));
  EXPECT_LT(difference.abs().max().item<float>(), 1e-6F);
}

TEST(BesideLibtorch, ATargetOfTheLogitsSizesIsChances) {
  expect_error([] { cross_entropy_loss(ones({1}), ones({1}, kUInt8)); },
               "Expected floating point type for target with class probabilities, got Byte");
  expect_error([] { cross_entropy_loss(ones({2, 3}), ones({2, 3}, kInt64)); }, "got Long");
}

TEST(BesideLibtorch, TheClassesOfASoftMarginAreTheInputs) {
  const TensorOptions wide(kFloat64);
  const Tensor x = tensor({1., 2., -1., 0.5}, wide), y = tensor({1., 0., 1., 0.}, wide), w = tensor({{1.}, {2.}}, wide);
  using Options = nn::functional::MultilabelSoftMarginLossFuncOptions;
  expect_tensor(nn::functional::multilabel_soft_margin_loss(x, y, Options().weight(w)), {}, kFloat64, {0.886411569424});
}

TEST(BesideLibtorch, ALeafIsNotRenormalisedInItsGraph) {
  Tensor w = ones({3, 2}).requires_grad_();
  expect_error([&] { embedding_renorm_(w, tensor({0}), 0.5, 2); }, "leaf Variable that requires grad");
  const NoGradGuard no_grad;
  EXPECT_LT(embedding_renorm_(w, tensor({0}), 0.5, 2).norm().item<double>(), 2.1);
}

TEST(BesideLibtorch, DrawnTruthLiesInOrder) { EXPECT_EQ(bernoulli(ones({2, 3}).t()).strides(), IntArrayRef({2, 1})); }

TEST(BesideLibtorch, ARangeHasAFiniteStep) {
  expect_error([] { range(0, 2, -kInf); }, "step must be finite but got -inf");
}

TEST(BesideLibtorch, TheEndsOfALinspaceOfBytesAreBytesFirst) {
  const TensorOptions bytes(kUInt8);
  expect_tensor(linspace(-1, 3.7, 4, bytes), {4}, kUInt8, {255, 171, 87, 3});
  expect_tensor(linspace(-2, 0, 4, bytes), {4}, kUInt8, {254, 169, 84, 0});
  expect_tensor(linspace(1, 300, 1, bytes), {1}, kUInt8, {1});
  expect_error([&] { linspace(1, 300, 2, bytes); }, "value cannot be converted to type uint8_t without overflow");
  expect_error([&] { linspace(2.9, -2.9, 3, bytes); }, "value cannot be converted to type uint8_t without overflow");
}

TEST(BesideLibtorch, APowerOfAHalfOfFloat16IsNoRoot) {
  const Tensor x = tensor({-kInf, -0.0, 0.0, 4.0}, TensorOptions(kFloat16)).requires_grad_();
  const Tensor y = x.pow(0.5), z = x.pow(-0.5);
  expect_tensor(y.detach(), {4}, kFloat16, {kInf, 0, 0, 2});
  EXPECT_FALSE(y[1].signbit().item<bool>());
  expect_tensor(slope_of(y, x), {4}, kFloat16, {0, kInf, kInf, 0.25});
  expect_tensor(z.detach(), {4}, kFloat16, {0, kInf, kInf, 0.5});
  expect_tensor(slope_of(z, x), {4}, kFloat16, {0, -kInf, -kInf, -0.0625});
  expect_tensor(x.detach().clone().pow_(0.5), {4}, kFloat16, {kInf, 0, 0, 2});
}

TEST(BesideLibtorch, TheSlopeOfAnInverseRootIsThatOfAPower) {
  const Tensor x = leaf({-0.0, 0.0, 4});
  const Tensor y = x.pow(-0.5);
  expect_tensor(y.detach(), {3}, kFloat64, {-kInf, kInf, 0.5});
  expect_tensor(slope_of(y, x), {3}, kFloat64, {-kInf, -kInf, -0.0625});
  expect_tensor(x.detach().clone().pow_(-0.5), {3}, kFloat64, {-kInf, kInf, 0.5});
}

TEST(BesideLibtorch, AtNoDistanceALossIsStillCurved) {
  const Tensor x = leaf({1, 1.5}), target = tensor({1., 1.25}, TensorOptions(kFloat64));
  const auto curvature = [&](const Tensor& loss) {
    return slope_of(autograd::grad({loss}, {x}, {}, std::nullopt, true)[0], x);
  };
  expect_tensor(curvature(huber_loss(x, target, 2, 1)), {2}, kFloat64, {1, 1});
  expect_tensor(curvature(smooth_l1_loss(x, target, 2, 0.5)), {2}, kFloat64, {2, 2});
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

TEST(BesideLibtorch, AnEmptyBatchIsNormalised) {
  nn::BatchNorm1d normal(3);
  EXPECT_EQ(normal(zeros({0, 3})).sizes(), (IntArrayRef{0, 3}));
  EXPECT_THROW(normal(zeros({1, 3})), ValueError);
}

TEST(BesideLibtorch, ABiasOfAnotherDtypeLeavesThatOfTheProduct) {
  const Tensor y = linear(ones({2}, kBFloat16), ones({3, 2}, kBFloat16), ones({3}, kFloat16));
  expect_tensor(y, {3}, kBFloat16, {3, 3, 3});
}

TEST(BesideLibtorch, XlogyOfNothingHasNoSlopeWhateverTheNumber) {
  const Tensor x = leaf({0, 1});
  expect_tensor(slope_of(xlogy(x, kNaN).mul(tensor({1., 0.}, TensorOptions(kFloat64))), x).slice(0, 0, 1), {1},
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
    for (const double value : {kInfinity, -kInfinity, kNaN, 1e300}) EXPECT_THROW(by(dtype, value), Error) << value;
  EXPECT_THROW(by(kUInt8, 300), Error);
  EXPECT_THROW(ones({0}, kInt32).addcmul(ones({0}, kInt32), ones({0}, kInt32), -kInfinity), Error);
  expect_tensor(by(kFloat16, 1e5), {2}, kFloat16, {kInfinity, kInfinity});
  expect_tensor(by(kFloat32, -kInfinity), {2}, kFloat32, {-kInfinity, -kInfinity});
  for (const Dtype dtype : {kFloat16, kBFloat16, kFloat32}) EXPECT_THROW(by(dtype, 1e300), Error);
  const Tensor x = ones({2});
  EXPECT_THROW(x.addcdiv(x, x, 1e300), Error);
}

TEST(BesideLibtorch, TheNumbersOfThresholdHaveToFit) {
  const Tensor x = ones({2}, kFloat16);
  expect_tensor(threshold(x, 1, kInfinity), {2}, kFloat16, {kInfinity, kInfinity});
  expect_tensor(threshold(x, 1e30, 1), {2}, kFloat16, {1, 1});
  EXPECT_THROW(threshold(x, 1, 1e30), Error);
  EXPECT_THROW(threshold(x, 1e300, 1), Error);
  expect_tensor(threshold(ones({2}, kBFloat16), 1, 1e30), {2}, kBFloat16, {0x1.94p99, 0x1.94p99});
  EXPECT_THROW(threshold(ones({2}), 1, 1e300), Error);
  EXPECT_THROW(threshold(ones({2}, kUInt8), 300, 1), Error);
}

TEST(BesideLibtorch, PicturesKeepTheirLayout) {
  const auto format = [](const Tensor& x) { return x.suggest_memory_format(); };
  const Tensor plain = arange(2 * 3 * 4 * 2, kFloat32).reshape({2, 3, 4, 2});
  const Tensor x = plain.contiguous(MemoryFormat::ChannelsLast);
  const Tensor w = arange(2 * 3 * 3 * 2, kFloat32).reshape({2, 3, 3, 2});
  EXPECT_EQ(stack({x, x}, 1).strides().vec(), (std::vector<std::int64_t>{48, 3, 1, 12, 6}));
  EXPECT_TRUE(stack({x, x}, 1).equal(stack({plain, plain}, 1)));
  EXPECT_FALSE(stack({x, x}, 1).is_view());
  EXPECT_EQ(format(x.roll({1}, {2})), MemoryFormat::ChannelsLast);
  EXPECT_EQ(format(rms_norm(x, {2})), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(rms_norm(x, {2}).equal(rms_norm(plain, {2})));
  EXPECT_EQ(format(pad(x, {1, 2, 1, 1, 0, 0}, "replicate")), MemoryFormat::ChannelsLast);
  EXPECT_EQ(format(conv2d(x, w, {}, 1, "same")), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(conv2d(x, w, {}, 1, "same").allclose(conv2d(plain, w, {}, 1, "same")));
  EXPECT_EQ(format(conv2d(x.to(kInt32), w.to(kInt32))), MemoryFormat::ChannelsLast);
}

// By float64; libtorch's kernel rounds the logarithm away as well, and has twice these.
TEST(BesideLibtorch, EqualKeysShareTheSlopeOfAttentionWhateverTheirScore) {
  for (const double size : {1., 300., 60000.}) {
    for (const double dropout : {0., 1e-9}) {
      const Tensor q = (ones({1, 1, 1, 2}) * size).requires_grad_(true);
      const Tensor k = (ones({1, 1, 2, 2}) * size).requires_grad_(true);
      const Tensor v = tensor({{1., 2.}, {3., 5.}}).reshape({1, 1, 2, 2}).requires_grad_(true);
      const Tensor y = scaled_dot_product_attention(q, k, v, {}, dropout, false, 1.0);
      const std::vector<Tensor> slopes = autograd::grad({y.sum()}, {q, k, v});
      expect_tensor(slopes[0], {1, 1, 1, 2}, kFloat32, {0, 0});
      expect_tensor(slopes[1] / size, {1, 1, 2, 2}, kFloat32, {-1.25, -1.25, 1.25, 1.25});
      expect_tensor(slopes[2], {1, 1, 2, 2}, kFloat32, {0.5, 0.5, 0.5, 0.5});
    }
  }
}

TEST(BesideLibtorch, LengthsBeyond16BitsAreRenormedAsWell) {
  const Tensor x = tensor({{600., 200., 3., 4.}, {60000., 60000., 60000., 60000.}});  // of 17128.6 and 1.536e7 by 1/4
  const Tensor y = x.to(kFloat16).renorm(0.25, 0, 1e4);
  EXPECT_EQ(y.scalar_type(), kFloat16);
  EXPECT_TRUE(y.to(kFloat32).allclose(tensor({{350.29, 116.76, 1.7515, 2.3353}, {39.06, 39.06, 39.06, 39.06}}), 2e-3));
  const Tensor short_one = x.to(kBFloat16).renorm(0.25, 0, 1e4).to(kFloat32);
  EXPECT_TRUE(short_one[0].allclose(tensor({350., 116.5, 1.75, 2.328125}), 1e-2));
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
        const Tensor slope = autograd::grad({f(x)}, {x}, {full_like(x, kNaN)}, again, again)[0];
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

TEST(BesideLibtorch, SlopesByBicubicCoordinatesKeepTheirDigits) {
  const auto slopes = [](Dtype dtype) {
    const Tensor x = (arange(16, TensorOptions(dtype)) * 7).fmod(16.0).reshape({1, 1, 4, 4});
    // Places that are exact in float32: what is left is rounding of the slopes alone.
    const Tensor line = (arange(32, TensorOptions(dtype)) - 16) / 32 + 1.0 / 256;
    const Tensor grid = stack({line, line.flip({0})}, -1).reshape({1, 4, 8, 2}).requires_grad_(true);
    const Tensor y = grid_sampler(x, grid, 2, 0, false);
    return autograd::grad({y.sum()}, {grid})[0].to(kFloat64);
  };
  EXPECT_LT((slopes(kFloat32) - slopes(kFloat64)).abs().max().item<double>(), 9e-6) << "three units of the largest, 27";
}

TEST(BesideLibtorch, ClassesAsBytesAreNoMaskOfSmoothedWeights) {
  const Tensor x = tensor({{1., 2., 3.}, {3., 1., 0.}}), weight = tensor({1., 2., 4.}), classes = tensor({2, 0});
  const Tensor wanted = cross_entropy_loss(x, classes, weight, 1, -100, 0.5);
  EXPECT_TRUE(equal(cross_entropy_loss(x, classes.to(kUInt8), weight, 1, -100, 0.5), wanted));
}

}  // namespace
}  // namespace tenon::test
