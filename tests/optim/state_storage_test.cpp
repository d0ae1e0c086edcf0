// Where and as what an optimiser's states live between steps: 8 bits by blocks, host memory, and both.
#include "support/expect_error.h"

#include <tenon/device/device_state.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/kernel/dynamic_map.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/nn.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/all_ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>

namespace tenon::test {
namespace {

using optim::Optimizer;
using optim::StateStorageOptions;
using quantized::pack_blocks;
using quantized::packed_bytes;
using quantized::unpack_blocks;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;

const Device kOther("simulated:0");

const std::vector<Make>& optimizers() {
  static const std::vector<Make> all = {
      [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.02).momentum(0.9)); },
      [](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.01).amsgrad(true)); },
      [](auto p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01)); },
      [](auto p) { return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(0.001).momentum(0.9)); },
      [](auto p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(0.1)); }};
  return all;
}

TEST(DynamicMap, HasTheNumbersOfBitsandbytes) {
  const auto with_sign = dynamic_map(true), without = dynamic_map(false);
  EXPECT_FLOAT_EQ(with_sign[0], -0.99296875F);
  EXPECT_FLOAT_EQ(with_sign[1], -0.97890625F);
  EXPECT_EQ(with_sign[127], 0);
  EXPECT_FLOAT_EQ(with_sign[128], 5.5e-7F);
  EXPECT_EQ(with_sign[255], 1);
  EXPECT_EQ(without[0], 0);
  EXPECT_FLOAT_EQ(without[1], 3.25e-7F);
  EXPECT_FLOAT_EQ(without[2], 7.75e-7F);
  EXPECT_FLOAT_EQ(without[254], 0.1F + 0.9F * 127.5F / 128);
  for (std::size_t i = 1; i < 256; ++i) EXPECT_LT(without[i - 1], without[i]) << i;
}

/// Values of many magnitudes: the last block is shorter, one is all zeros.
Tensor spread(std::int64_t count, bool is_signed) {
  Tensor values = randn({count}).mul(randn({count}).mul(4).exp());
  values.narrow(0, 256, 256).zero_();
  return is_signed ? values : values.abs();
}

TEST(PackedBlocks, HoldTheNearestNumberOfTheMap) {
  manual_seed(5);
  for (const bool is_signed : {true, false}) {
    const auto map = dynamic_map(is_signed);
    const Tensor values = spread(3000, is_signed);
    const Tensor packed = pack_blocks(values, is_signed);
    EXPECT_EQ(packed.numel(), 3000 + 4 * 12);
    const Tensor back = unpack_blocks(packed, values, is_signed);
    for (std::int64_t first = 0; first < 3000; first += 256) {
      const std::int64_t last = std::min<std::int64_t>(3000, first + 256);
      float largest = 0;
      for (std::int64_t i = first; i < last; ++i) largest = std::max(largest, std::fabs(values.data_ptr<float>()[i]));
      for (std::int64_t i = first; i < last; ++i) {
        const float x = values.data_ptr<float>()[i], y = back.data_ptr<float>()[i];
        float least = std::numeric_limits<float>::infinity();
        for (const float number : map) least = std::min(least, std::fabs(number * largest - x));
        EXPECT_LE(std::fabs(y - x), least * 1.0001F + 1e-7F * largest) << i;
      }
    }
  }
}

TEST(PackedBlocks, AreTheSameWithoutAKernel) {
  manual_seed(6);
  device_state(kCPU);  // whose backend has the kernels
  const Kernel pack = find_kernel(kCPU, intern_operator("pack_blocks"));
  const Kernel unpack = find_kernel(kCPU, intern_operator("unpack_blocks"));
  ASSERT_NE(pack, nullptr);
  for (const bool is_signed : {true, false}) {
    Tensor values = spread(70'000, is_signed);  // of more than one part
    values.data_ptr<float>()[700] = std::numeric_limits<float>::quiet_NaN();
    values.data_ptr<float>()[2000] = std::numeric_limits<float>::infinity();
    const Tensor packed = pack_blocks(values, is_signed), back = unpack_blocks(packed, values, is_signed);
    register_kernel(kCPU, "pack_blocks", nullptr);
    register_kernel(kCPU, "unpack_blocks", nullptr);
    const Tensor other = pack_blocks(values, is_signed), other_back = unpack_blocks(packed, values, is_signed);
    register_kernel(kCPU, "pack_blocks", pack);
    register_kernel(kCPU, "unpack_blocks", unpack);
    EXPECT_TRUE(packed.narrow(0, 4 * 274, 70'000).equal(other.narrow(0, 4 * 274, 70'000)));
    EXPECT_TRUE(back.allclose(other_back, 0, 0, /*equal_nan=*/true));
    EXPECT_TRUE(back.allclose(unpack_blocks(other, values, is_signed), 0, 0, true));
    EXPECT_TRUE(std::isnan(back.data_ptr<float>()[600])) << "a block with a nan";
    EXPECT_TRUE(std::isnan(back.data_ptr<float>()[2000]));
    EXPECT_TRUE(std::isfinite(back.data_ptr<float>()[100]));
  }
}

TEST(PackedBlocks, KeepTheLayoutAndTheDtype) {
  const Tensor weight = randn({8, 16, 3, 3}).to(kFloat64).contiguous(MemoryFormat::ChannelsLast);
  const Tensor back = unpack_blocks(pack_blocks(weight, true), weight, true);
  EXPECT_EQ(back.strides(), weight.strides());
  EXPECT_EQ(back.scalar_type(), kFloat64);
  EXPECT_TRUE(back.allclose(weight, 0, 0.1));
  expect_error([&] { pack_blocks(weight.to(kInt64), true); }, "pack_blocks");
  expect_error([&] { pack_blocks(weight.narrow(1, 0, 3), true); }, "holes");
  expect_error([&] { unpack_blocks(zeros({7}, TensorOptions(kUInt8)), weight, true); },
               "1152 values are a row of 1172 bytes");
}

nn::Sequential network(Device device) {
  manual_seed(11);
  nn::Sequential net(nn::Linear(64, 128), nn::Tanh(), nn::Linear(128, 3));
  net->to(device);
  return net;
}

struct Trained {
  std::vector<Tensor> parameters;
  std::vector<double> losses;
};

void take_steps(nn::Sequential& net, Optimizer& optimizer, int steps, std::vector<double>& losses) {
  const Device device = net->parameters()[0].device();
  for (int step = 0; step < steps; ++step) {
    const Tensor x = randn({16, 64}).to(device, kFloat32);
    const Tensor loss = net->forward(x).sub(x.narrow(1, 0, 3)).square().mean();
    loss.backward();
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/true);
    losses.push_back(loss.item<double>());
  }
}

Trained trained(const Make& make, const StateStorageOptions& options, Device device, int steps = 5) {
  nn::Sequential net = network(device);
  const auto optimizer = make(net->parameters());
  optimizer->store_states(options);
  Trained result;
  take_steps(net, *optimizer, steps, result.losses);
  result.parameters = net->parameters();
  return result;
}

TEST(StatesOnTheHost, ChangeNoBitOfAnyOptimiser) {
  for (std::size_t i = 0; i < optimizers().size(); ++i) {
    const Trained here = trained(optimizers()[i], {}, kOther);
    const Trained away = trained(optimizers()[i], {.on_host = true}, kOther);
    EXPECT_EQ(here.losses, away.losses) << i;
    for (std::size_t k = 0; k < here.parameters.size(); ++k)
      EXPECT_TRUE(here.parameters[k].equal(away.parameters[k])) << i << ", parameter " << k;
  }
}

TEST(StatesOnTheHost, LeaveTheDeviceBetweenSteps) {
  const auto state = [] {
    return device_state(kOther).allocator().stats().requested_by_purpose[static_cast<std::size_t>(
        Purpose::kOptimizerState)];
  };
  for (const bool in_8_bits : {false, true}) {
    nn::Sequential net = network(kOther);
    optim::AdamW adam(net->parameters(), optim::AdamWOptions(0.01));
    adam.store_states({.in_8_bits = in_8_bits, .on_host = true});
    std::vector<double> losses;
    take_steps(net, adam, 1, losses);
    const std::int64_t before = state().current;
    device_state(kOther).allocator().reset_peak_stats();
    take_steps(net, adam, 2, losses);
    EXPECT_EQ(state().current, before);
    const std::int64_t crossing = in_8_bits ? packed_bytes(64 * 128) : 0;
    EXPECT_EQ(state().peak - before, 2 * 4 * 64 * 128 + crossing) << "of the largest parameter";
  }
}

TEST(StatesIn8Bits, TakeAQuarterAndSmallTensorsStay) {
  nn::Sequential net = network(kCPU);
  optim::AdamW adam(net->parameters(), optim::AdamWOptions(0.01));
  adam.store_states({.in_8_bits = true});
  std::vector<double> losses;
  take_steps(net, adam, 2, losses);
  const auto state_of = [&](const Tensor& parameter) -> optim::AdamWParamState& {
    return static_cast<optim::AdamWParamState&>(*adam.state().at(optim::state_key(parameter)));
  };
  const auto parameters = net->parameters();
  EXPECT_EQ(state_of(parameters[0]).exp_avg().nbytes(), 64u * 128 + 4 * 32);
  EXPECT_EQ(state_of(parameters[0]).exp_avg_sq().scalar_type(), kUInt8);
  EXPECT_EQ(state_of(parameters[0]).step(), 2);
  EXPECT_EQ(state_of(parameters[1]).exp_avg().scalar_type(), kFloat32);
  EXPECT_EQ(state_of(parameters[1]).exp_avg().sizes(), parameters[1].sizes());
}

TEST(StatesIn8Bits, AreThoseOfFloatingParametersOfTheSmallestSizeOrMore) {
  const optim::StateStorage packed(StateStorageOptions{.in_8_bits = true, .smallest_in_8_bits = 6});
  EXPECT_FALSE(packed.packs(zeros({5})));
  EXPECT_TRUE(packed.packs(zeros({2, 3})));
  EXPECT_TRUE(packed.packs(zeros({7}, TensorOptions(kFloat64))));
  EXPECT_FALSE(packed.packs(zeros({7}, TensorOptions(kInt64))));
  EXPECT_FALSE(optim::StateStorage(StateStorageOptions{.on_host = true, .smallest_in_8_bits = 6}).packs(zeros({7})));
}

TEST(StatesIn8Bits, LearnAsFullOnesDo) {
  for (std::size_t i = 0; i < optimizers().size(); ++i) {
    const Trained full = trained(optimizers()[i], {}, kCPU, 40);
    const Trained packed = trained(optimizers()[i], {.in_8_bits = true}, kCPU, 40);
    EXPECT_NE(full.losses, packed.losses) << i;
    const double first = full.losses.front(), last = full.losses.back();
    ASSERT_LT(last, first) << i;
    EXPECT_NEAR(packed.losses.back(), last, 0.05 * first) << i;
  }
}

/// What is saved after 3 steps and loaded into `after` goes on as `before` does, which was never saved.
std::vector<double> resumed(const StateStorageOptions& before, const StateStorageOptions& after,
                            std::vector<double>& whole) {
  const auto make = [](nn::Sequential& net) {
    return std::make_unique<optim::AdamW>(net->parameters(), optim::AdamWOptions(0.01));
  };
  nn::Sequential net = network(kOther);
  const auto optimizer = make(net);
  optimizer->store_states(before);
  take_steps(net, *optimizer, 3, whole);
  std::stringstream file;
  OutputArchive out, model;
  optimizer->save(out);
  net->save(model);
  out.write("model", model);
  out.save_to(file);
  manual_seed(21);
  take_steps(net, *optimizer, 3, whole);

  InputArchive in, saved_model;
  in.load_from(file, kOther);
  nn::Sequential other = network(kOther);
  const auto goes_on = make(other);
  goes_on->store_states(after);
  in.read("model", saved_model);
  other->load(saved_model);
  goes_on->load(in);
  manual_seed(21);
  std::vector<double> losses(whole.begin(), whole.begin() + 3);
  take_steps(other, *goes_on, 3, losses);
  return losses;
}

TEST(StateStorage, GoesOnAfterLoadingToTheBit) {
  const StateStorageOptions here, away{.on_host = true}, packed{.in_8_bits = true},
      packed_away{.in_8_bits = true, .on_host = true};
  for (const auto& [before, after] :
       std::vector<std::pair<StateStorageOptions, StateStorageOptions>>{{away, away},
                                                                        {packed, packed},
                                                                        {packed_away, packed_away},
                                                                        {here, away},
                                                                        {away, here},
                                                                        {packed, packed_away},
                                                                        {packed_away, packed}}) {
    std::vector<double> whole;
    const std::vector<double> losses = resumed(before, after, whole);
    EXPECT_EQ(losses, whole) << before.in_8_bits << before.on_host << after.in_8_bits << after.on_host;
  }
  std::vector<double> whole;
  const std::vector<double> unpacked = resumed(packed, here, whole);
  EXPECT_EQ(unpacked[3], whole[3]) << "the states of the next step are those that were packed";
  EXPECT_NEAR(unpacked[5], whole[5], 0.1 * whole[5]);
}

TEST(StateStorage, MovesStatesThatAreThere) {
  nn::Sequential net = network(kOther);
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  take_steps(net, sgd, 2, losses);
  const auto buffer = [&] {
    return static_cast<optim::SGDParamState&>(*sgd.state().at(optim::state_key(net->parameters()[0])))
        .momentum_buffer();
  };
  const Tensor before = buffer();
  sgd.store_states({.on_host = true});
  EXPECT_TRUE(buffer().device().is_cpu());
  EXPECT_TRUE(buffer().is_pinned());
  sgd.store_states({});
  EXPECT_EQ(buffer().device(), before.device());
  EXPECT_TRUE(buffer().equal(before));
}

TEST(StateStorage, IsRefusedWhereStatesHaveNoTensorsOfAParameter) {
  optim::LBFGS lbfgs(network(kCPU)->parameters());
  expect_error([&] { lbfgs.store_states({.in_8_bits = true}); }, "name no tensors");
}

TEST(StateStorage, AFailedUpdateLeavesTheStateAsItWas) {
  const Tensor weight = randn({64, 128}).requires_grad_();
  optim::SGD sgd({weight}, optim::SGDOptions(0.1).momentum(0.9));
  sgd.store_states({.in_8_bits = true});
  weight.square().sum().backward();
  sgd.step();
  auto& state = static_cast<optim::SGDParamState&>(*sgd.state().at(optim::state_key(weight)));
  const Tensor before = state.momentum_buffer();
  const Tensor gradient = weight.grad();
  weight.mutable_grad() = gradient.to(kFloat64);
  EXPECT_THROW(sgd.step(), Error);
  EXPECT_TRUE(state.momentum_buffer().is_same(before));
}

}  // namespace
}  // namespace tenon::test
