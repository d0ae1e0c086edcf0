// Interpolation and sampling against figures of PyTorch 2.15 for the same input.
#include "support/expect_error.h"

#include <tenon/nn/functional.h>
#include <tenon/nn/modules/fold.h>
#include <tenon/nn/modules/padding.h>
#include <tenon/nn/modules/upsampling.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

namespace F = nn::functional;

/// (1, 1, 3, 4): 0, 1, 2, … to the power of 1.5
Tensor picture() { return tenon::arange(12, TensorOptions(kFloat64)).pow(1.5).view({1, 1, 3, 4}); }

void expect_values(const Tensor& tensor, const std::vector<double>& expected) {
  const Tensor flat = tensor.contiguous().view({-1});
  ASSERT_EQ(flat.numel(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), expected[i], 2e-6) << "element " << i;
  }
}

F::InterpolateFuncOptions to(std::vector<std::int64_t> size) {
  return F::InterpolateFuncOptions().size(std::move(size));
}

TEST(Interpolate, NearestTakesTheElementBelowOrTheClosest) {
  expect_values(F::interpolate(picture(), to({2, 5})),
                {0.0, 0.0, 1.0, 2.828427, 5.196152, 8.0, 8.0, 11.18034, 14.696938, 18.520259});
  expect_values(F::interpolate(picture(), to({2, 5}).mode(kNearestExact)),
                {0.0, 1.0, 2.828427, 2.828427, 5.196152, 22.627417, 27.0, 31.622777, 31.622777, 36.482873});
}

TEST(Interpolate, BilinearWithAndWithoutAlignedCorners) {
  expect_values(F::interpolate(picture(), to({2, 5}).mode(kBilinear).align_corners(false)),
                {2.0, 3.081559, 4.67032, 6.615042, 8.527179, 18.970563, 21.822728, 25.218201, 28.771588, 31.992219});
  expect_values(F::interpolate(picture(), to({2, 5}).mode(kBilinear).align_corners(true)),
                {0.0, 0.75, 1.914214, 3.420358, 5.196152, 22.627417, 25.906854, 29.311388, 32.837801, 36.482873});
}

TEST(Interpolate, BicubicWithAndWithoutAlignedCorners) {
  expect_values(F::interpolate(picture(), to({4, 3}).mode(kBicubic).align_corners(false)),
                {-0.482801, 0.989808, 3.944605, 3.786669, 7.080842, 11.336755, 14.631202, 20.002202, 25.90285,
                 24.235528, 30.441923, 37.145622});
  expect_values(F::interpolate(picture(), to({2, 5}).mode(kBicubic).align_corners(true)),
                {0.0, 0.580596, 1.785989, 3.557707, 5.196152, 22.627417, 25.521778, 29.265684, 33.211451, 36.482873});
}

TEST(Interpolate, AntialiasingCoversAllThatAnElementStandsFor) {
  expect_values(F::interpolate(picture(), to({2, 2}).mode(kBilinear).align_corners(false).antialias(true)),
                {4.390286, 8.176152, 19.986411, 26.590724});
  expect_values(F::interpolate(picture(), to({2, 2}).mode(kBicubic).align_corners(false).antialias(true)),
                {3.231616, 7.470333, 20.204757, 28.060661});
}

TEST(Interpolate, AFactorCountsAsGivenUnlessItIsRecomputed) {
  const auto options =
      F::InterpolateFuncOptions().scale_factor(std::vector<double>{1.3, 0.6}).mode(kBilinear).align_corners(false);
  expect_values(F::interpolate(picture(), options), {0.333333, 2.828427, 9.060113, 14.696938, 24.084945, 31.622777});
  auto recomputed = options;
  recomputed.recompute_scale_factor(true);
  EXPECT_TRUE(F::interpolate(picture(), recomputed)
                  .allclose(F::interpolate(picture(), to({3, 2}).mode(kBilinear).align_corners(false))));
}

TEST(Interpolate, AreaIsAdaptiveAveraging) {
  expect_values(F::interpolate(picture(), to({2, 3}).mode(kArea)),
                {5.045085, 7.426426, 10.310444, 17.201939, 21.125014, 25.330712});
}

TEST(Interpolate, NamesWhatDoesNotFit) {
  expect_error(
      [] {
        F::interpolate(picture(), to({2, 2}).mode(kLinear).align_corners(false));
      },
      "Got 4D input, but linear mode needs 3D input");
  expect_error([] { F::interpolate(picture()); }, "either size or scale_factor");
  expect_error(
      [] {
        F::interpolate(picture(), to({2, 2}).scale_factor(std::vector<double>{2, 2}));
      },
      "only one of size or scale_factor");
  expect_error([] { F::interpolate(picture(), to({2, 2}).align_corners(true)); }, "align_corners option");
  expect_error([] { F::interpolate(picture(), to({0, 2})); }, "greater than 0");
  expect_error([] { F::interpolate(picture(), to({2, 2, 2})); }, "size shape must match");
}

TEST(GridSample, InterpolatesWithEveryKindOfPadding) {
  const Tensor grid =
      tenon::tensor({-0.3, 0.2, 0.9, -1.1, 1.4, 0.5, 0.1, -0.7}, TensorOptions(kFloat64)).view({1, 1, 4, 2});
  using Options = F::GridSampleFuncOptions;
  const auto sample = [&](Options::mode_t mode, Options::padding_mode_t padding, bool corners) {
    return F::grid_sample(picture(), grid, Options().mode(mode).padding_mode(padding).align_corners(corners));
  };
  expect_values(sample(kBilinear, kZeros, true), {14.531164, 4.356894, 11.000626, 5.571773});
  expect_values(sample(kBilinear, kZeros, false), {15.572437, 1.273057, 0.0, 2.165904});
  expect_values(sample(kBilinear, kBorder, true), {14.531164, 4.840994, 27.501566, 5.571773});
  expect_values(sample(kBilinear, kReflection, true), {14.531164, 6.15157, 24.896541, 5.571773});
  expect_values(sample(kBilinear, kReflection, false), {15.572437, 5.196152, 30.611949, 2.279899});
  expect_values(sample(kNearest, kZeros, true), {11.18034, 5.196152, 0.0, 2.828427});
  expect_values(sample(kNearest, kReflection, true), {11.18034, 5.196152, 31.622777, 2.828427});
  expect_values(sample(kBicubic, kZeros, false), {17.505199, 0.750954, -4.049421, 1.637981});
  expect_values(sample(kBicubic, kBorder, true), {15.20862, 4.120431, 29.073129, 4.382312});
  expect_values(sample(kBicubic, kReflection, false), {16.164943, 3.256527, 31.786324, 1.700515});
}

TEST(GridSample, WorksInThreeDimensions) {
  const Tensor volume = tenon::arange(8, TensorOptions(kFloat64)).square().view({1, 1, 2, 2, 2});
  const Tensor grid = tenon::tensor({-0.3, 0.2, 0.6, 0.9, -1.1, 0.1}, TensorOptions(kFloat64)).view({1, 1, 1, 2, 3});
  expect_values(F::grid_sample(volume, grid, F::GridSampleFuncOptions().align_corners(false).padding_mode(kBorder)),
                {32.36, 15.4});
  expect_error([&] { F::grid_sample(volume, grid, F::GridSampleFuncOptions().mode(kBicubic).align_corners(false)); },
               "bicubic interpolation only supports 4D input");
}

TEST(GridSample, APointThatIsNoNumberReadsNone) {
  const Tensor grid = tenon::full({1, 1, 1, 2}, std::numeric_limits<double>::quiet_NaN(), TensorOptions(kFloat64));
  const auto read = [&](const auto& mode) {
    return F::grid_sample(picture(), grid, F::GridSampleFuncOptions().mode(mode).align_corners(true));
  };
  EXPECT_TRUE(read(kBilinear).isnan().item<bool>()) << "as in PyTorch: the weights of its neighbours are no numbers";
  expect_values(read(kNearest), {0.0});
}

TEST(AffineGrid, TheIdentityReadsEveryElementWhereItIs) {
  const Tensor theta = tenon::tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}}, TensorOptions(kFloat64));
  for (const bool corners : {false, true}) {
    const Tensor grid = F::affine_grid(theta, {1, 1, 3, 4}, corners);
    const Tensor same = F::grid_sample(picture(), grid, F::GridSampleFuncOptions().align_corners(corners));
    EXPECT_TRUE(same.allclose(picture()));
  }
}

TEST(PixelShuffle, UnshufflingGivesBackWhatWasShuffled) {
  const Tensor x = tenon::arange(48, TensorOptions(kFloat32)).view({2, 4, 2, 3});
  const Tensor large = nn::PixelShuffle(nn::PixelShuffleOptions(2))(x);
  EXPECT_EQ(large.sizes().vec(), (std::vector<std::int64_t>{2, 1, 4, 6}));
  EXPECT_EQ(large.index({0, 0, 0, 1}).item<float>(), 6);  // the second channel stands right of the first
  EXPECT_TRUE(nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2))(large).equal(x));
  expect_error([&] { F::pixel_shuffle(x, F::PixelShuffleFuncOptions(3)); }, "not divisible by 9");
}

TEST(Fold, UnfoldedWindowsAddUpToTheirCounts) {
  const Tensor x = tenon::ones({1, 2, 3, 3});
  const Tensor columns = nn::Unfold(nn::UnfoldOptions({2, 2}))(x);
  EXPECT_EQ(columns.sizes().vec(), (std::vector<std::int64_t>{1, 8, 4}));
  const Tensor counts = nn::Fold(nn::FoldOptions({3, 3}, {2, 2}))(columns);
  EXPECT_TRUE(counts.index({0, 1}).equal(tenon::tensor({{1.0f, 2.0f, 1.0f}, {2.0f, 4.0f, 2.0f}, {1.0f, 2.0f, 1.0f}})));
}

TEST(Pad, ModulesPadTheLastDimensionFirst) {
  const Tensor x = tenon::arange(6, TensorOptions(kFloat32)).view({1, 1, 2, 3});
  EXPECT_TRUE(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({2, 1, 1, 0}))(x).index({0, 0}).equal(
      tenon::tensor({{5.0f, 4.0f, 3.0f, 4.0f, 5.0f, 4.0f},
                     {2.0f, 1.0f, 0.0f, 1.0f, 2.0f, 1.0f},
                     {5.0f, 4.0f, 3.0f, 4.0f, 5.0f, 4.0f}})));
  EXPECT_TRUE(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({1, 2}))(x[0]).index({0, 0}).equal(
      tenon::tensor({0.0f, 0.0f, 1.0f, 2.0f, 2.0f, 2.0f})));
  EXPECT_EQ(nn::ConstantPad3d(nn::ConstantPad3dOptions(1, 2.0))(tenon::zeros({1, 1, 1, 1, 1})).sum().item<float>(),
            2 * 26);
  EXPECT_EQ(nn::ZeroPad2d(nn::ZeroPad2dOptions(1))(x).sizes().vec(), (std::vector<std::int64_t>{1, 1, 4, 5}));
  EXPECT_TRUE(nn::ZeroPad1d(nn::ZeroPad1dOptions({1, 2}))(x[0]).index({0, 1}).equal(
      tenon::tensor({0.0f, 3.0f, 4.0f, 5.0f, 0.0f, 0.0f})));
  EXPECT_EQ(nn::ZeroPad3d(nn::ZeroPad3dOptions({0, 0, 1, 0, 2, 0}))(x).sizes().vec(),
            (std::vector<std::int64_t>{1, 3, 3, 3}));
  std::ostringstream text;
  text << nn::ConstantPad1d(nn::ConstantPad1dOptions({1, 2}, 3.5));
  EXPECT_EQ(text.str(), "tenon::nn::ConstantPad1d(padding=[1, 2], value=3.5)");
}

TEST(Upsample, IsInterpolationAsAModule) {
  nn::Upsample layer(
      nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(kBilinear).align_corners(false));
  EXPECT_TRUE(layer(picture()).allclose(F::interpolate(picture(), to({6, 8}).mode(kBilinear).align_corners(false))));
  std::ostringstream text;
  text << layer;
  EXPECT_EQ(text.str(), "tenon::nn::Upsample(scale_factor=[2, 2], mode=kBilinear)");
}

}  // namespace
}  // namespace tenon::test
