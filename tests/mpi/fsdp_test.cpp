// Divided parameters and gradients over four real ranks: FullyShardedDataParallel, ZeRO 2 and 3.
#include "comm/ranks.h"
#include "mpi/divided_nets.h"
#include "support/expect_error.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/device/device_state.h>
#include <tenon/device/devices.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/distributed/fully_sharded_data_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

class Fsdp : public testing::TestWithParam<ShardingStrategy> {
 protected:
  FullyShardedDataParallelOptions options() const { return {.sharding_strategy = GetParam()}; }

  /// Six steps beside DDP's with the same optimiser.
  template <class Optimizer, class Options>
  void expect_bits_of_ddp(const Options& of_optimizer) {
    const OtherRanks ordered(kOrdered);
    nn::Sequential net = net_of_seed(1), other = net_of_seed(1);
    FullyShardedDataParallel model(net, ranks(), options());
    DistributedDataParallel plain(other, ranks());
    Optimizer inner(model.parameters(), of_optimizer), whole(plain.parameters(), of_optimizer);
    optim::ShardedOptimizer optimizer(inner, model.sharding());
    for (int step = 0; step < 6; ++step) {
      EXPECT_EQ(backward(model, step), backward(plain, step)) << step;
      optimizer.step();
      whole.step();
      optimizer.zero_grad();
      whole.zero_grad(/*set_to_none=*/true);
    }
    const std::vector<Tensor> values = values_of(*net), expected = values_of(*other);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(same_bits(values[i], expected[i])) << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, Fsdp,
                         testing::Values(ShardingStrategy::FULL_SHARD, ShardingStrategy::SHARD_GRAD_OP),
                         [](const auto& info) {
                           return info.param == ShardingStrategy::FULL_SHARD ? "Zero3" : "Zero2";
                         });

TEST_P(Fsdp, TrainsToTheBitsOfWholeParametersWithSgd) {
  expect_bits_of_ddp<optim::SGD>(optim::SGDOptions(1e-2));
  expect_bits_of_ddp<optim::SGD>(optim::SGDOptions(1e-2).momentum(0.9).weight_decay(1e-3));
}
TEST_P(Fsdp, TrainsToTheBitsOfWholeParametersWithAdam) { expect_bits_of_ddp<optim::Adam>(optim::AdamOptions(1e-2)); }
TEST_P(Fsdp, TrainsToTheBitsOfWholeParametersWithAdamW) { expect_bits_of_ddp<optim::AdamW>(optim::AdamWOptions(1e-2)); }

TEST_P(Fsdp, ItsParametersAreTheShardsUnderTheNamesOfTheModule) {
  nn::Sequential net = net_of_seed(2);
  const auto named = net->named_parameters();
  FullyShardedDataParallel model(net, ranks(), options());
  const auto shards = model.named_parameters();
  ASSERT_EQ(shards.size(), named.size());
  std::int64_t own = 0, all = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(shards[i].key(), named[i].key());
    EXPECT_EQ(shards[i].value().dim(), 1);
    own += shards[i].value().numel();
    all += named[i].value().numel();
  }
  EXPECT_NEAR(static_cast<double>(own), static_cast<double>(all) / 4,
              6);  // padding: under 4 elements of each of 3 units
}

TEST_P(Fsdp, GradientsThatAddUpAreThoseOfOnePass) {
  nn::Sequential net = net_of_seed(3), other = net_of_seed(3);
  FullyShardedDataParallel model(net, ranks(), options()), quiet(other, ranks(), options());
  for (int step = 0; step < 3; ++step) backward(model, step);
  {
    const auto guard = quiet.no_sync();
    backward(quiet, 0);
    backward(quiet, 1);
  }
  backward(quiet, 2);
  EXPECT_EQ(model.sharding()->stats().bytes, 3 * quiet.sharding()->stats().bytes);
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const Tensor gradient = model.parameters()[i].grad();
    ASSERT_EQ(gradient.defined(), model.parameters()[i].numel() > 0);
    EXPECT_TRUE(!gradient.defined() || gradient.allclose(quiet.parameters()[i].grad())) << i;
  }
}

TEST_P(Fsdp, ClippedGradientsHaveTheNormOfTheWholeModel) {
  nn::Sequential net = net_of_seed(4), other = net_of_seed(4);
  FullyShardedDataParallel model(net, ranks(), options());
  DistributedDataParallel plain(other, ranks());
  backward(model, 0);
  backward(plain, 0);
  const double norm = nn::utils::clip_grad_norm_(plain.parameters(), 0.01);
  EXPECT_NEAR(model.clip_grad_norm_(0.01), norm, 1e-6 * norm);
  EXPECT_NEAR(model.clip_grad_norm_(1.0), 0.01, 1e-6);
}

TEST_P(Fsdp, AnOverflowThatOneRankSeesLeavesTheStepOutOnAll) {
  nn::Sequential net = net_of_seed(15);
  FullyShardedDataParallel model(net, ranks(), options());
  optim::SGD sgd(model.parameters(), optim::SGDOptions(0.1));
  optim::ShardedOptimizer optimizer(sgd, model.sharding());
  optim::GradScaler scaler;
  scaler.set_agreement([](bool found) {
    std::uint8_t any = found ? 1 : 0;
    ranks()->all_reduce({.data = &any, .count = 1, .dtype = kUInt8}, ReduceOp::kMax)->wait();
    return any != 0;
  });
  for (const bool overflows : {true, false}) {
    scaler.scale(model.forward(batch_of(0)).pow(2).mean()).backward();
    if (overflows && ranks()->rank() == 2) {
      const std::vector<Tensor> shards = model.parameters();
      std::ranges::find_if(shards, [](const Tensor& one) { return one.grad().defined(); })->grad().fill_(INFINITY);
    }
    bool has_stepped = false;
    scaler.step_by(sgd, [&] {
      optimizer.step();
      has_stepped = true;
    });
    scaler.update();
    optimizer.zero_grad();
    EXPECT_NE(has_stepped, overflows);
    EXPECT_EQ(scaler.get_scale(), 32768);
  }
}

TEST_P(Fsdp, WhatIsSavedIsWholeAndGoesOnAlone) {
  const OtherRanks ordered(kOrdered);
  nn::Sequential net = net_of_seed(5), other = net_of_seed(5);
  FullyShardedDataParallel model(net, ranks(), options());
  DistributedDataParallel plain(other, ranks());
  optim::AdamW inner(model.parameters(), optim::AdamWOptions(1e-2)),
      whole(plain.parameters(), optim::AdamWOptions(1e-2));
  optim::ShardedOptimizer optimizer(inner, model.sharding());
  for (int step = 0; step < 3; ++step) {
    backward(model, step);
    backward(plain, step);
    optimizer.step();
    whole.step();
    optimizer.zero_grad();
    whole.zero_grad(/*set_to_none=*/true);
  }
  optimizer.consolidate_state_dict(/*to=*/2);
  std::string saved;
  model.save_whole(
      [&](const nn::Module& module) {
        OutputArchive archive, states;
        module.save(archive);
        inner.save(states);
        archive.write("states", states);
        std::stringstream stream;
        archive.save_to(stream);
        saved = stream.str();
      },
      /*to=*/2);
  optimizer.drop_consolidated();
  EXPECT_EQ(saved.empty(), ranks()->rank() != 2);
  if (ranks()->rank() == 2) {
    OutputArchive archive, states;
    other->save(archive);
    whole.save(states);
    archive.write("states", states);
    std::stringstream expected;
    archive.save_to(expected);
    EXPECT_EQ(saved, expected.str());
  }
  backward(model, 3);  // and goes on as it was
  backward(plain, 3);
  optimizer.step();
  whole.step();
  EXPECT_TRUE(same_bits(values_of(*net)[0], values_of(*other)[0]));
}

TEST_P(Fsdp, AnOptimizerThatRemembersWholeParametersIsCutAlike) {
  const OtherRanks ordered(kOrdered);
  nn::Sequential net = net_of_seed(6), other = net_of_seed(6);
  DistributedDataParallel first(net, ranks()), plain(other, ranks());
  optim::Adam adam(first.parameters(), optim::AdamOptions(1e-2)), whole(plain.parameters(), optim::AdamOptions(1e-2));
  backward(first, 0);
  backward(plain, 0);
  adam.step();
  whole.step();
  adam.zero_grad(/*set_to_none=*/true);
  whole.zero_grad(/*set_to_none=*/true);
  // The same module divided from its second step on.
  const auto sharding = std::make_shared<distributed::Sharding>(
      *net, ranks(), distributed::ShardingOptions{.parameters = GetParam() == ShardingStrategy::FULL_SHARD});
  optim::ShardedOptimizer optimizer(adam, sharding);
  net->forward(batch_of(1)).pow(2).mean().backward();
  backward(plain, 1);
  optimizer.step();
  whole.step();
  EXPECT_TRUE(same_bits(values_of(*net)[2], values_of(*other)[2]));
}

TEST_P(Fsdp, ParametersThatNoRankUsedKeepNoGradient) {
  nn::Linear used(12, 12), idle(12, 12);
  nn::ModuleDict both;
  struct Pair : nn::Module {
    Pair(nn::Linear one, nn::Linear two)
        : one(register_module("layer0", std::move(one))), two(register_module("layer1", std::move(two))) {}
    Tensor forward(const Tensor& x) { return one->forward(x); }
    nn::Linear one, two;
  };
  FullyShardedDataParallelOptions with = options();
  with.find_unused_parameters = true;
  FullyShardedDataParallel<Pair> model(std::make_shared<Pair>(used, idle), ranks(), with);
  backward(model, 0);
  for (const auto& named : model.named_parameters())
    EXPECT_EQ(named.value().grad().defined(), named.key().starts_with("layer0") && named.value().numel() > 0)
        << named.key();

  FullyShardedDataParallel<Pair> strict(std::make_shared<Pair>(nn::Linear(12, 12), nn::Linear(12, 12)), ranks(),
                                        options());
  backward(strict, 0);
  expect_error([&] { strict.forward(batch_of(1)); }, "2 of 4 parameters got no gradient (layer1.weight, layer1.bias)");
}

TEST_P(Fsdp, OperatorsOnParametersOfSeveralUnitsFindThemAll) {
  nn::Sequential net = net_of_seed(7), other = net_of_seed(7);
  distributed::broadcast_coalesced(*ranks(), other->parameters(), 0);
  FullyShardedDataParallel model(net, ranks(), options());
  const auto flat = [](const nn::Module& module) {
    std::vector<Tensor> all;
    for (const Tensor& parameter : module.parameters()) all.push_back(parameter.detach().reshape({-1}));
    return tenon::cat(all);
  };
  EXPECT_TRUE(same_bits(flat(*net), flat(*other)));
  EXPECT_TRUE(same_bits(flat(*net), flat(*other)));
}

TEST_P(Fsdp, GradientsAreReducedWhileBackwardGoesOn) {
  nn::Sequential net = net_of_seed(8);
  FullyShardedDataParallel model(net, ranks(), options());
  std::int64_t sent = -1;
  Tensor x = batch_of(0).requires_grad_();
  const Tensor y = net->forward(x);
  // The first layer's gradient comes last: what was sent by then went beside backward.
  x.register_hook([&](const Tensor&) { sent = ranks()->stats().calls_of(CommKind::kReduceScatter); });
  const std::int64_t before = ranks()->stats().calls_of(CommKind::kReduceScatter);
  y.pow(2).mean().backward();
  EXPECT_GE(sent - before, 2);
  EXPECT_EQ(ranks()->stats().calls_of(CommKind::kReduceScatter) - before, 3);
}

TEST_P(Fsdp, MemoryOfARankIsWhatTheorySays) {
  const bool is_zero3 = GetParam() == ShardingStrategy::FULL_SHARD;
  const std::int64_t parameters_before = bytes_for(Purpose::kParameter, false),
                     gradients_before = bytes_for(Purpose::kGradient, false),
                     states_before = bytes_for(Purpose::kOptimizerState, false);
  nn::Sequential net = wide_net();
  const auto theory = distributed::sharding_bytes(*net, 4, distributed::ShardingOptions{.parameters = is_zero3});
  const double whole = 8 * (256.0 * 256 + 256) * 4, layer = whole / 8;
  EXPECT_NEAR(static_cast<double>(theory.parameters), is_zero3 ? whole / 4 + 2 * layer : whole, 0.001 * whole);
  EXPECT_NEAR(static_cast<double>(theory.gradients), whole / 4 + 3 * layer, 0.002 * whole);
  FullyShardedDataParallel model(net, ranks(), options());
  optim::AdamW inner(model.parameters(), optim::AdamWOptions(1e-3));
  optim::ShardedOptimizer optimizer(inner, model.sharding());
  AllocatorStack& allocator = device_state(Device(kCPU)).allocator();
  const auto near = [](std::int64_t measured, double expected, const char* what) {
    EXPECT_NEAR(static_cast<double>(measured), expected, 0.03 * expected) << what;
  };
  near(bytes_for(Purpose::kParameter, false) - parameters_before, is_zero3 ? whole / 4 : whole, "parameters");
  for (int step = 0; step < 3; ++step) {
    allocator.reset_peak_stats();
    model.forward(tenon::randn({1, 256})).pow(2).mean().backward();
    near(bytes_for(Purpose::kGradient, false) - gradients_before, whole / 4, "gradients after backward");
    optimizer.step();
    optimizer.zero_grad();
    near(bytes_for(Purpose::kParameter, true) - parameters_before, static_cast<double>(theory.parameters),
         "parameters");
    near(bytes_for(Purpose::kGradient, true) - gradients_before, static_cast<double>(theory.gradients), "gradients");
    near(bytes_for(Purpose::kOptimizerState, true) - states_before, 2 * whole / 4, "states");
    EXPECT_EQ(bytes_for(Purpose::kGradient, false), gradients_before);
  }
}

}  // namespace
}  // namespace tenon::test
