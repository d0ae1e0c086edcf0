// Rules of layers, losses, attention and pictures that were broken where random calls were compared with libtorch's
// (bench/tensor/differential).
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "slopes.h"

#include <tenon/nn/functional/loss.h>
#include <tenon/nn/functional/pooling.h>
#include <tenon/nn/functional/vision.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/recurrent/packing.h>
#include <tenon/ops/nn/recurrent/rnn.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

TEST(BesideLibtorch, ALossOfNoSamplesWithPlacesIsNaN) {
  expect_tensor(nll_loss_nd(zeros({0, 3, 2}), zeros({0, 2}, TensorOptions(kInt64))), {}, kFloat32, {std::nan("")});
}

TEST(BesideLibtorch, AFactorOfOneShufflesNothingAndCopies) {
  const Tensor x = arange(4).to(kFloat32).reshape({1, 1, 2, 2});
  for (const Tensor& y : {pixel_shuffle(x, 1), pixel_unshuffle(x, 1)}) {
    EXPECT_TRUE(y.equal(x));
    EXPECT_FALSE(y.is_alias_of(x));
  }
}

TEST(BesideLibtorch, ASlopeOfOneElementLeavesANumberWithoutDimensions) {
  expect_tensor(prelu(tensor(-2.0), tensor({0.5})), {}, kFloat32, {-1});
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

TEST(BesideLibtorch, SizesThatABilinearFormDoesNotHaveAreRefused) {
  EXPECT_THROW(bilinear(ones({3, 3}), ones({3, 2}), ones({3, 3, 1})), Error);
}

TEST(BesideLibtorch, UnderNoPointsLiesAnAreaOfTheirDtype) {
  expect_tensor(trapezoid(zeros({0}, kInt16), 1), {}, kInt16, {0});
  EXPECT_FALSE(trapezoid(zeros({0}).requires_grad_(), 1).requires_grad());
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

TEST(BesideLibtorch, ATensorWithoutDimensionsCountsInASimilarity) {
  EXPECT_EQ(cosine_similarity(tensor(1.f), ones({2}, kFloat16), 0, 0.5).scalar_type(), kFloat32);
}

TEST(BesideLibtorch, AnInfiniteInputLeavesTheSlopesOfOthersAlone) {
  const Tensor slope = leaf({0.25}), x = tensor({kInf64, -2.0}, TensorOptions(kFloat64));
  expect_tensor(slope_of(prelu(x, slope), slope), {1}, kFloat64, {-2});
}

TEST(BesideLibtorch, ASequenceWithoutStepsHasNoEnds) {
  EXPECT_EQ(linspace(0.5, 1e30, 0, TensorOptions(kInt16)).numel(), 0);
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

// Values and slopes: torch.nn.functional.rms_norm of PyTorch 2.15, loss (y.float() * [1, -2, 3, 0.25]).sum().
TEST(BesideLibtorch, AnRmsNormOfSixteenBitsIsComputedInThirtyTwo) {
  struct Expected {
    Dtype dtype;
    std::vector<double> plain, scaled, of_input, of_weight;
    double near;
  };
  for (const Expected& expected :
       {Expected{kFloat16,
                 {0.64697265625, 0.86279296875, 1.078125, 1.2939453125},
                 {0.64697265625, 1.7255859375, 0.5390625, -1.2939453125},
                 {0.0026836395263671875, -0.00792694091796875, 0.00411224365234375, 0.0005140304565429688},
                 {0.64697265625, -1.7255859375, 3.234375, 0.323486328125},
                 1e-3},
        Expected{kBFloat16,
                 {0.6484375, 0.86328125, 1.078125, 1.296875},
                 {0.6484375, 1.7265625, 0.5390625, -1.296875},
                 {0.002685546875, -0.0079345703125, 0.004119873046875, 0.000514984130859375},
                 {0.6484375, -1.7265625, 3.234375, 0.32421875},
                 8e-3}}) {
    const auto near = [&](const Tensor& got, const std::vector<double>& want) {
      EXPECT_EQ(got.scalar_type(), expected.dtype);
      EXPECT_TRUE(got.to(kFloat64).allclose(tensor(want, kFloat64), expected.near, 0)) << got;
    };
    const Tensor x = (arange(4).to(kFloat32) * 100 + 300).to(expected.dtype).set_requires_grad(true);
    const Tensor w = tensor({1., 2., 0.5, -1.}).to(expected.dtype).set_requires_grad(true);
    near(rms_norm(x, {4}), expected.plain);
    const Tensor y = rms_norm(x, {4}, w);
    near(y, expected.scaled);
    (y.to(kFloat32) * tensor({1.f, -2.f, 3.f, 0.25f})).sum().backward();
    near(x.grad(), expected.of_input);
    near(w.grad(), expected.of_weight);
  }
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

TEST(BesideLibtorch, AMeanIsOverTheClassesOfTheInput) {
  const Tensor loss = nn::functional::multilabel_soft_margin_loss(tensor({0.}), tensor({1., 0.}));
  expect_tensor(loss, {}, kFloat32, {2 * std::log(2)});
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
  const Tensor x = leaf({kNaN64}), w = full({1, 1}, 2, TensorOptions(kFloat64));
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

TEST(BesideLibtorch, AtNoDistanceALossIsStillCurved) {
  const Tensor x = leaf({1, 1.5}), target = tensor({1., 1.25}, TensorOptions(kFloat64));
  const auto curvature = [&](const Tensor& loss) {
    return slope_of(autograd::grad({loss}, {x}, {}, std::nullopt, true)[0], x);
  };
  expect_tensor(curvature(huber_loss(x, target, 2, 1)), {2}, kFloat64, {1, 1});
  expect_tensor(curvature(smooth_l1_loss(x, target, 2, 0.5)), {2}, kFloat64, {2, 2});
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

TEST(BesideLibtorch, SlopesByBicubicCoordinatesKeepTheirDigits) {
  const auto slopes = [](Dtype dtype) {
    const Tensor x = (arange(16, TensorOptions(dtype)) * 7).fmod(16.0).reshape({1, 1, 4, 4});
    // Places that are exact in float32: what is left is rounding of the slopes alone.
    const Tensor line = (arange(32, TensorOptions(dtype)) - 16) / 32 + 1.0 / 256;
    const Tensor grid = stack({line, line.flip({0})}, -1).reshape({1, 4, 8, 2}).requires_grad_(true);
    const Tensor y = grid_sampler(x, grid, 2, 0, false);
    return autograd::grad({y.sum()}, {grid})[0].to(kFloat64);
  };
  EXPECT_LT((slopes(kFloat32) - slopes(kFloat64)).abs().max().item<double>(), 4.3e-6)
      << "two units of the largest, 27; libtorch's are 4.2e-6 off";
}

TEST(BesideLibtorch, SecondSlopesOfAttentionInSixteenBitsAreRoundedAtTheEnd) {
  // The first and second slopes by queries, keys and values of numbers that are exact in bfloat16.
  const auto slopes = [](Dtype dtype) {
    std::vector<Tensor> inputs;
    for (const double step : {5., 7., 11.}) {
      const Tensor numbers = (arange(24, TensorOptions(kFloat64)) * step).fmod(17.0) / 4 - 2;
      inputs.push_back(numbers.reshape({1, 2, 3, 4}).to(dtype).requires_grad_(true));
    }
    const auto weigh = [](const Tensor& t, double step) {
      const Tensor weights = ((arange(24, TensorOptions(kFloat64)) * step).fmod(13.0) / 8 - 0.75).reshape(t.sizes());
      return (t * weights.to(t.scalar_type())).to(kFloat64).sum();
    };
    const Tensor y = scaled_dot_product_attention(inputs[0], inputs[1], inputs[2]);
    const std::vector<Tensor> first = autograd::grad({weigh(y, 3)}, inputs, {}, true, true);
    const Tensor sum = weigh(first[0], 2) + weigh(first[1], 5) + weigh(first[2], 7);
    std::vector<Tensor> all = autograd::grad({sum}, inputs);
    for (const Tensor& slope : first) all.push_back(slope.detach());
    return cat(all).to(kFloat64);
  };
  const Tensor exact = slopes(kFloat64);
  for (const auto& [dtype, digits] : {std::pair(kFloat16, 11), std::pair(kBFloat16, 8)}) {
    const double error = (slopes(dtype) - exact).abs().max().item<double>() / exact.abs().max().item<double>();
    EXPECT_LT(error, std::ldexp(0.7, -digits)) << dtype << ": little more than half a unit of the largest";
  }
}

TEST(BesideLibtorch, ClassesAsBytesAreNoMaskOfSmoothedWeights) {
  const Tensor x = tensor({{1., 2., 3.}, {3., 1., 0.}}), weight = tensor({1., 2., 4.}), classes = tensor({2, 0});
  const Tensor wanted = cross_entropy_loss(x, classes, weight, 1, -100, 0.5);
  EXPECT_TRUE(equal(cross_entropy_loss(x, classes.to(kUInt8), weight, 1, -100, 0.5), wanted));
}

}  // namespace
}  // namespace tenon::test
