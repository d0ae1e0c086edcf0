// Optimisers against their formulas, and resumed runs against uninterrupted ones.
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

/// x minimises (x - 3)^2 / 2, element by element.
void step(const Tensor& x, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  ((x - 3).square() * 0.5).sum().backward();
  optimizer.step();
}

TEST(Sgd, FollowsItsFormula) {
  for (const bool nesterov : {false, true}) {
    const Tensor x = tenon::tensor({1.0, -2.0}, TensorOptions(kFloat64)).requires_grad_();
    optim::SGD sgd({x}, optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
    double p = 1, buffer = 0;
    for (int i = 0; i < 5; ++i) {
      step(x, sgd);
      const double g = (p - 3) + 0.01 * p;
      buffer = i == 0 ? g : 0.9 * buffer + g;
      p -= 0.1 * (nesterov ? g + 0.9 * buffer : buffer);
      EXPECT_NEAR(x[0].item<double>(), p, 1e-12) << "step " << i << ", nesterov " << nesterov;
    }
  }
}

TEST(Adam, FollowsItsFormulaCoupledAndDecoupled) {
  for (const bool decoupled : {false, true}) {
    const Tensor x = tenon::tensor({1.0}, TensorOptions(kFloat64)).requires_grad_();
    std::unique_ptr<optim::Optimizer> adam;
    if (decoupled) {
      adam = std::make_unique<optim::AdamW>(std::vector<Tensor>{x}, optim::AdamWOptions(0.1).weight_decay(0.05));
    } else {
      adam = std::make_unique<optim::Adam>(std::vector<Tensor>{x}, optim::AdamOptions(0.1).weight_decay(0.05));
    }
    double p = 1, m = 0, v = 0;
    for (int i = 1; i <= 5; ++i) {
      step(x, *adam);
      double g = p - 3;
      if (decoupled) {
        p *= 1 - 0.1 * 0.05;
      } else {
        g += 0.05 * p;
      }
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      p -= 0.1 / (1 - std::pow(0.9, i)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, i)) + 1e-8);
      EXPECT_NEAR(x[0].item<double>(), p, 1e-10) << "step " << i << ", decoupled " << decoupled;
    }
  }
}

TEST(Optimizer, AResumedRunEqualsAnUninterruptedOneToTheBit) {
  const std::vector<std::pair<std::string, Make>> makers{
      {"sgd", [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9)); }},
      {"adam", [](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.1).amsgrad(true)); }},
      {"adamw", [](auto p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.1)); }},
      {"rmsprop",
       [](auto p) {
         return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(0.1).momentum(0.5).centered(true));
       }},
      {"adagrad", [](auto p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(0.1)); }},
  };
  for (const auto& [name, make] : makers) {
    const Tensor x = tenon::ones({5}).requires_grad_();
    auto optimizer = make({x});
    for (int i = 0; i < 3; ++i) step(x, *optimizer);
    std::stringstream state, values;
    save(*optimizer, state);
    save(x, values);
    for (int i = 0; i < 3; ++i) step(x, *optimizer);

    Tensor y;
    load(y, values);
    y.requires_grad_();
    auto resumed = make({y});
    load(*resumed, state);
    for (int i = 0; i < 3; ++i) step(y, *resumed);
    EXPECT_TRUE(x.equal(y)) << name;
  }
}

TEST(Optimizer, AParameterBelongsToOneGroup) {
  const Tensor x = tenon::ones({2}).requires_grad_();
  EXPECT_THROW(optim::SGD({optim::OptimizerParamGroup({x}), optim::OptimizerParamGroup({x})}, optim::SGDOptions(0.1)),
               Error);
  EXPECT_THROW(optim::Adam({x}, optim::AdamOptions(-1)), Error);
}

TEST(Optimizer, OneThatWasMovedStepsOnWithItsStates) {
  const auto trained = [](bool moves) {
    const Tensor x = tenon::ones({2}).requires_grad_();
    optim::Adam adam({x}, optim::AdamOptions(0.1));
    step(x, adam);
    if (!moves) {
      step(x, adam);
      return x.detach();
    }
    optim::Adam other(std::move(adam));
    EXPECT_EQ(other.state().size(), 1U);
    step(x, other);
    return x.detach();
  };
  EXPECT_TRUE(trained(true).equal(trained(false)));
  static_assert(std::is_nothrow_move_constructible_v<optim::SGD> && !std::is_copy_constructible_v<optim::SGD>);
}

TEST(Optimizer, AParameterWithoutGradientIsLeftAlone) {
  const Tensor x = tenon::ones({2}).requires_grad_(), y = tenon::ones({2}).requires_grad_();
  optim::Adam adam({x, y}, optim::AdamOptions(0.1));
  x.sum().backward();
  adam.step();
  EXPECT_FALSE(x.equal(tenon::ones({2})));
  EXPECT_TRUE(y.equal(tenon::ones({2})));
}

TEST(Optimizer, UpdatesInvalidateWhatBackwardSaved) {
  const Tensor x = tenon::ones({2}).requires_grad_();
  const Tensor loss = x.square().sum();
  optim::SGD sgd({x}, optim::SGDOptions(0.1));
  loss.backward({}, /*retain_graph=*/true);
  sgd.step();
  EXPECT_THROW(loss.backward(), Error);
}

}  // namespace
}  // namespace tenon::test
