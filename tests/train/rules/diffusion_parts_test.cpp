// Tables and blocks of the diffusion models, as their papers have them.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

train::Model made(const std::string& name, const Settings& settings = {}) {
  Options options(training_sections().front().options);
  options.set_text("name", name);
  options.set_text("hidden", "32");
  options.set_text("layers", "1");
  options.set_text("multipliers", "1,1");
  for (const auto& [key, value] : settings) options.set_text(key, value);
  return train::make_model({.options = options, .data = {.channels = 1, .height = 8, .width = 8}});
}

std::vector<double> table(const train::Model& model, const std::string& name) {
  for (const auto& item : model.module->named_buffers()) {
    if (!item.key().ends_with(name)) continue;
    const Tensor values = item.value().to(kCPU, Dtype::kFloat64);
    return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

// Ho et al., 2020: the betas grow evenly from 1e-4 to 0.02 in a thousand steps. Rombach et al., 2022: their roots do,
// from those of 0.00085 to 0.012.
TEST(DiffusionParts, WhatIsLeftOfAPictureFollowsTheBetas) {
  for (const bool is_latent : {false, true}) {
    const train::Model model = made(is_latent ? "latent-diffusion" : "ddpm");
    const std::vector<double> signal = table(model, "signal_at"), noise = table(model, "noise_at");
    ASSERT_EQ(signal.size(), 1000U);
    ASSERT_EQ(noise.size(), 1000U);
    double left = 1;
    for (std::size_t step = 0; step < 1000; ++step) {
      const double part = static_cast<double>(step) / 999;
      const double root = std::sqrt(0.00085) + (std::sqrt(0.012) - std::sqrt(0.00085)) * part;
      left *= 1 - (is_latent ? root * root : 1e-4 + (0.02 - 1e-4) * part);
      ASSERT_NEAR(signal[step], std::sqrt(left), 1e-6) << step;
      ASSERT_NEAR(noise[step], std::sqrt(1 - left), 1e-6) << step;
    }
  }
}

// Sines and cosines of times as of positions: the last of ddpm's turns ten thousand times as slowly as the first.
TEST(DiffusionParts, TimesTurnMoreSlowlyFeatureByFeature) {
  for (const bool is_latent : {false, true}) {
    const std::vector<double> turns = table(made(is_latent ? "latent-diffusion" : "ddpm"), "frequencies");
    ASSERT_EQ(turns.size(), 16U);
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(turns[i], std::pow(1e4, -static_cast<double>(i) / (is_latent ? 16 : 15)), 1e-6) << i;
  }
}

// In 16 bits a time of 999 and one of 997 are the same, and so would all that is seen of a step be.
TEST(DiffusionParts, AnglesOfTimesAreInFloat32WhereParametersHave16Bits) {
  const NoGradGuard no_grad;
  const std::vector<double> exact = table(made("ddpm"), "frequencies");
  set_default_dtype(kBFloat16);
  train::Model model = made("ddpm");
  const Tensor output = model.forward(tenon::ones({2, 1, 8, 8}));
  set_default_dtype(kFloat32);
  EXPECT_EQ(output.scalar_type(), kBFloat16);
  EXPECT_EQ(table(model, "frequencies"), exact);
  for (const auto& item : model.module->named_buffers())
    EXPECT_EQ(item.value().scalar_type(), item.key() == "frequencies" ? kFloat32 : kBFloat16) << item.key();
}

TEST(DiffusionParts, DropoutIsOfTrainingAlone) {
  const NoGradGuard no_grad;
  const auto differs = [](const char* dropout, bool is_training) {
    manual_seed(7);
    train::Model model = made("ddpm", {{"dropout", dropout}});
    // The last layer begins with zeros, which would hide the others.
    for (const Tensor& parameter : model.module->parameters()) parameter.detach().normal_(0, 0.1);
    model.module->train(is_training);
    const Tensor picture = tenon::ones({2, 1, 8, 8});
    manual_seed(8);
    const Tensor with = model.forward(picture);
    manual_seed(8);
    train::Model without = made("ddpm");
    for (std::size_t i = 0; i < model.module->parameters().size(); ++i)
      without.module->parameters()[i].detach().copy_(model.module->parameters()[i].detach());
    without.module->train(is_training);
    manual_seed(8);
    const Tensor plain = without.forward(picture);
    return !tenon::equal(with, plain);
  };
  EXPECT_TRUE(differs("0.5", true));
  EXPECT_FALSE(differs("0.5", false));
  EXPECT_FALSE(differs("0.0", true));
}

}  // namespace
}  // namespace tenon::test
