// Masters in float32: what small updates add up to, and what is left of 16-bit gradients.
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/master_weights.h>
#include <tenon/optim/sgd.h>

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

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

TEST(MasterWeights, StepOneAfterTheOtherWithOneGradientInFloat32) {
  const auto parameters = [] {
    std::vector<Tensor> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(full({1000}, 1.0, TensorOptions(kBFloat16)).set_requires_grad(true));
      all.back().mutable_grad() = full({1000}, 0.25 * (i + 1), TensorOptions(kBFloat16));
    }
    all.push_back(of_ones(kFloat32));  // its own master
    all.back().mutable_grad() = ones({4});
    return all;
  };
  const std::vector<Tensor> together = parameters(), one_by_one = parameters();
  MasterWeights first(together), second(one_by_one);
  SGD whole(first.parameters(), SGDOptions(0.1).momentum(0.9)),
      stepped(second.parameters(), SGDOptions(0.1).momentum(0.9));
  second.step(stepped);  // makes the states
  const auto gradients = [] {
    return device_state(kCPU).allocator().stats().requested_by_purpose[static_cast<std::size_t>(Purpose::kGradient)];
  };
  device_state(kCPU).allocator().reset_peak_stats();
  const std::int64_t before = gradients().current;
  second.step(stepped);
  EXPECT_EQ(gradients().peak - before, 4000) << "of one parameter";
  for (int step = 0; step < 2; ++step) {
    const std::vector<Tensor> fresh = parameters();
    for (std::size_t i = 0; i < together.size(); ++i) together[i].mutable_grad() = fresh[i].grad();
    first.take_gradients();
    whole.step();
    first.give_values();
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(together[i].detach().equal(one_by_one[i].detach())) << i;
    EXPECT_TRUE(one_by_one[i].grad().defined()) << "zero_grad() is the caller's";
  }
  EXPECT_THROW(second.step_parameter(stepped, of_ones(kBFloat16)), Error);
}

TEST(MasterWeights, ComeBackFromAnArchiveWithWhatTheParametersRoundOff) {
  const Tensor half = of_ones(kBFloat16);
  MasterWeights masters({half});
  SGD optimizer(masters.parameters(), SGDOptions(1.0 / 1024));
  half.mutable_grad() = ones({4}, TensorOptions(kBFloat16));
  masters.step(optimizer);
  OutputArchive saved;
  masters.save(saved);
  std::ostringstream bytes;
  saved.save_to(bytes);
  std::istringstream stream(bytes.str());
  InputArchive archive;
  archive.load_from(stream);
  MasterWeights read({of_ones(kBFloat16)}), other({ones({5}, TensorOptions(kBFloat16)).set_requires_grad(true)});
  read.load(archive);
  EXPECT_TRUE(read.parameters()[0].detach().equal(full({4}, 1 - 1.0 / 1024)));
  EXPECT_THROW(other.load(archive), Error) << "of another shape";
}

}  // namespace
}  // namespace tenon::test
