// Low-rank matrices beside frozen layers: what learns, what they add, and that they merge into the weights.
#include "support/expect_error.h"

#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/sgd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tenon::test {
namespace {

nn::Sequential network() {
  manual_seed(3);
  return nn::Sequential(nn::Linear(6, 10), nn::Tanh(), nn::Linear(nn::LinearOptions(10, 4).bias(false)));
}

void learn(nn::Sequential& net) {
  optim::SGD sgd(nn::trainable_parameters(*net), optim::SGDOptions(0.02));
  for (int step = 0; step < 60; ++step) {
    net->forward(ones({3, 6})).sub(1).square().mean().backward();
    sgd.step();
    sgd.zero_grad(/*set_to_none=*/true);
  }
}

TEST(Lora, ChangesNothingAtFirstAndLearnsAlone) {
  nn::Sequential net = network(), plain = network();
  EXPECT_EQ(nn::add_lora(*net, nn::LoraOptions(2)), 2);
  const Tensor x = randn({5, 6});
  EXPECT_TRUE(net->forward(x).equal(plain->forward(x)));
  std::int64_t elements = 0;
  for (const Tensor& parameter : nn::trainable_parameters(*net)) elements += parameter.numel();
  EXPECT_EQ(elements, 2 * (6 + 10) + 2 * (10 + 4));
  const double before = plain->forward(ones({3, 6})).sub(1).square().mean().item<double>();
  learn(net);
  EXPECT_LT(net->forward(ones({3, 6})).sub(1).square().mean().item<double>(), before / 2);
  for (const auto& item : plain->named_parameters()) {
    const Tensor frozen = net->named_parameters()[item.key()];
    EXPECT_TRUE(frozen.equal(item.value())) << item.key();
    EXPECT_FALSE(frozen.grad().defined()) << item.key();
  }
}

TEST(Lora, ALayerOfTwoNamesHasOnePair) {
  manual_seed(3);
  nn::Linear shared(4, 4);
  nn::Sequential net(shared, nn::Tanh(), shared);
  EXPECT_EQ(nn::add_lora(*net, nn::LoraOptions(2)), 1);
  EXPECT_EQ(net->forward(ones({1, 4})).sizes(), IntArrayRef({1, 4}));
}

TEST(Lora, MergesIntoTheWeights) {
  nn::Sequential net = network(), plain = network();
  nn::add_lora(*net, nn::LoraOptions(3).alpha(6));
  learn(net);
  const Tensor x = randn({5, 6}), y = net->forward(x);
  EXPECT_FALSE(y.allclose(plain->forward(x)));
  EXPECT_EQ(nn::merge_lora(*net), 2);
  EXPECT_TRUE(net->forward(x).allclose(y, 1e-4, 1e-5));
  EXPECT_EQ(net->named_parameters().keys(), plain->named_parameters().keys());
  EXPECT_EQ(nn::merge_lora(*net), 0);
}

TEST(Lora, IsSavedAndLoaded) {
  nn::Sequential net = network(), other = network();
  nn::add_lora(*net, nn::LoraOptions(2));
  learn(net);
  std::stringstream file;
  save(net, file);
  nn::add_lora(*other, nn::LoraOptions(2));
  load(other, file);
  const Tensor x = randn({5, 6});
  EXPECT_TRUE(other->forward(x).equal(net->forward(x)));
}

nn::Sequential integer_network(int bits) {
  nn::Sequential net = network();
  net->eval();
  nn::quantization::quantize_weights(*net, bits);
  net->train();
  return net;
}

TEST(Lora, LearnsBesideWeightsOfIntegers) {
  for (const int bits : {8, 4}) {
    SCOPED_TRACE(bits);
    nn::Sequential net = integer_network(bits), plain = integer_network(bits);
    EXPECT_EQ(nn::add_lora(*net, nn::LoraOptions(2)), 2);
    const Tensor x = randn({5, 6});
    EXPECT_TRUE(net->forward(x).equal(plain->forward(x)));
    for (const Tensor& parameter : nn::trainable_parameters(*net)) EXPECT_EQ(parameter.scalar_type(), kFloat32);
    EXPECT_EQ(nn::trainable_parameters(*net).size(), 4U);
    const double before = plain->forward(ones({3, 6})).sub(1).square().mean().item<double>();
    learn(net);
    EXPECT_LT(net->forward(ones({3, 6})).sub(1).square().mean().item<double>(), before / 2);
    for (const auto& item : plain->named_parameters())
      EXPECT_TRUE(net->named_parameters()[item.key()].equal(item.value())) << item.key();
    // The first layer's matrices learn through the second one's integers: the gradient is that of its floats.
    net->zero_grad();
    net->forward(x).sum().backward();
    const Tensor through = net->named_parameters()["0.lora.b"].grad();
    EXPECT_GT(through.abs().sum().item<double>(), 0);
    const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
    EXPECT_TRUE(copy->forward(x).equal(net->forward(x))) << "a clone has its own";
    std::stringstream file;
    save(net, file);
    nn::Sequential other = integer_network(bits);
    nn::add_lora(*other, nn::LoraOptions(2));
    load(other, file);
    EXPECT_TRUE(other->forward(x).equal(net->forward(x)));
  }
}

TEST(Lora, MergedIntoIntegersIsRoundedAgain) {
  const NoGradGuard no_grad;
  nn::Sequential net = integer_network(8);
  nn::add_lora(*net, nn::LoraOptions(2));
  {
    const AutoGradMode learning(true);
    learn(net);
  }
  const Tensor x = randn({5, 6}), y = net->forward(x);
  EXPECT_EQ(nn::merge_lora(*net), 2);
  EXPECT_EQ(net->named_parameters()["0.weight"].scalar_type(), kInt8);
  EXPECT_TRUE(net->forward(x).allclose(y, 0.05, 0.02));
}

TEST(Lora, IsNotForLayersOnIntegersOfActivationsNorQuantizedAfterwards) {
  nn::Sequential net = network();
  net->eval();
  nn::quantization::quantize_dynamic(*net);
  expect_error([&] { nn::add_lora(*net, nn::LoraOptions(2)); }, "give no gradients");
  nn::Sequential other = network();
  nn::add_lora(*other, nn::LoraOptions(2));
  other->eval();
  expect_error([&] { nn::quantization::quantize_weights(*other, 8); }, "quantize the model before that");
}

TEST(Lora, IsForTheLayersThatAreChosen) {
  nn::Sequential net = network();
  EXPECT_EQ(nn::add_lora(*net, nn::LoraOptions(2).choice([](const std::string& path) { return path == "2"; })), 1);
  EXPECT_EQ(nn::trainable_parameters(*net).size(), 2u);
  expect_error([&] { nn::add_lora(*net, nn::LoraOptions(2)); }, "has low-rank matrices");
  nn::Sequential none{nn::Tanh()};
  expect_error([&] { nn::add_lora(*none, nn::LoraOptions(2)); }, "no linear layer");
  expect_error([&] { nn::add_lora(*network(), nn::LoraOptions(0)); }, "the rank is 0");
}

TEST(Lora, IsRefusedWhereItIsNotLowOrAddsNothing) {
  nn::Sequential net(nn::Linear(6, 4));
  expect_error([&] { nn::add_lora(*net, nn::LoraOptions(5)); }, "rank 5 beside '0', which is 4 by 6");
  expect_error([&] { nn::add_lora(*net, nn::LoraOptions(2).alpha(0)); }, "with alpha = 0 nothing would be learned");
  EXPECT_TRUE(net->parameters()[0].requires_grad()) << "nothing was frozen";
  EXPECT_EQ(nn::add_lora(*net, nn::LoraOptions(4)), 1);
}

}  // namespace
}  // namespace tenon::test
