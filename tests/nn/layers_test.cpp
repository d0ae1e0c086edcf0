// Layers against small sums done by hand.
#include <tenon/nn/functional.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

namespace F = nn::functional;

TEST(Linear, IsAMatrixProductAndABias) {
  nn::Linear layer(2, 1);
  NoGradGuard no_grad;
  layer->weight.copy_(tenon::tensor({{2.0f, 3.0f}}));
  layer->bias.fill_(1);
  EXPECT_TRUE(layer(tenon::tensor({{1.0f, 1.0f}, {0.0f, 2.0f}})).equal(tenon::tensor({{6.0f}, {7.0f}})));
}

TEST(Conv2d, SamePaddingKeepsTheSizeForEvenKernels) {
  nn::Conv2d layer(nn::Conv2dOptions(1, 1, {2, 3}).padding(kSame).bias(false));
  NoGradGuard no_grad;
  layer->weight.fill_(1);
  const Tensor y = layer(tenon::ones({1, 1, 3, 3}));
  EXPECT_EQ(y.sizes().vec(), (std::vector<std::int64_t>{1, 1, 3, 3}));
  EXPECT_TRUE(y.index({0, 0}).equal(tenon::tensor({{4.0f, 6.0f, 4.0f}, {4.0f, 6.0f, 4.0f}, {2.0f, 3.0f, 2.0f}})));
}

TEST(Conv2d, CircularPaddingWrapsAround) {
  nn::Conv2d layer(nn::Conv2dOptions(1, 1, 3).padding(1).padding_mode(kCircular).bias(false));
  NoGradGuard no_grad;
  layer->weight.fill_(1);
  EXPECT_TRUE(layer(tenon::ones({1, 1, 3, 3})).equal(tenon::full({1, 1, 3, 3}, 9.0)));
}

TEST(ConvTranspose2d, AnotherPaddingThanZerosIsRefusedWhenItIsUsed) {
  nn::ConvTranspose2d layer(nn::ConvTranspose2dOptions(1, 1, 2).padding_mode(kCircular));
  EXPECT_THROW(layer(tenon::ones({1, 1, 2, 2})), Error);
}

TEST(LocalResponseNorm, OfIntegersIsThatOfTheirValues) {
  const Tensor x = tenon::arange(100, 118).view({3, 3, 2});
  EXPECT_TRUE(F::local_response_norm(x, F::LocalResponseNormFuncOptions(2))
                  .allclose(F::local_response_norm(x.to(kFloat32), F::LocalResponseNormFuncOptions(2))));
}

TEST(MaxUnpool2d, PutsMaximaBack) {
  nn::MaxPool2d pool(2);
  const Tensor x = tenon::arange(16, TensorOptions(kFloat32)).view({1, 1, 4, 4});
  const auto [y, indices] = pool->forward_with_indices(x);
  const Tensor back = nn::MaxUnpool2d(2)(y, indices);
  EXPECT_EQ(back.sum().item<float>(), 5 + 7 + 13 + 15);
  EXPECT_EQ(back.index({0, 0, 3, 3}).item<float>(), 15);
}

TEST(BatchNorm2d, NormalisesInTrainingAndUsesRunningStatisticsAfterwards) {
  manual_seed(3);
  nn::BatchNorm2d layer(2);
  const Tensor x = tenon::randn({4, 2, 3, 3}) * 5 + 2;
  const Tensor y = layer(x);
  EXPECT_NEAR(y.mean().item<double>(), 0, 1e-5);
  EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_NEAR(layer->running_mean[0].item<double>(), 0.1 * x.select(1, 0).mean().item<double>(), 1e-5);
  layer->eval();
  EXPECT_FALSE(layer(x).allclose(y, 1e-3, 1e-3));
}

TEST(LayerNorm, RowsHaveMeanZero) {
  const Tensor y = nn::LayerNorm(std::vector<std::int64_t>{4})(tenon::arange(8, TensorOptions(kFloat32)).view({2, 4}));
  EXPECT_TRUE(y.mean({1}).abs().lt(1e-6).all().item<bool>());
}

TEST(Embedding, ThePaddingRowIsZeroAndGetsNoGradient) {
  nn::Embedding table(nn::EmbeddingOptions(4, 2).padding_idx(-1));
  const Tensor y = table(tenon::tensor({0, 3, 3}));
  EXPECT_EQ(y[1].abs().sum().item<float>(), 0);
  y.sum().backward();
  EXPECT_EQ(table->weight.grad()[3].abs().sum().item<float>(), 0);
  EXPECT_EQ(table->weight.grad()[0].sum().item<float>(), 2);
}

TEST(Pad, EveryModeShowsWhatItShould) {
  const Tensor x = tenon::tensor({1.0f, 2.0f, 3.0f}).view({1, 1, 3});
  const auto padded = [&](F::PadMode mode) { return F::pad(x, F::PadFuncOptions({2, 1}).mode(mode)).flatten(); };
  EXPECT_TRUE(padded(kConstant).equal(tenon::tensor({0.0f, 0.0f, 1.0f, 2.0f, 3.0f, 0.0f})));
  EXPECT_TRUE(padded(kReflect).equal(tenon::tensor({3.0f, 2.0f, 1.0f, 2.0f, 3.0f, 2.0f})));
  EXPECT_TRUE(padded(kReplicate).equal(tenon::tensor({1.0f, 1.0f, 1.0f, 2.0f, 3.0f, 3.0f})));
  EXPECT_TRUE(padded(kCircular).equal(tenon::tensor({2.0f, 3.0f, 1.0f, 2.0f, 3.0f, 1.0f})));
}

TEST(CrossEntropy, LabelSmoothingMixesInTheUniformDistribution) {
  const Tensor logits = tenon::tensor({{2.0f, 0.0f}});
  const Tensor target = tenon::tensor({0});
  const double log_p = -std::log(1 + std::exp(-2.0)), log_q = log_p - 2;
  const Tensor loss = F::cross_entropy(logits, target, F::CrossEntropyFuncOptions().label_smoothing(0.2));
  EXPECT_NEAR(loss.item<double>(), -(0.9 * log_p + 0.1 * log_q), 1e-6);
}

TEST(RMSNorm, DividesByTheRootOfTheMeanSquareAndScalesWhereItHasAWeight) {
  NoGradGuard no_grad;
  const Tensor x = tenon::tensor({{3.0f, 4.0f}, {0.0f, 2.0f}});
  const Tensor normal =
      tenon::tensor({{3.0f / std::sqrt(13.5f), 4.0f / std::sqrt(13.5f)}, {0.0f, 2.0f / std::sqrt(3.0f)}});
  nn::RMSNorm with(nn::RMSNormOptions({2}).eps(1));
  EXPECT_TRUE(with->weight.equal(tenon::ones({2})));
  with->weight.copy_(tenon::tensor({2.0f, 10.0f}));
  EXPECT_TRUE(with(x).allclose(normal * tenon::tensor({2.0f, 10.0f})));
  nn::RMSNorm without(nn::RMSNormOptions({2}).eps(1).elementwise_affine(false));
  EXPECT_FALSE(without->weight.defined());
  EXPECT_TRUE(without(x).allclose(normal));
}

}  // namespace
}  // namespace tenon::test
