// Modules: what each prints of its options, that each passes all of them on, and which it refuses.
#include "../support/message_of.h"

#include <tenon/nn/functional.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/fold.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <variant>

namespace tenon::test {
namespace {

namespace F = nn::functional;
namespace init = nn::init;
using testing::HasSubstr;

template <class Holder>
std::string printed(const Holder& module) {
  std::ostringstream stream;
  stream << *module;
  return stream.str();
}

TEST(ModulePrint, ShowsOptionsAndOfManyOnlyThoseThatAreNotUsual) {
  EXPECT_EQ(printed(nn::Linear(nn::LinearOptions(2, 3).bias(false))),
            "tenon::nn::Linear(in_features=2, out_features=3, bias=false)");
  EXPECT_EQ(printed(nn::Bilinear(2, 3, 4)),
            "tenon::nn::Bilinear(in1_features=2, in2_features=3, out_features=4, bias=true)");
  EXPECT_EQ(printed(nn::Flatten(nn::FlattenOptions().start_dim(2).end_dim(3))),
            "tenon::nn::Flatten(start_dim=2, end_dim=3)");
  EXPECT_EQ(printed(nn::Unflatten(nn::UnflattenOptions(1, {2, 3}))),
            "tenon::nn::Unflatten(dim=1, unflattened_size={2, 3})");
  EXPECT_EQ(printed(nn::Conv1d(2, 4, 3)), "tenon::nn::Conv1d(2, 4, kernel_size=3, stride=1)");
  EXPECT_EQ(printed(nn::Conv2d(nn::Conv2dOptions(2, 4, {3, 5})
                                   .stride(2)
                                   .padding({1, 0})
                                   .dilation({1, 2})
                                   .groups(2)
                                   .bias(false)
                                   .padding_mode(kCircular))),
            "tenon::nn::Conv2d(2, 4, kernel_size=[3, 5], stride=[2, 2], padding=[1, 0], dilation=[1, 2], groups=2, "
            "bias=false, padding_mode=kCircular)");
  EXPECT_EQ(printed(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(kSame))),
            "tenon::nn::Conv2d(2, 4, kernel_size=[3, 3], stride=[1, 1], padding='same')");
  EXPECT_EQ(printed(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(kValid))),
            "tenon::nn::Conv2d(2, 4, kernel_size=[3, 3], stride=[1, 1], padding='valid')");
  EXPECT_EQ(printed(nn::ConvTranspose2d(
                nn::ConvTranspose2dOptions(2, 4, 3).stride(2).padding(1).dilation(2).output_padding({1, 0}).groups(2))),
            "tenon::nn::ConvTranspose2d(2, 4, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[2, 2], "
            "output_padding=[1, 0], groups=2)");
  EXPECT_EQ(printed(nn::ConvTranspose1d(2, 4, 3)), "tenon::nn::ConvTranspose1d(2, 4, kernel_size=3, stride=1)");
  EXPECT_EQ(printed(nn::BatchNorm2d(nn::BatchNormOptions(3).eps(0.5).momentum(0.25).affine(false))),
            "tenon::nn::BatchNorm2d(3, eps=0.5, momentum=0.25, affine=false, track_running_stats=true)");
  EXPECT_EQ(printed(nn::BatchNorm1d(nn::BatchNormOptions(3).momentum(std::nullopt).track_running_stats(false))),
            "tenon::nn::BatchNorm1d(3, eps=1e-05, momentum=None, affine=true, track_running_stats=false)");
  EXPECT_EQ(printed(nn::InstanceNorm2d(3)),
            "tenon::nn::InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)");
  EXPECT_EQ(printed(nn::LayerNorm(nn::LayerNormOptions({2, 3}).eps(0.5).elementwise_affine(false))),
            "tenon::nn::LayerNorm([2, 3], eps=0.5, elementwise_affine=false)");
  EXPECT_EQ(printed(nn::GroupNorm(nn::GroupNormOptions(2, 4).affine(false))),
            "tenon::nn::GroupNorm(2, 4, eps=1e-05, affine=false)");
  EXPECT_EQ(printed(nn::LocalResponseNorm(nn::LocalResponseNormOptions(3).alpha(0.5).beta(0.25).k(2))),
            "tenon::nn::LocalResponseNorm(3, alpha=0.5, beta=0.25, k=2)");
  EXPECT_EQ(printed(nn::Embedding(nn::EmbeddingOptions(5, 2))),
            "tenon::nn::Embedding(num_embeddings=5, embedding_dim=2)");
  EXPECT_EQ(
      printed(nn::Embedding(
          nn::EmbeddingOptions(5, 2).padding_idx(-1).max_norm(1.5).norm_type(3).scale_grad_by_freq(true).sparse(true))),
      "tenon::nn::Embedding(num_embeddings=5, embedding_dim=2, padding_idx=4, max_norm=1.5, norm_type=3, "
      "scale_grad_by_freq=true, sparse=true)");
  EXPECT_EQ(printed(nn::Fold(nn::FoldOptions({4, 5}, {2, 3}).dilation(2).padding(1).stride(3))),
            "tenon::nn::Fold(output_size=[4, 5], kernel_size=[2, 3], dilation=[2, 2], padding=[1, 1], stride=[3, 3])");
  EXPECT_EQ(printed(nn::Unfold(nn::UnfoldOptions({2, 3}))),
            "tenon::nn::Unfold(kernel_size=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[1, 1])");
  EXPECT_EQ(printed(nn::MaxPool2d(nn::MaxPool2dOptions({2, 3}).stride(1).padding(1).dilation(2).ceil_mode(true))),
            "tenon::nn::MaxPool2d(kernel_size=[2, 3], stride=[1, 1], padding=[1, 1], dilation=[2, 2], ceil_mode=true)");
  EXPECT_EQ(printed(nn::AvgPool1d(3)), "tenon::nn::AvgPool1d(kernel_size=3, stride=3, padding=0)");
}

// --- parameters -----------------------------------------------------------------------------------------------------

using Sizes = std::vector<std::int64_t>;

TEST(ModuleParameters, HaveTheSizesThatTheOptionsSay) {
  const nn::Conv2d conv(nn::Conv2dOptions(4, 6, {3, 5}).groups(2));
  EXPECT_EQ(conv->weight.sizes().vec(), (Sizes{6, 2, 3, 5}));
  EXPECT_EQ(conv->bias.sizes().vec(), (Sizes{6}));
  const nn::ConvTranspose2d transposed(nn::ConvTranspose2dOptions(4, 6, {3, 5}).groups(2));
  EXPECT_EQ(transposed->weight.sizes().vec(), (Sizes{4, 3, 3, 5}));
  EXPECT_EQ(transposed->bias.sizes().vec(), (Sizes{6}));
  const nn::Bilinear bilinear(2, 3, 4);
  EXPECT_EQ(bilinear->weight.sizes().vec(), (Sizes{4, 2, 3}));
  EXPECT_EQ(bilinear->bias.sizes().vec(), (Sizes{4}));
  EXPECT_FALSE(nn::Linear(nn::LinearOptions(2, 3).bias(false))->bias.defined());
  EXPECT_FALSE(nn::Bilinear(nn::BilinearOptions(2, 3, 4).bias(false))->bias.defined());
  EXPECT_FALSE(nn::Conv1d(nn::Conv1dOptions(2, 3, 1).bias(false))->bias.defined());
  const nn::LayerNorm layer(nn::LayerNormOptions({2, 3}));
  EXPECT_EQ(layer->weight.sizes().vec(), (Sizes{2, 3}));
  EXPECT_TRUE(layer->weight.eq(1).all().item<bool>());
  EXPECT_TRUE(layer->bias.eq(0).all().item<bool>());
  EXPECT_FALSE(nn::LayerNorm(nn::LayerNormOptions({2}).elementwise_affine(false))->weight.defined());
  const nn::GroupNorm group(2, 4);
  EXPECT_EQ(group->weight.sizes().vec(), (Sizes{4}));
  EXPECT_TRUE(group->weight.eq(1).all().item<bool>());
  EXPECT_TRUE(group->bias.eq(0).all().item<bool>());
  const nn::BatchNorm1d batch(3);
  EXPECT_TRUE(batch->weight.eq(1).all().item<bool>());
  EXPECT_TRUE(batch->running_var.eq(1).all().item<bool>());
  EXPECT_TRUE(batch->running_mean.eq(0).all().item<bool>());
  EXPECT_EQ(batch->num_batches_tracked.scalar_type(), kInt64);
  const nn::BatchNorm1d bare(nn::BatchNormOptions(3).affine(false).track_running_stats(false));
  EXPECT_TRUE(bare->parameters().empty());
  EXPECT_FALSE(bare->running_mean.defined());
}

double reach_of(const Tensor& tensor) { return tensor.abs().max().item<double>(); }

TEST(ModuleParameters, AreDrawnWithinOneOverTheRootOfTheFan) {
  manual_seed(2);
  const auto expect_reach = [](const Tensor& tensor, double bound) {
    EXPECT_LE(reach_of(tensor), bound * 1.000001);
    EXPECT_GT(reach_of(tensor), bound * 0.8);
  };
  const nn::Linear linear(50, 40);
  expect_reach(linear->weight, 1 / std::sqrt(50.));
  expect_reach(linear->bias, 1 / std::sqrt(50.));
  const nn::Conv2d conv(nn::Conv2dOptions(6, 40, {2, 3}).groups(2));
  expect_reach(conv->weight, 1 / std::sqrt(3 * 6.));
  expect_reach(conv->bias, 1 / std::sqrt(3 * 6.));
  const nn::Bilinear bilinear(20, 5, 40);
  expect_reach(bilinear->weight, 1 / std::sqrt(20.));
  expect_reach(bilinear->bias, 1 / std::sqrt(20.));
  EXPECT_EQ(nn::Linear(0, 3)->bias.eq(0).all().item<bool>(), true);
}

TEST(ModuleOptions, ThatDoNotFitAreRefused) {
  for (const std::int64_t wrong : {0, -1}) {
    EXPECT_THROW(nn::Conv2d(wrong, 4, 3), Error);
    EXPECT_THROW(nn::Conv2d(4, wrong, 3), Error);
    EXPECT_THROW(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).groups(wrong)), Error);
  }
  EXPECT_THAT(message_of([] { nn::Conv2d(nn::Conv2dOptions(3, 4, 3).groups(2)); }),
              HasSubstr("in_channels must be divisible by groups"));
  EXPECT_THAT(message_of([] { nn::Conv2d(nn::Conv2dOptions(4, 3, 3).groups(2)); }),
              HasSubstr("out_channels must be divisible by groups"));
  EXPECT_THAT(message_of([] { nn::Conv2d(nn::Conv2dOptions(4, 4, 3).stride(2).padding(kSame)); }),
              HasSubstr("padding='same' is not supported for strided convolutions"));
  EXPECT_NO_THROW(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).dilation(2).padding(kSame)));
  for (const std::int64_t row : {4, -5})
    EXPECT_THROW(nn::Embedding(nn::EmbeddingOptions(4, 2).padding_idx(row)), Error) << row;
  for (const std::int64_t row : {3, -4}) EXPECT_NO_THROW(nn::Embedding(nn::EmbeddingOptions(4, 2).padding_idx(row)));
  EXPECT_THROW(nn::Embedding(nn::EmbeddingOptions(4, 2)._weight(tenon::ones({4, 3}))), Error);
  EXPECT_THROW(nn::Embedding(nn::EmbeddingOptions(4, 2)._weight(tenon::ones({3, 2}))), Error);
}

// --- what forward() does --------------------------------------------------------------------------------------------

// Whatever is left over of an even kernel goes behind.
TEST(ConvolutionPadding, SameIsThatOfTheInputPaddedByHandInEachRank) {
  manual_seed(3);
  for (const std::int64_t k : {1, 2, 3, 4}) {
    for (const std::int64_t dilation : {1, 2}) {
      const std::int64_t total = dilation * (k - 1), before = total / 2, after = total - before;
      const Tensor line = tenon::randn({2, 2, 9}), w = tenon::randn({3, 2, k});
      EXPECT_TRUE(F::conv1d(line, w, F::Conv1dFuncOptions().padding(kSame).dilation(dilation))
                      .allclose(tenon::conv1d(tenon::constant_pad_nd(line, {before, after}), w, {}, 1, 0, dilation),
                                1e-4, 1e-5))
          << k << ", " << dilation;
      const Tensor image = tenon::randn({2, 2, 9, 8}), w2 = tenon::randn({3, 2, k, 3});
      EXPECT_TRUE(F::conv2d(image, w2, F::Conv2dFuncOptions().padding(kSame).dilation({dilation, 1}))
                      .allclose(tenon::conv2d(tenon::constant_pad_nd(image, {1, 1, before, after}), w2, {}, 1, 0,
                                              {dilation, 1}),
                                1e-4, 1e-5))
          << k << ", " << dilation;
    }
  }
}

TEST(ConvolutionPadding, OfEachModeIsThatOfTheInputPaddedByHand) {
  manual_seed(4);
  const Tensor x = tenon::randn({2, 3, 6, 7});
  nn::Conv2dOptions options = nn::Conv2dOptions(3, 4, {3, 2}).padding({2, 1}).stride({1, 2});
  for (const char* mode : {"reflect", "replicate", "circular", "constant"}) {
    const std::string name = mode;
    if (name == "reflect") options.padding_mode(kReflect);
    if (name == "replicate") options.padding_mode(kReplicate);
    if (name == "circular") options.padding_mode(kCircular);
    if (name == "constant") options.padding_mode(kZeros);
    nn::Conv2d layer(options);
    const Tensor padded = tenon::pad(x, {1, 1, 2, 2}, name);
    EXPECT_TRUE(layer(x).allclose(tenon::conv2d(padded, layer->weight, layer->bias, {1, 2}), 1e-4, 1e-5)) << name;
  }
}

TEST(ConvTranspose2d, MakesTheSizeThatIsAskedForOrSaysWhichItCan) {
  nn::ConvTranspose2d layer(nn::ConvTranspose2dOptions(1, 1, {3, 2}).stride({2, 3}).padding({1, 0}).dilation({2, 1}));
  const Tensor x = tenon::ones({1, 1, 4, 5});
  // (4 - 1) * 2 - 2 + 2 * 2 + 1 = 9 and (5 - 1) * 3 + 1 + 1 = 14, and up to a stride less one more.
  for (const std::int64_t h : {9, 10})
    for (const std::int64_t w : {14, 15, 16}) {
      EXPECT_EQ(layer(x, Sizes{h, w}).sizes().vec(), (Sizes{1, 1, h, w}));
      EXPECT_EQ(layer(x, Sizes{1, 1, h, w}).sizes().vec(), (Sizes{1, 1, h, w}));
    }
  EXPECT_EQ(layer(x).sizes().vec(), (Sizes{1, 1, 9, 14}));
  EXPECT_EQ(message_of([&] {
              layer(x, Sizes{11, 14});
            }),
            "requested an output size of 11 in dimension 0, but valid sizes range from 9 to 10");
  EXPECT_EQ(message_of([&] {
              layer(x, Sizes{9, 13});
            }),
            "requested an output size of 13 in dimension 1, but valid sizes range from 14 to 16");
  EXPECT_EQ(message_of([&] { layer(x, Sizes{9}); }), "output_size must have 2 or 4 elements (got 1)");
}

TEST(BatchNorm, CountsItsBatchesAndAveragesThemAllWithoutAMomentum) {
  nn::BatchNorm1d layer(nn::BatchNormOptions(1).momentum(std::nullopt));
  const auto batch = [](double mean) { return tenon::tensor({mean - 1, mean + 1}).view({2, 1}); };
  for (const double mean : {1., 2., 6.}) layer(batch(mean));
  EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 3);
  EXPECT_NEAR(layer->running_mean.item<double>(), 3, 1e-6);
  EXPECT_NEAR(layer->running_var.item<double>(), 2, 1e-6);
  layer->eval();
  layer(batch(100));
  EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 3);
  EXPECT_NEAR(layer->running_mean.item<double>(), 3, 1e-6);
  layer->reset_running_stats();
  EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 0);
  EXPECT_EQ(layer->running_mean.item<double>(), 0);
  EXPECT_EQ(layer->running_var.item<double>(), 1);
}

TEST(BatchNorm, WithoutStatisticsUsesTheBatchsWhateverItsMode) {
  nn::BatchNorm1d layer(nn::BatchNormOptions(1).track_running_stats(false));
  layer->eval();
  EXPECT_NEAR(layer(tenon::tensor({3., 5.}).view({2, 1})).sum().item<double>(), 0, 1e-5);
  EXPECT_THROW(layer(tenon::ones({1, 1})), Error) << "one value has no deviation";
}

TEST(NormLayers, AreForTheirRanks) {
  EXPECT_NO_THROW(nn::BatchNorm1d(2)(tenon::randn({3, 2})));
  EXPECT_NO_THROW(nn::BatchNorm1d(2)(tenon::randn({3, 2, 4})));
  EXPECT_EQ(message_of([] {
              nn::BatchNorm1d(2)(tenon::ones({3, 2, 4, 4}));
            }),
            "expected 2D or 3D input (got 4D input)");
  EXPECT_EQ(message_of([] { nn::BatchNorm2d(2)(tenon::ones({3, 2, 4})); }), "expected 4D input (got 3D input)");
  EXPECT_EQ(message_of([] { nn::BatchNorm3d(2)(tenon::ones({3, 2, 4, 4})); }), "expected 5D input (got 4D input)");
  EXPECT_EQ(message_of([] { nn::InstanceNorm1d(2)(tenon::ones({3})); }), "expected 2D or 3D input (got 1D input)");
  const Tensor one = tenon::arange(8, TensorOptions(kFloat32)).square().view({2, 4});
  EXPECT_TRUE(nn::InstanceNorm1d(2)(one).equal(nn::InstanceNorm1d(2)(one.unsqueeze(0))[0]));
}

TEST(LocalResponseNorm, DividesByTheSquaresOfItsNeighbours) {
  const Tensor x = tenon::arange(1, 31, TensorOptions(kFloat64)).view({1, 5, 6});
  for (const std::int64_t size : {1, 2, 3, 4}) {
    const Tensor y = F::local_response_norm(x, F::LocalResponseNormFuncOptions(size).alpha(0.5).beta(0.75).k(2));
    for (std::int64_t c = 0; c < 5; ++c) {
      for (std::int64_t i = 0; i < 6; ++i) {
        double squares = 0;
        for (std::int64_t n = c - size / 2; n <= c + (size - 1) / 2; ++n)
          if (n >= 0 && n < 5) squares += std::pow(x[0][n][i].item<double>(), 2);
        const double want = x[0][c][i].item<double>() / std::pow(2 + 0.5 * squares / static_cast<double>(size), 0.75);
        EXPECT_NEAR(y[0][c][i].item<double>(), want, 1e-9) << "size " << size << ", channel " << c;
      }
    }
  }
  EXPECT_THROW(F::local_response_norm(tenon::ones({2, 3}), F::LocalResponseNormFuncOptions(2)), Error);
}

TEST(Flattening, AndItsOppositeNameDimsFromEitherEnd) {
  const Tensor x = tenon::arange(24).view({2, 3, 4});
  EXPECT_EQ(nn::Flatten()(x).sizes().vec(), (Sizes{2, 12}));
  EXPECT_EQ(nn::Flatten(nn::FlattenOptions().start_dim(0).end_dim(1))(x).sizes().vec(), (Sizes{6, 4}));
  EXPECT_EQ(nn::Unflatten(nn::UnflattenOptions(2, {2, 2}))(x).sizes().vec(), (Sizes{2, 3, 2, 2}));
  EXPECT_EQ(nn::Unflatten(nn::UnflattenOptions(-3, {1, 2}))(x).sizes().vec(), (Sizes{1, 2, 3, 4}));
}

// --- first values ---------------------------------------------------------------------------------------------------

TEST(Init, GainsAndFansAreThoseOfTheirFormulas) {
  EXPECT_DOUBLE_EQ(init::calculate_gain(kTanh), 5. / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kReLU), std::sqrt(2.));
  EXPECT_DOUBLE_EQ(init::calculate_gain(kLeakyReLU, 0.5), std::sqrt(2 / 1.25));
  EXPECT_DOUBLE_EQ(init::calculate_gain(kSigmoid), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kConv2D), 1);
  EXPECT_EQ(init::_calculate_fan_in_and_fan_out(tenon::empty({5, 3, 2, 4})), std::make_tuple(24, 40));
  Tensor weight = tenon::empty({5, 3});
  EXPECT_EQ(init::Fan(weight).in, 3);
  EXPECT_EQ(init::Fan(weight).out, 5);
}

TEST(Init, DeviationsAreThoseOfTheirFan) {
  manual_seed(5);
  const Tensor wide = tenon::empty({100, 300});
  const auto deviation = [](const Tensor& t) { return t.std().item<double>(); };
  EXPECT_NEAR(deviation(init::kaiming_normal_(wide, 0, kFanIn, kReLU)), std::sqrt(2. / 300), 0.002);
  EXPECT_NEAR(deviation(init::kaiming_normal_(wide, 0, kFanOut, kReLU)), std::sqrt(2. / 100), 0.003);
  EXPECT_NEAR(deviation(init::kaiming_uniform_(wide, 1, kFanOut, kLeakyReLU)), std::sqrt(1. / 100), 0.003);
  EXPECT_NEAR(deviation(init::xavier_normal_(wide, 3)), 3 * std::sqrt(2. / 400), 0.005);
  EXPECT_NEAR(deviation(init::normal_(wide, 2, 0.5)), 0.5, 0.01);
  EXPECT_NEAR(wide.mean().item<double>(), 2, 0.02);
  EXPECT_NEAR(deviation(init::sparse_(wide, 0, 0.1)), 0.1, 0.002);
}

TEST(Init, OrthogonalRowsOrColumnsWhicheverAreFewer) {
  manual_seed(6);
  for (const Sizes& sizes : {Sizes{3, 7}, Sizes{7, 3}, Sizes{4, 4}, Sizes{3, 2, 5}, Sizes{9, 2, 2}}) {
    const Tensor t = init::orthogonal_(tenon::empty(sizes, TensorOptions(kFloat64)), 2);
    const Tensor matrix = t.flatten(1);
    const bool is_wide = matrix.size(0) <= matrix.size(1);
    const Tensor product = is_wide ? matrix.mm(matrix.t()) : matrix.t().mm(matrix);
    EXPECT_TRUE(product.allclose(tenon::eye(product.size(0), TensorOptions(kFloat64)).mul(4), 1e-9, 1e-9)) << t.dim();
  }
  EXPECT_THROW(init::orthogonal_(tenon::empty({3})), Error);
  EXPECT_NO_THROW(init::orthogonal_(tenon::empty({0, 3})));
}

TEST(Init, IdentitiesOfMatricesAndOfConvolutions) {
  EXPECT_TRUE(init::eye_(tenon::empty({2, 3})).equal(tenon::eye(2, 3)));
  EXPECT_THROW(init::eye_(tenon::empty({2, 3, 4})), Error);
  manual_seed(7);
  const Tensor image = tenon::randn({2, 3, 6, 7});
  const Tensor kept = tenon::conv2d(image, init::dirac_(tenon::empty({4, 3, 3, 3})), {}, 1, 1);
  EXPECT_TRUE(kept.narrow(1, 0, 3).equal(image));
  EXPECT_TRUE(kept.select(1, 3).eq(0).all().item<bool>());
  const Tensor line = tenon::randn({2, 3, 6});
  EXPECT_TRUE(tenon::conv1d(line, init::dirac_(tenon::empty({2, 3, 5})), {}, 1, 2).equal(line.narrow(1, 0, 2)));
  EXPECT_THROW(init::dirac_(tenon::empty({2, 3})), Error);
  EXPECT_THROW(init::dirac_(tenon::empty({1, 1, 1, 1, 1, 1})), Error);
  EXPECT_NO_THROW(init::dirac_(tenon::empty({1, 1, 1, 1, 1})));
  EXPECT_TRUE(init::constant_(tenon::empty({2}), 3).equal(tenon::tensor({3., 3.})));
  EXPECT_TRUE(init::ones_(tenon::empty({2})).equal(tenon::ones({2})));
  EXPECT_TRUE(init::zeros_(tenon::ones({2})).equal(tenon::zeros({2})));
}

TEST(Words, OfAVariantOfTheProgramsOwnHaveTheirNames) {
  std::variant<enumtype::kLinear, enumtype::kReLU, enumtype::kRNN_TANH> word;
  EXPECT_EQ(enumtype::get_enum_name(word), "kLinear");
  word = kRNN_TANH;
  EXPECT_EQ(enumtype::get_enum_name(word), "kRNN_TANH");
}

}  // namespace
}  // namespace tenon::test
