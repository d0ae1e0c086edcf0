// Bags of embeddings against sums over their elements, one by one.
#include "support/expect_error.h"

#include <tenon/nn/functional.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/ops/indexing/embedding_bag.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tenon::test {
namespace {

namespace F = nn::functional;

Tensor table() { return tenon::arange(12, TensorOptions(kFloat32)).view({4, 3}).set_requires_grad(true); }
Tensor indices() { return tenon::tensor({0, 1, 3, 3, 2}); }
/// Bags of two elements, none, and three.
Tensor offsets() { return tenon::tensor({0, 2, 2}); }

TEST(EmbeddingBag, SumsMeansAndMaximaOfEachBagAndZeroForAnEmptyOne) {
  const Tensor weight = table();
  const auto bag = [&](F::EmbeddingBagFuncOptions options) {
    return F::embedding_bag(indices(), weight, options.offsets(offsets()));
  };
  EXPECT_TRUE(bag(F::EmbeddingBagFuncOptions().mode(kSum))
                  .equal(tenon::tensor({{3.0f, 5.0f, 7.0f}, {0.0f, 0.0f, 0.0f}, {24.0f, 27.0f, 30.0f}})));
  EXPECT_TRUE(bag(F::EmbeddingBagFuncOptions().mode(kMean))
                  .equal(tenon::tensor({{1.5f, 2.5f, 3.5f}, {0.0f, 0.0f, 0.0f}, {8.0f, 9.0f, 10.0f}})));
  EXPECT_TRUE(bag(F::EmbeddingBagFuncOptions().mode(kMax))
                  .equal(tenon::tensor({{3.0f, 4.0f, 5.0f}, {0.0f, 0.0f, 0.0f}, {9.0f, 10.0f, 11.0f}})));
}

TEST(EmbeddingBag, GradientsGoToTheRowsThatWereLookedUp) {
  const Tensor weight = table();
  F::embedding_bag(indices(), weight, F::EmbeddingBagFuncOptions().mode(kSum).offsets(offsets())).sum().backward();
  EXPECT_TRUE(weight.grad().select(1, 0).equal(tenon::tensor({1.0f, 1.0f, 1.0f, 2.0f})));
  weight.mutable_grad().reset();
  F::embedding_bag(indices(), weight, F::EmbeddingBagFuncOptions().mode(kMax).offsets(offsets())).sum().backward();
  EXPECT_TRUE(weight.grad().select(1, 0).equal(tenon::tensor({0.0f, 1.0f, 0.0f, 1.0f})));
}

TEST(EmbeddingBag, PaddingDoesNotCountAndWeightsScale) {
  const Tensor weight = table();
  const Tensor mean =
      F::embedding_bag(indices(), weight, F::EmbeddingBagFuncOptions().mode(kMean).offsets(offsets()).padding_idx(3));
  EXPECT_TRUE(mean[2].equal(weight[2]));
  const Tensor scaled = F::embedding_bag(indices(), weight,
                                         F::EmbeddingBagFuncOptions().mode(kSum).offsets(offsets()).per_sample_weights(
                                             tenon::tensor({2.0f, 0.0f, 1.0f, 0.0f, -1.0f})));
  EXPECT_TRUE(scaled[0].equal(weight[0] * 2));
  EXPECT_TRUE(scaled[2].equal(weight[3] - weight[2]));
}

TEST(EmbeddingBag, SaysWhereItsResultsComeFrom) {
  const auto [bags, of_element, sizes, from] = tenon::embedding_bag(table(), indices(), offsets(), false, 2);
  EXPECT_TRUE(of_element.equal(tenon::tensor({0, 0, 2, 2, 2})));
  EXPECT_TRUE(sizes.equal(tenon::tensor({2, 0, 3})));
  EXPECT_TRUE(from.select(1, 0).equal(tenon::tensor({1, -1, 3})));
}

TEST(EmbeddingBag, NamesWhatDoesNotFit) {
  const auto call = [](const Tensor& starts, std::int64_t mode = 0) {
    return [=] { tenon::embedding_bag(table(), indices(), starts, false, mode); };
  };
  expect_error(call(tenon::tensor({1, 2})), "offsets[0] has to be 0");
  expect_error(call(tenon::tensor({0, 6})), "offsets[1] is 6");
  expect_error(call(tenon::tensor({0, 3, 2})), "must not decrease");
  expect_error(call(offsets(), 3), "mode must be 0 (sum), 1 (mean) or 2 (max)");
}

}  // namespace
}  // namespace tenon::test
