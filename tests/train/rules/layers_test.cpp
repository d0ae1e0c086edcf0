// What the stages of a pipeline share, and what each device has of a model's parameters.
#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/parallel/layers.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace tenon::train {
namespace {

const Device kFirst("simulated:0"), kSecond("simulated:1");

class Stages : public ::testing::Test {
 protected:
  void SetUp() override {
    ConfigRequest request;
    request.overrides = {"device.names=[\"simulated:0\", \"simulated:1\"]", "device.simulated.count=2"};
    request.use_environment = false;
    request.sections = training_sections();
    install(Config::load(request).experiment());
  }
  void TearDown() override { shutdown(); }

  static Tensor filled(std::vector<std::int64_t> sizes, double value, Device device) {
    return tenon::full(sizes, value, TensorOptions(kFloat32).device(device));
  }
  static std::int64_t bytes(Device device, Purpose purpose) {
    return device_state(device).allocator().stats().requested_by_purpose[static_cast<std::size_t>(purpose)].current;
  }
  static double first(const Tensor& tensor) { return tensor.to(kCPU).flatten()[0].item<double>(); }
};

TEST_F(Stages, AWeightIsItselfOnItsDeviceAndACopyOnAnother) {
  const Tensor weight = filled({2, 3}, 1.5, kFirst).set_requires_grad(true);
  TiedWeight tied(weight);
  EXPECT_TRUE(tied.on(kFirst).is_same(weight));
  EXPECT_EQ(bytes(kSecond, Purpose::kParameter), 0);
  const Tensor copy = tied.on(kSecond);
  EXPECT_EQ(bytes(kSecond, Purpose::kParameter), 24);
  EXPECT_EQ(copy.device(), kSecond);
  EXPECT_TRUE(copy.requires_grad());
  EXPECT_EQ(first(copy), 1.5);
  TiedWeight frozen(filled({2}, 1, kFirst));
  EXPECT_FALSE(frozen.on(kSecond).requires_grad());
}

TEST_F(Stages, TheCopyIsMadeOnceAStepAndFollowsTheWeight) {
  const Tensor weight = filled({2}, 1, kFirst).set_requires_grad(true);
  TiedWeight tied(weight);
  for (const bool fails : {false, true}) {
    const Tensor copy = tied.on(kSecond);
    const double before = first(weight);
    weight.detach().fill_(before + 1);
    EXPECT_EQ(first(tied.on(kSecond)), before) << "still the same step";
    if (fails)
      tied.forget();
    else
      tied.give_back();
    EXPECT_EQ(first(tied.on(kSecond)), before + 1) << "the next one";
    EXPECT_TRUE(tied.on(kSecond).is_same(copy)) << "in the same memory";
  }
}

TEST_F(Stages, TheCopysGradientIsAddedToTheWeights) {
  for (const bool has_one : {false, true}) {
    const Tensor weight = filled({2}, 1, kFirst).set_requires_grad(true);
    TiedWeight tied(weight);
    if (has_one) (weight * 3).sum().backward();
    (tied.on(kSecond) * 4).sum().backward();
    EXPECT_EQ(weight.grad().defined(), has_one) << "not before it is given back";
    tied.give_back();
    EXPECT_EQ(first(weight.grad()), has_one ? 7 : 4);
    EXPECT_EQ(weight.grad().device(), kFirst);
    EXPECT_EQ(bytes(kFirst, Purpose::kGradient), 8);
    EXPECT_FALSE(tied.on(kSecond).grad().defined()) << "once";
    tied.give_back();
    EXPECT_EQ(first(weight.grad()), has_one ? 7 : 4);
  }
}

TEST_F(Stages, OfAStepThatFailedTheCopysGradientIsNobodys) {
  const Tensor weight = filled({2}, 1, kFirst).set_requires_grad(true);
  TiedWeight tied(weight);
  tied.forget();
  tied.give_back();  // there is no copy yet
  EXPECT_FALSE(weight.grad().defined());
  (tied.on(kSecond) * 4).sum().backward();
  tied.forget();
  tied.give_back();
  EXPECT_FALSE(weight.grad().defined());
}

/// Of a model with parameters in numbered layers and outside of them.
class Numbered : public nn::Module {
 public:
  Numbered(Device near, Device far) {
    add("table", 7, near);
    add("block0", 3, near);
    add("block1", 5, near);
    add("block2", 4, far);
    add("block3", 2, far);
    add("head", 6, far);
  }
  void add(const std::string& name, std::int64_t width, Device device) {
    const auto layer = std::make_shared<LayerImpl>([](const Tensor& x) { return x; });
    layer->register_parameter("weight", tenon::zeros({width}, TensorOptions(kFloat32).device(device)));
    layer->register_parameter("bias", tenon::zeros({1}, TensorOptions(kFloat32).device(device)));
    register_module(name, layer);
  }
};

using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
Sizes in_floats(const ParameterSizes& sizes) {
  return {sizes.bytes / 4, sizes.trained_bytes / 4, sizes.largest_bytes / 4, sizes.pair_bytes / 4,
          sizes.other_bytes / 4};
}

TEST_F(Stages, EachDeviceHasTheSizesOfWhatLiesThere) {
  const Numbered module(kFirst, kSecond);
  const auto of = parameter_sizes(module, {}, {kFirst, kSecond});
  ASSERT_EQ(of.size(), 2U);
  EXPECT_EQ(in_floats(of[0]), (Sizes{8 + 4 + 6, 8 + 4 + 6, 7, 4 + 6, 8}));
  EXPECT_EQ(in_floats(of[1]), (Sizes{5 + 3 + 7, 5 + 3 + 7, 6, 5 + 3, 7}));
}

TEST_F(Stages, OneDeviceHasAllWhereverItLies) {
  for (const Device& near : {kFirst, Device(kCPU)}) {
    const Numbered module(near, near);
    const auto of = parameter_sizes(module, {}, {kFirst});
    ASSERT_EQ(of.size(), 1U);
    EXPECT_EQ(in_floats(of[0]), (Sizes{33, 33, 7, 6 + 5, 8 + 7})) << "block1 and block2 are the largest neighbours";
  }
}

TEST_F(Stages, WhatIsOnNoneOfThemIsLeftOut) {
  const Numbered module(Device(kCPU), kSecond);
  const auto of = parameter_sizes(module, {}, {kFirst, kSecond});
  EXPECT_EQ(in_floats(of[0]), (Sizes{0, 0, 0, 0, 0}));
  EXPECT_EQ(in_floats(of[1]), (Sizes{15, 15, 6, 8, 7}));
}

TEST_F(Stages, WhatDoesNotLearnHasNoGradient) {
  const Numbered module(kFirst, kFirst);
  for (const auto& item : module.named_parameters())
    if (item.key() == "table.weight" || item.key() == "block1.weight") Tensor(item.value()).set_requires_grad(false);
  EXPECT_EQ(in_floats(parameter_sizes(module, {}, {kFirst})[0]), (Sizes{33, 33 - 7 - 5, 6, 11, 15}));
}

TEST_F(Stages, OfLayersOneAfterAnotherTheNumberedOnesAreBlocks) {
  const Numbered module(kFirst, kSecond);
  ModelLayers layers;
  layers.layers = nn::Sequential();
  for (const auto& child : module.named_children())
    layers.layers->push_back(child.key(),
                             Layer([](const Tensor& x) { return x; }, LayerImpl::Owned{{"own", child.value()}}));
  const auto of = parameter_sizes(module, layers, {kFirst, kSecond});
  EXPECT_EQ(in_floats(of[0]), (Sizes{18, 18, 7, 10, 8}));
  EXPECT_EQ(in_floats(of[1]), (Sizes{15, 15, 6, 8, 7}));
}

TEST_F(Stages, TheHeadIsALayerOfItsOwnOrTheTableAgain) {
  const NoGradGuard no_grad;
  nn::Linear own(nn::LinearOptions(2, 3));
  const Tensor table = filled({3, 2}, 2, Device(kCPU)), hidden = filled({1, 2}, 5, Device(kCPU));
  for (const bool is_tied : {false, true}) {
    ModelLayers layers;
    layers.layers = nn::Sequential();
    layers.append_head(is_tied ? nn::Linear(nullptr) : own, table);
    EXPECT_EQ(layers.tied != nullptr, is_tied);
    const HeadInput read = layers.head_input(hidden);
    EXPECT_TRUE(read.hidden.is_same(hidden));
    EXPECT_TRUE(read.weight.is_same(is_tied ? table : own->weight));
    EXPECT_EQ(read.bias.defined(), !is_tied);
    const Tensor logits = layers.layers->forward(hidden);
    EXPECT_TRUE(tenon::equal(logits, tenon::linear(hidden, read.weight, read.bias)));
    *layers.leaves_out_head = true;
    EXPECT_TRUE(layers.layers->forward(hidden).is_same(hidden)) << "for a loss that reads it";
  }
}

}  // namespace
}  // namespace tenon::train
