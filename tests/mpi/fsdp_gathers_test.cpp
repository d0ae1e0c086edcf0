// When the units of divided parameters are gathered, and what is refused.
#include "comm/ranks.h"
#include "mpi/divided_nets.h"
#include "support/expect_error.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

TEST(FsdpGathers, AUnitIsGatheredForwardAndBackwardAndTheLastOneOnce) {
  nn::Sequential net = wide_net();
  FullyShardedDataParallel model(net, ranks());
  const auto train = [&] { model.forward(tenon::randn({1, 256})).pow(2).mean().backward(); };
  train();
  const std::int64_t first = model.sharding()->gathers();
  train();
  // 8 forward, 6 backward: the last is still there, and nothing asks for a gradient of what the first one read.
  EXPECT_EQ(first, 14);
  EXPECT_EQ(model.sharding()->gathers(), 28);
}

TEST(FsdpGathers, WithoutPrefetchTheBitsAreTheSame) {
  nn::Sequential net = net_of_seed(10), other = net_of_seed(10);
  FullyShardedDataParallel model(net, ranks()), slow(other, ranks(), {.prefetch = false});
  EXPECT_EQ(backward(model, 0), backward(slow, 0));
  expect_same_gradients(model, slow);
}

TEST(FsdpGathers, CheckpointedPartsGatherForTheirSecondRun) {
  nn::Sequential net = net_of_seed(11), other = net_of_seed(11);
  FullyShardedDataParallel model(net, ranks()), plain(other, ranks());
  const Tensor x = batch_of(0);
  tenon::checkpoint([&](const Tensor& t) { return net->forward(t); }, x.clone().requires_grad_())
      .pow(2)
      .mean()
      .backward();
  plain.forward(x).pow(2).mean().backward();
  expect_same_gradients(model, plain);
}

TEST(FsdpGathers, WithoutGradientsUnitsComeAndGo) {
  nn::Sequential net = wide_net();
  const std::int64_t before = bytes_for(Purpose::kParameter, false);
  FullyShardedDataParallel model(net, ranks());
  const NoGradGuard no_grad;
  model.forward(tenon::randn({1, 256}));
  model.forward(tenon::randn({1, 256}));
  model.sharding()->give_back();
  EXPECT_LT(bytes_for(Purpose::kParameter, false) - before, 1);
}

TEST(FsdpErrors, AParameterThatNobodyGathersAnyMoreIsAnErrorToRead) {
  nn::Sequential net = net_of_seed(13);
  { const FullyShardedDataParallel model(net, ranks()); }
  expect_error([&] { net->forward(batch_of(0)); }, "what divided it is gone: keep the FullyShardedDataParallel");
}

TEST(FsdpErrors, AModuleOnSeveralDevicesIsRefused) {
  nn::Sequential net = net_of_seed(14);
  net[2]->to(Device("meta"));
  expect_error([&] { distributed::Sharding(*net, ranks()); }, "'0.weight' is on cpu, and '2.weight' on meta");
}

TEST(FsdpErrors, StatesInEightBitsAreRefused) {
  nn::Sequential net = net_of_seed(12);
  FullyShardedDataParallel model(net, ranks());
  optim::Adam adam(model.parameters(), optim::AdamOptions(1e-3));
  adam.store_states({.in_8_bits = true});
  expect_error([&] { optim::ShardedOptimizer(adam, model.sharding()); },
               "states in 8 bits are kept by blocks of 256 values");
}

}  // namespace
}  // namespace tenon::test
