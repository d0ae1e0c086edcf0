// The optimiser inside backward: the same parameters to the last bit, and no gradient left.
#include <tenon/autograd/autograd.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace tenon::test {
namespace {

using optim::Optimizer;
using optim::OptimizerInBackward;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;

nn::Sequential network() {
  manual_seed(11);
  return nn::Sequential(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 3));
}

/// Three steps; the parameters afterwards.
std::vector<Tensor> trained(const Make& make, bool in_backward) {
  nn::Sequential net = network();
  const auto optimizer = make(net->parameters());
  std::optional<OptimizerInBackward> updates;
  if (in_backward) updates.emplace(*optimizer);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = randn({5, 6});
    net->forward(x).square().mean().backward();
    if (!in_backward) {
      optimizer->step();
      optimizer->zero_grad(/*set_to_none=*/true);
    }
    for (const Tensor& parameter : net->parameters()) EXPECT_FALSE(parameter.grad().defined());
  }
  return net->parameters();
}

TEST(OptimizerInBackward, GivesTheSameParametersAsAStepAfterIt) {
  const std::vector<Make> optimizers = {
      [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9)); },
      [](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.01).amsgrad(true)); },
      [](auto p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01)); },
      [](auto p) { return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(0.01)); },
      [](auto p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(0.1)); }};
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    const auto after = trained(optimizers[i], false), inside = trained(optimizers[i], true);
    for (std::size_t k = 0; k < after.size(); ++k) EXPECT_TRUE(after[k].equal(inside[k])) << i << ", parameter " << k;
    EXPECT_FALSE(after[0].equal(network()->parameters()[0]));
  }
}

TEST(OptimizerInBackward, HoldsOneGradientAtATime) {
  nn::Sequential net = network();
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1));
  std::size_t most = 0, updates = 0;
  const OptimizerInBackward inside(sgd, [&](const Tensor& parameter) {
    std::size_t there = 0;
    for (const Tensor& each : net->parameters()) there += each.grad().defined() ? 1 : 0;
    most = std::max(most, there);
    ++updates;
    sgd.step_parameter(parameter);
  });
  net->forward(randn({5, 6})).square().mean().backward();
  EXPECT_EQ(most, 1u);
  EXPECT_EQ(updates, 6u);
}

TEST(OptimizerInBackward, UpdatesAParameterThatIsUsedTwiceOnce) {
  const Tensor shared = randn({4, 4}, requires_grad());
  const Tensor before = shared.detach().clone();
  optim::SGD sgd({shared}, optim::SGDOptions(1.0));
  int updates = 0;
  const OptimizerInBackward inside(sgd, [&](const Tensor& parameter) {
    ++updates;
    sgd.step_parameter(parameter);
  });
  const Tensor x = randn({4, 4});
  const Tensor other = before.clone().requires_grad_();
  x.mm(other).tanh().mm(other).sum().backward();
  x.mm(shared).tanh().mm(shared).sum().backward();
  EXPECT_EQ(updates, 1);
  EXPECT_TRUE(shared.detach().equal(before - other.grad()));
}

TEST(OptimizerInBackward, EndsWithItsScope) {
  const Tensor x = ones({2}, requires_grad());
  optim::SGD sgd({x}, optim::SGDOptions(1.0));
  {
    const OptimizerInBackward inside(sgd);
    x.sum().backward();
    EXPECT_TRUE(x.detach().equal(zeros({2})));
    EXPECT_FALSE(x.grad().defined());
  }
  x.sum().backward();
  EXPECT_TRUE(x.detach().equal(zeros({2})));
  EXPECT_TRUE(x.grad().equal(ones({2})));
}

TEST(StepParameter, UpdatesOneAndKeepsTheOptionsOfItsGroup) {
  const Tensor slow = ones({2}, requires_grad()), fast = ones({2}, requires_grad());
  optim::SGD sgd({optim::OptimizerParamGroup({slow}, std::make_unique<optim::SGDOptions>(0.25)),
                  optim::OptimizerParamGroup({fast}, std::make_unique<optim::SGDOptions>(0.5))},
                 optim::SGDOptions(1.0));
  (slow.sum() + fast.sum()).backward();
  sgd.step_parameter(fast);
  EXPECT_TRUE(fast.detach().equal(full({2}, 0.5)));
  EXPECT_TRUE(slow.detach().equal(ones({2})));
  EXPECT_EQ(sgd.param_groups().size(), 2u);
  EXPECT_THROW(sgd.step_parameter(ones({2}, requires_grad())), Error);
  EXPECT_EQ(sgd.param_groups().size(), 2u);
}

}  // namespace
}  // namespace tenon::test
