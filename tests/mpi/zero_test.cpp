// ZeroRedundancyOptimizer over four real ranks: states that are divided.
#include "comm/ranks.h"

#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

using testing::ElementsAre;

nn::Sequential net_of_seed(std::uint64_t seed) {
  tenon::manual_seed(seed);
  return nn::Sequential(nn::Linear(12, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 12));
}

/// A step with this rank's part of a batch that all know.
template <class Optimizer>
void train(nn::parallel::DistributedDataParallel<nn::SequentialImpl>& model, Optimizer& optimizer, int step) {
  tenon::manual_seed(static_cast<std::uint64_t>(500 + step));
  const Tensor batch = tenon::randn({16, 12}).narrow(0, 4 * ranks()->rank(), 4);
  model.zero_grad(/*set_to_none=*/true);
  model.forward(batch).pow(2).mean().backward();
  optimizer.step();
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<std::size_t>(a.numel()) * size_of(a.scalar_type())) == 0;
}

TEST(ZeroPartition, TheLargestGoFirstEachToTheRankThatHasLeast) {
  std::vector<Tensor> parameters;
  for (const std::int64_t size : {10, 100, 40, 60, 5}) parameters.push_back(tenon::zeros({size}));
  EXPECT_THAT(optim::partition_parameters(parameters, 2), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(optim::partition_parameters(parameters, 1), ElementsAre(0, 0, 0, 0, 0));
}

TEST(Zero, ItTrainsAsTheOptimizerThatRemembersEverything) {
  nn::Sequential net = net_of_seed(1), other = net_of_seed(1);
  nn::parallel::DistributedDataParallel model(net, ranks()), plain(other, ranks());
  optim::AdamW adamw(model.parameters(), optim::AdamWOptions(1e-2)),
      whole(plain.parameters(), optim::AdamWOptions(1e-2));
  optim::ZeroRedundancyOptimizer optimizer(adamw, ranks());
  for (int step = 0; step < 6; ++step) {
    train(model, optimizer, step);
    train(plain, whole, step);
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(net->parameters()[i].detach(), other->parameters()[i].detach())) << i;
}

TEST(Zero, ARankRemembersItsOwnParametersAloneAndTogetherTheyRememberAll) {
  nn::Sequential net = net_of_seed(2);
  nn::parallel::DistributedDataParallel model(net, ranks());
  optim::Adam adam(model.parameters(), optim::AdamOptions(1e-2));
  optim::ZeroRedundancyOptimizer optimizer(adam, ranks());
  train(model, optimizer, 0);
  std::int64_t own = 0, all = 0;
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    const std::int64_t bytes = 2 * 4 * net->parameters()[i].numel();  // two averages in float32
    all += bytes;
    if (optimizer.owners()[i] == ranks()->rank()) own += bytes;
    EXPECT_EQ(adam.state().contains(optim::state_key(net->parameters()[i])), optimizer.owners()[i] == ranks()->rank());
  }
  EXPECT_EQ(static_cast<std::int64_t>(optimizer.state_bytes()), own);
  const Tensor sum = tenon::full({1}, static_cast<double>(own), TensorOptions(kFloat64));
  distributed::all_reduce(*ranks(), sum)->wait();
  EXPECT_EQ(sum.item<double>(), static_cast<double>(all));
}

TEST(Zero, WhatIsSavedIsTheWholeAndGoesOnOnAnyRank) {
  nn::Sequential net = net_of_seed(3), alone = net_of_seed(3);
  nn::parallel::DistributedDataParallel model(net, ranks()), whole_model(alone, ranks());
  optim::Adam adam(model.parameters(), optim::AdamOptions(1e-2)),
      whole(whole_model.parameters(), optim::AdamOptions(1e-2));
  optim::ZeroRedundancyOptimizer optimizer(adam, ranks());
  for (int step = 0; step < 3; ++step) {
    train(model, optimizer, step);
    train(whole_model, whole, step);
  }
  optimizer.consolidate_state_dict(/*to=*/1);
  if (ranks()->rank() == 1) {
    std::stringstream saved, expected;
    OutputArchive archive, of_whole;
    adam.save(archive);
    archive.save_to(saved);
    whole.save(of_whole);
    of_whole.save_to(expected);
    EXPECT_EQ(saved.str(), expected.str());
  }
  optimizer.drop_consolidated();
  train(model, optimizer, 3);
  train(whole_model, whole, 3);
  EXPECT_TRUE(same_bits(net->parameters()[0].detach(), alone->parameters()[0].detach()));
}

TEST(Zero, StatesOfTheOthersThatAreThereAtTheBeginningGo) {
  nn::Sequential net = net_of_seed(4);
  nn::parallel::DistributedDataParallel model(net, ranks());
  optim::Adam adam(model.parameters(), optim::AdamOptions(1e-2));
  train(model, adam, 0);
  EXPECT_EQ(adam.state().size(), net->parameters().size());
  const optim::ZeroRedundancyOptimizer optimizer(adam, ranks());
  std::size_t own = 0;
  for (const int owner : optimizer.owners()) own += owner == ranks()->rank() ? 1 : 0;
  EXPECT_EQ(adam.state().size(), own);
}

}  // namespace
}  // namespace tenon::test
