// What [train] makes of an optimiser: each takes its rate, its decay and its momentum, and what it remembers is where
// and as large as the settings say.
#include <tenon/autograd/grad_mode.h>
#include <tenon/core/options.h>
#include <tenon/ops/ops.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using train::StateBytes;

Options training(const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const SectionSpec& section : training_sections()) {
    if (section.name != "train") continue;
    Options options(section.options);
    for (const auto& [name, value] : settings) options.set_text(name, value);
    return options;
  }
  throw Error("there is no section [train]");
}

/// A weight of 2 behind each of two steps, with a gradient of 3 in the first and of 1 in the second.
std::vector<double> steps_of(const std::string& optimizer, const std::string& momentum, const std::string& decay) {
  const Options options =
      training({{"optimizer", optimizer}, {"lr", "0.1"}, {"momentum", momentum}, {"weight_decay", decay}});
  const Tensor weight = full({1}, 2.0, TensorOptions(kFloat64)).requires_grad_();
  const auto made = train::make_optimizer(options, {weight});
  std::vector<double> seen;
  for (const double gradient : {3.0, 1.0}) {
    weight.mutable_grad() = full({1}, gradient, TensorOptions(kFloat64));
    made->step();
    seen.push_back(weight.item<double>());
  }
  return seen;
}

void expect_steps(const std::vector<double>& found, const std::vector<double>& wanted, const char* what) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6) << what << ", step " << i + 1;
}

TEST(OptimizerRows, OfSgdTakeRateMomentumAndDecay) {
  expect_steps(steps_of("sgd", "0", "0"), {2 - 0.3, 2 - 0.3 - 0.1}, "plain");
  expect_steps(steps_of("sgd", "0.5", "0"), {1.7, 1.7 - 0.1 * (0.5 * 3 + 1)}, "momentum");
  expect_steps(steps_of("sgd", "0", "0.5"), {2 - 0.1 * (3 + 1), 1.6 - 0.1 * (1 + 0.8)}, "decay");
}

TEST(OptimizerRows, OfAdamAddTheDecayToTheGradientAndOfAdamwPullTheWeight) {
  const auto second = [](double before, double g1, double g2, double pull) {
    const double mean = (0.9 * 0.1 * g1 + 0.1 * g2) / (1 - 0.81);
    const double square = (0.999 * 0.001 * g1 * g1 + 0.001 * g2 * g2) / (1 - 0.999 * 0.999);
    return before * pull - 0.1 * mean / (std::sqrt(square) + 1e-8);
  };
  for (const char* momentum : {"0", "0.9"}) {  // which they have none of
    expect_steps(steps_of("adam", momentum, "0"), {1.9, second(1.9, 3, 1, 1)}, "adam");
    expect_steps(steps_of("adamw", momentum, "0"), {1.9, second(1.9, 3, 1, 1)}, "adamw");
  }
  expect_steps(steps_of("adam", "0", "0.5"), {1.9, second(1.9, 4, 1.95, 1)}, "adam");
  expect_steps(steps_of("adamw", "0", "0.5"), {2 * 0.95 - 0.1, second(1.8, 3, 1, 0.95)}, "adamw");
}

TEST(OptimizerRows, OfRmspropTakeMomentumAndDecay) {
  const double first = 0.1 * 3 / (std::sqrt(0.01 * 9) + 1e-8);
  const double second = 0.1 * 1 / (std::sqrt(0.99 * 0.09 + 0.01) + 1e-8);
  expect_steps(steps_of("rmsprop", "0", "0"), {2 - first, 2 - first - second}, "plain");
  expect_steps(steps_of("rmsprop", "0.5", "0"), {2 - first, 2 - first - (0.5 * first + second)}, "momentum");
  EXPECT_NEAR(steps_of("rmsprop", "0", "0.5")[0], 2 - 0.1 * 4 / (std::sqrt(0.01 * 16) + 1e-8), 1e-6);
}

TEST(OptimizerRows, OfAdagradDivideByAllThatWasSeen) {
  const double second = 0.1 / (std::sqrt(10.0) + 1e-10);
  for (const char* momentum : {"0", "0.9"})
    expect_steps(steps_of("adagrad", momentum, "0"), {1.9, 1.9 - second}, "plain");
  EXPECT_NEAR(steps_of("adagrad", "0", "0.5")[1], 1.9 - 0.1 * 1.95 / std::sqrt(16 + 1.95 * 1.95), 1e-6);
}

/// Of 5000 values, which may be in 8 bits, and of 100, which may not.
std::vector<Tensor> weights(Dtype dtype = kFloat32) {
  return {zeros({50, 100}, TensorOptions(dtype)), zeros({100}, TensorOptions(dtype))};
}
constexpr std::int64_t kPacked = 5000 + 20 * 4;  // a byte each, and a scale for each 256

void expect_bytes(const StateBytes& found, const StateBytes& wanted, const std::string& what) {
  EXPECT_EQ(found.device, wanted.device) << what;
  EXPECT_EQ(found.host, wanted.host) << what;
  EXPECT_EQ(found.update, wanted.update) << what;
  EXPECT_EQ(found.gradient, wanted.gradient) << what;
  EXPECT_EQ(found.largest, wanted.largest) << what;
}

TEST(StateBytesOf, TensorsOfTheParametersSizesByRow) {
  for (const auto& [name, plain, moved] : {std::tuple{"sgd", 0, 1}, std::tuple{"adam", 2, 2}, std::tuple{"adamw", 2, 2},
                                           std::tuple{"rmsprop", 1, 2}, std::tuple{"adagrad", 1, 1}}) {
    for (const char* momentum : {"0", "0.9"}) {
      const std::int64_t tensors = momentum[1] == 0 ? plain : moved;
      expect_bytes(train::state_bytes(training({{"optimizer", name}, {"momentum", momentum}}), weights()),
                   {.device = tensors * 5100 * 4, .largest = 5000}, name);
    }
  }
  expect_bytes(train::state_bytes(training({}), {}), {}, "of nothing");
}

TEST(StateBytesOf, ThoseIn8BitsAreUnpackedForAnUpdateOneAfterTheOther) {
  expect_bytes(train::state_bytes(training({{"optimizer_states", "8bit"}}), weights()),
               {.device = 2 * (kPacked + 400), .update = 2 * 20000, .largest = 5000}, "on the device");
  expect_bytes(train::state_bytes(training({{"optimizer_states", "8bit"}, {"offload", "both"}}), weights()),
               {.host = 2 * (kPacked + 400), .update = 2 * 20000 + kPacked, .largest = 5000}, "its bytes cross");
}

TEST(StateBytesOf, ThoseOnTheHostAreBroughtForAnUpdate) {
  for (const char* offload : {"optimizer", "both"})
    expect_bytes(train::state_bytes(training({{"offload", offload}}), weights()),
                 {.host = 2 * 5100 * 4, .update = 2 * 20000, .largest = 5000}, offload);
  expect_bytes(train::state_bytes(training({{"offload", "activations"}}), weights()),
               {.device = 2 * 5100 * 4, .largest = 5000}, "activations");
}

TEST(StateBytesOf, MastersOf16BitsAreRememberedInFloat32) {
  const auto of = [](const char* masters, Dtype dtype) {
    return train::state_bytes(training({{"master_weights", masters}}), weights(dtype));
  };
  expect_bytes(of("false", kBFloat16), {.device = 2 * 5100 * 2, .largest = 5000}, "without");
  expect_bytes(of("true", kBFloat16), {.device = 5100 * 4 + 2 * 5100 * 4, .gradient = 20000, .largest = 5000}, "with");
  expect_bytes(of("true", kFloat32), {.device = 2 * 5100 * 4, .largest = 5000}, "of float32 there are none");
}

TEST(Offloading, IsOfWhatTheWordNames) {
  for (const auto& [word, activations, optimizer] :
       {std::tuple{"none", false, false}, std::tuple{"activations", true, false}, std::tuple{"optimizer", false, true},
        std::tuple{"both", true, true}}) {
    const train::Offload offload = train::offload_of(training({{"offload", word}}));
    EXPECT_EQ(offload.activations, activations) << word;
    EXPECT_EQ(offload.optimizer, optimizer) << word;
  }
}

TEST(LossWords, ThatAreNoNumbersAreSaidInWords) {
  EXPECT_EQ(loss_text(0.43126), "0.4313");
  EXPECT_EQ(loss_text(0), "0.0000");
  for (const double none : {std::nan(""), HUGE_VAL, -HUGE_VAL}) EXPECT_EQ(loss_text(none), "not finite");
}

}  // namespace
}  // namespace tenon::test
