// Tensor parallelism over four real ranks: layers in parts give what the whole layer gives, and so do their gradients.
#include "comm/ranks.h"
#include "support/expect_error.h"

#include <tenon/nn/distributed/tensor_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/sgd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace tenon::test {
namespace {

using namespace nn::parallel;

void expect_near(const Tensor& a, const Tensor& b, const char* what) {
  EXPECT_TRUE(a.detach().allclose(b.detach(), 1e-4, 1e-6)) << what << " on rank " << ranks()->rank();
}

/// This rank's part of a tensor that is whole.
Tensor part(const Tensor& whole, std::int64_t dim) { return whole.chunk(ranks()->size(), dim)[ranks()->rank()]; }

TEST(TensorParallel, ALayerCutByColumnsAndOneByRowsAreTheWholeOnes) {
  manual_seed(1);
  nn::Linear widen(12, 32), narrow(32, 8);
  const Tensor x = randn({5, 12}, requires_grad()), same = x.detach().clone().set_requires_grad(true);
  const Tensor slope = randn({5, 8});
  const Tensor whole = narrow->forward(widen->forward(x).tanh());
  whole.backward(slope);
  ColumnParallelLinear columns(*widen, ranks());
  RowParallelLinear rows(*narrow, ranks());
  const Tensor hidden = columns->forward(same);
  EXPECT_EQ(hidden.size(-1), 32 / ranks()->size());
  const Tensor y = rows->forward(hidden.tanh());
  y.backward(slope);
  expect_near(y, whole, "y");
  expect_near(same.grad(), x.grad(), "the gradient of x");
  expect_near(columns->weight.grad(), part(widen->weight.grad(), 0), "columns");
  expect_near(columns->bias.grad(), part(widen->bias.grad(), 0), "their bias");
  expect_near(rows->weight.grad(), part(narrow->weight.grad(), 1), "rows");
  expect_near(rows->bias.grad(), narrow->bias.grad(), "their bias, which is whole");
}

TEST(TensorParallel, WholeInputsAndOutputsAreDividedAndGathered) {
  manual_seed(2);
  nn::Linear layer(16, 24);
  const Tensor x = randn({3, 7, 16}, requires_grad()), slope = randn({3, 7, 24});
  const auto gradients_of = [&](const std::function<Tensor(const Tensor&)>& forward) {
    const Tensor input = x.detach().clone().set_requires_grad(true);
    const Tensor y = forward(input);
    y.backward(slope);
    return std::vector<Tensor>{y, input.grad()};
  };
  const auto whole = gradients_of([&](const Tensor& t) { return layer->forward(t); });
  ColumnParallelLinear columns(*layer, ranks(), ColumnParallelLinearOptions().gather_output(true));
  RowParallelLinear rows(*layer, ranks(), RowParallelLinearOptions().input_is_parallel(false));
  const auto by_columns = gradients_of([&](const Tensor& t) { return columns->forward(t); });
  const auto by_rows = gradients_of([&](const Tensor& t) { return rows->forward(t); });
  for (std::size_t i = 0; i < whole.size(); ++i) {
    expect_near(by_columns[i], whole[i], "columns");
    expect_near(by_rows[i], whole[i], "rows");
  }
}

TEST(TensorParallel, AttentionWithDividedHeadsIsTheWholeAttention) {
  manual_seed(3);
  constexpr std::int64_t kWidth = 32, kHeads = 8, kDepth = kWidth / kHeads;
  nn::Linear qkv(kWidth, 3 * kWidth), out(kWidth, kWidth);
  const Tensor x = randn({2, 9, kWidth}, requires_grad()), same = x.detach().clone().set_requires_grad(true);
  const auto parts = qkv->forward(x).view({2, 9, 3, kHeads, kDepth}).permute({2, 0, 3, 1, 4}).unbind(0);
  const Tensor attended = scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt, 0.0, true);
  const Tensor whole = out->forward(attended.transpose(1, 2).reshape({2, 9, kWidth}));
  whole.square().sum().backward();
  ParallelSelfAttention attention(*qkv, *out, ranks(), ParallelSelfAttentionOptions(kWidth, kHeads));
  const Tensor y = attention->forward(same);
  y.square().sum().backward();
  expect_near(y, whole, "y");
  expect_near(same.grad(), x.grad(), "the gradient of x");
}

TEST(TensorParallel, TrainsToTheLossesOfOneDeviceWithAPartOfTheMemory) {
  const auto losses_of = [](const std::function<Tensor(const Tensor&)>& forward, std::vector<Tensor> parameters) {
    optim::SGD sgd(std::move(parameters), optim::SGDOptions(0.05).momentum(0.9));
    std::vector<double> losses;
    for (int step = 0; step < 8; ++step) {
      manual_seed(static_cast<std::uint64_t>(100 + step));
      const Tensor x = randn({16, 20}), loss = (forward(x) - x.sum(-1, true).tanh()).square().mean();
      sgd.zero_grad(/*set_to_none=*/true);
      loss.backward();
      sgd.step();
      losses.push_back(loss.item<double>());
    }
    return losses;
  };
  manual_seed(4);
  nn::Linear widen(20, 64), narrow(64, 1);
  ColumnParallelLinear columns(*widen, ranks());
  RowParallelLinear rows(*narrow, ranks());
  std::vector<Tensor> divided = columns->parameters(), whole = widen->parameters();
  for (const Tensor& parameter : rows->parameters()) divided.push_back(parameter);
  for (const Tensor& parameter : narrow->parameters()) whole.push_back(parameter);
  const auto elements = [](const std::vector<Tensor>& tensors) {
    std::int64_t sum = 0;
    for (const Tensor& tensor : tensors) sum += tensor.numel();
    return sum;
  };
  EXPECT_EQ(elements(divided), (elements(whole) - 1) / ranks()->size() + 1) << "the last bias is whole";
  const auto found = losses_of([&](const Tensor& x) { return rows->forward(columns->forward(x).relu()); }, divided);
  const auto expected = losses_of([&](const Tensor& x) { return narrow->forward(widen->forward(x).relu()); }, whole);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  EXPECT_LT(found.back(), found.front());
}

TEST(TensorParallel, PartsThatDoNotComeOutEvenAreRefused) {
  nn::Linear layer(10, 6);
  expect_error([&] { ColumnParallelLinear(*layer, ranks()); }, "4 ranks do not divide 6 evenly");
  expect_error([&] { RowParallelLinear(*layer, ranks()); }, "4 ranks do not divide 10 evenly");
  expect_error([&] { ColumnParallelLinear(*layer, nullptr); }, "init_process_group");
  nn::Linear qkv(24, 72), out(24, 24);
  expect_error([&] { ParallelSelfAttention(*qkv, *out, ranks(), ParallelSelfAttentionOptions(24, 6)); },
               "4 ranks do not divide 6 evenly");
}

TEST(RankRandom, NumbersOfPartsAreEachRanksOwnAndThoseOfTheWholeStayTheSame) {
  manual_seed(7);
  std::vector<double> own, whole;
  const auto draw = [](std::vector<double>& to) { to.push_back(tenon::rand({64}).sum().item<double>()); };
  draw(whole);
  {
    const distributed::RankRandomGuard guard(ranks(), kCPU);
    draw(own);
    draw(own);
  }
  draw(whole);
  const auto of_all = [](const std::vector<double>& mine) {
    std::vector<double> all(2 * static_cast<std::size_t>(ranks()->size()));
    ranks()
        ->all_gather({.data = all.data(), .count = all.size(), .dtype = kFloat64},
                     {.data = const_cast<double*>(mine.data()), .count = 2, .dtype = kFloat64})
        ->wait();
    return std::set<double>(all.begin(), all.end());
  };
  EXPECT_EQ(of_all(whole).size(), 2U) << "two draws, the same on every rank";
  EXPECT_EQ(of_all(own).size(), 2 * static_cast<std::size_t>(ranks()->size())) << "of each rank its own";
  // What was drawn in between is behind the common stream: a state of the generators is the same on every rank.
  EXPECT_EQ(default_generator(kCPU).state().seed, 7U);
}

TEST(RankRandom, HeadsOfTwoRanksAreNotDroppedAlike) {
  manual_seed(3);
  const std::int64_t width = 4 * ranks()->size();
  nn::Linear qkv(width, 3 * width), out(width, width);
  const NoGradGuard no_grad;
  qkv->weight.zero_();  // every weight of attention is alike, and values are what the bias says
  qkv->bias.zero_();
  qkv->bias.narrow(0, 2 * width, width).fill_(1);
  out->weight.zero_();
  out->bias.zero_();
  for (std::int64_t i = 0; i < width; ++i) out->weight[i][i] = 1;
  nn::parallel::ParallelSelfAttention attention(
      *qkv, *out, ranks(),
      nn::parallel::ParallelSelfAttentionOptions(width, ranks()->size()).dropout(0.5).is_causal(false));
  const Tensor y = attention->forward(tenon::ones({2, 16, width}));
  for (std::int64_t head = 1; head < ranks()->size(); ++head)
    EXPECT_FALSE(tenon::equal(y.narrow(2, 0, 4), y.narrow(2, 4 * head, 4))) << head;
}

}  // namespace
}  // namespace tenon::test
