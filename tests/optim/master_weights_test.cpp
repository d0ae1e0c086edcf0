// Masters in float32: what small updates add up to, and what is left of 16-bit gradients.
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/master_weights.h>
#include <tenon/optim/sgd.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using optim::MasterWeights;
using optim::SGD;
using optim::SGDOptions;

Tensor of_ones(Dtype dtype) { return ones({4}, TensorOptions(dtype)).set_requires_grad(true); }

TEST(MasterWeights, AddUpWhat16BitsWouldLose) {
  const Tensor alone = of_ones(kBFloat16), mastered = of_ones(kBFloat16);
  SGD plain({alone}, SGDOptions(1.0 / 1024));
  MasterWeights masters({mastered});
  SGD optimizer(masters.parameters(), SGDOptions(1.0 / 1024));
  for (int step = 0; step < 512; ++step) {
    alone.mutable_grad() = ones({4}, TensorOptions(kBFloat16));
    plain.step();
    mastered.mutable_grad() = ones({4}, TensorOptions(kBFloat16));
    masters.take_gradients();
    EXPECT_FALSE(mastered.grad().defined());
    optimizer.step();
    masters.give_values();
  }
  EXPECT_TRUE(alone.detach().equal(ones({4}, TensorOptions(kBFloat16)))) << "each update is below what it resolves";
  EXPECT_TRUE(mastered.detach().equal(full({4}, 0.5, TensorOptions(kBFloat16))));
}

TEST(MasterWeights, AreOnlyOfParametersIn16Bits) {
  const Tensor half = of_ones(kFloat16), single = of_ones(kFloat32);
  MasterWeights masters({single, half});
  EXPECT_TRUE(masters.parameters()[0].is_same(single));
  EXPECT_EQ(masters.parameters()[1].scalar_type(), kFloat32);
  EXPECT_TRUE(masters.parameters()[1].requires_grad());
  single.mutable_grad() = ones({4});
  masters.take_gradients();
  EXPECT_TRUE(single.grad().defined());
  EXPECT_FALSE(masters.parameters()[1].grad().defined()) << "its parameter had none";
}

TEST(MasterWeights, CountAsStateOfTheOptimiser) {
  const auto state = [] {
    return device_state(kCPU).allocator().stats().requested_by_purpose[static_cast<std::size_t>(
        Purpose::kOptimizerState)];
  };
  const Tensor half = ones({1000}, TensorOptions(kFloat16)).set_requires_grad(true);
  const std::int64_t before = state().current;
  const MasterWeights masters({half});
  EXPECT_EQ(state().current - before, 4000);
}

}  // namespace
}  // namespace tenon::test
