// Copies of modules: what a clone shares with its original (nothing), what it takes over, and what it refuses to be.
#include "../support/message_of.h"

#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/dropout.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/loss.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/nn/modules/sequence/transformer_layer.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace tenon::test {
namespace {

using ::testing::ElementsAre;

const Device kElsewhere("simulated:0");

/// Registers in reset() nothing of what its constructor registers.
struct RegistersTooEarly : nn::Cloneable<RegistersTooEarly> {
  explicit RegistersTooEarly(const std::function<void(RegistersTooEarly&)>& registers) { registers(*this); }
  void reset() override {}
};

TEST(ModuleCopies, OfWhatIsNotRegisteredInResetAreRefusedByTheNameOfTheCallThatIsMissing) {
  const auto refusal = [](const std::function<void(RegistersTooEarly&)>& registers) {
    return message_of([&] { std::make_shared<RegistersTooEarly>(registers)->clone(); });
  };
  const auto expected = [](const std::string& what, const std::string& how) {
    return "The cloned module does not have the same number of " + what +
           " as the original module after calling reset(). Are you sure you called " + how +
           " inside reset() and not the constructor?";
  };
  EXPECT_EQ(refusal([](auto& m) { m.register_parameter("p", tenon::ones({1})); }),
            expected("parameters", "register_parameter()"));
  EXPECT_EQ(refusal([](auto& m) { m.register_buffer("b", tenon::ones({1})); }),
            expected("buffers", "register_buffer()"));
  EXPECT_EQ(refusal([](auto& m) { m.register_module("m", nn::Linear(1, 1)); }),
            expected("child modules", "register_module()"));
}

TEST(ModuleCopies, KeepWhetherEachModuleOfTheTreeIsInTraining) {
  nn::ModuleDict dict;
  dict->insert("a", std::make_shared<nn::DropoutImpl>(0.5));
  dict->insert("b", std::make_shared<nn::TransformerEncoderLayerImpl>(4, 2));
  nn::ModuleList model(nn::Dropout(0.5), nn::Sequential(nn::Dropout(0.5), nn::BatchNorm1d(2)), dict);
  const auto modes = [](const nn::Module& module) {
    std::vector<bool> modes;
    for (const auto& each : module.modules()) modes.push_back(each->is_training());
    return modes;
  };
  const auto all = model->modules();
  EXPECT_EQ(modes(*model->clone()), std::vector<bool>(all.size(), true));
  for (const auto& module : all) {
    module->eval();  // it and what is below
    EXPECT_EQ(modes(*model->clone()), modes(*model)) << module->name();
    module->train();
  }
  model->eval();
  for (const auto& module : all) {
    module->train();
    EXPECT_EQ(modes(*model->clone()), modes(*model)) << module->name();
    module->eval();
  }
}

TEST(ModuleCopies, ByConstructionAndAssignmentHaveTheSameTensorsNameAndMode) {
  nn::LinearImpl from(2, 3);
  from.eval();
  const auto expect_same = [&](const nn::LinearImpl& to, const Tensor& weight, const char* how) {
    EXPECT_FALSE(to.is_training()) << how;
    EXPECT_EQ(to.name(), "tenon::nn::LinearImpl") << how;
    EXPECT_THAT(to.named_parameters().keys(), ElementsAre("weight", "bias")) << how;
    EXPECT_TRUE(to.named_parameters()["weight"].is_same(weight)) << how;
  };
  const Tensor weight = from.weight;
  nn::LinearImpl constructed(from), assigned(1, 1), moved_into(1, 1);
  assigned = from;
  expect_same(constructed, weight, "copied");
  expect_same(assigned, weight, "assigned");
  nn::LinearImpl moved(std::move(constructed));
  expect_same(moved, weight, "moved");
  moved_into = std::move(moved);
  expect_same(moved_into, weight, "moved into");
  from.train();
  assigned = from;
  EXPECT_TRUE(assigned.is_training());
}

/// Has a buffer that is given to it, as the losses have their weights.
struct HolderImpl : nn::Cloneable<HolderImpl> {
  explicit HolderImpl(Tensor given) : given(std::move(given)) { reset(); }
  void reset() override { register_buffer("given", given); }
  Tensor given;
};

TEST(ModuleCopies, OfComputedBuffersHaveTheirValues) {
  const Tensor source = tenon::ones({2}).set_requires_grad(true);
  const auto copy = std::make_shared<HolderImpl>(source * 3)->clone();
  EXPECT_TRUE(copy->named_buffers()["given"].eq(3).all().item<bool>());
}

template <class Make>
void expect_own_buffers(const char* what, const Make& make) {
  auto original = make();
  ASSERT_GT(original->buffers().size(), 0u) << what;
  const auto before = original->buffers();
  const auto copy = original->clone(kElsewhere);
  const auto near = original->clone();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(copy->buffers()[i].device(), kElsewhere) << what;
    EXPECT_EQ(original->buffers()[i].device(), Device(kCPU)) << what;
    EXPECT_TRUE(original->buffers()[i].is_same(before[i])) << what;
    EXPECT_TRUE(near->buffers()[i].equal(before[i])) << what;
    EXPECT_NE(near->buffers()[i].data_ptr(), before[i].data_ptr()) << what;
    near->buffers()[i].zero_();
    EXPECT_FALSE(before[i].eq(0).any().template item<bool>()) << what;
  }
}

TEST(ModuleCopies, OfLossesHaveWeightsOfTheirOwn) {
  const Tensor weight = tenon::tensor({1.0f, 2.0f, 4.0f});
  expect_own_buffers("NLLLoss", [&] { return nn::NLLLoss(nn::NLLLossOptions().weight(weight)); });
  expect_own_buffers("CrossEntropyLoss",
                     [&] { return nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(weight)); });
  expect_own_buffers("BCELoss", [&] { return nn::BCELoss(nn::BCELossOptions().weight(weight)); });
  expect_own_buffers("MultiLabelSoftMarginLoss", [&] {
    return nn::MultiLabelSoftMarginLoss(nn::MultiLabelSoftMarginLossOptions().weight(weight));
  });
  expect_own_buffers("BCEWithLogitsLoss", [&] {
    return nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().weight(weight).pos_weight(weight + 1));
  });
}

TEST(ModuleCopies, OfLossesUseTheirWeightsAndAreClonedAgain) {
  const Tensor x = tenon::tensor({0.5f, -1.0f, 2.0f}).view({1, 3}), y = tenon::tensor({2});
  nn::CrossEntropyLoss original(
      nn::CrossEntropyLossOptions().weight(tenon::tensor({1.0f, 2.0f, 4.0f})).reduction(kSum));
  const Tensor expected = original(x, y);
  const auto copy = std::dynamic_pointer_cast<nn::CrossEntropyLossImpl>(original->clone()->clone());
  EXPECT_TRUE(copy->forward(x, y).equal(expected));
  copy->weight.mul_(2);
  EXPECT_TRUE(copy->forward(x, y).equal(expected * 2));
  EXPECT_TRUE(original(x, y).equal(expected));
  const auto bare = std::dynamic_pointer_cast<nn::CrossEntropyLossImpl>(nn::CrossEntropyLoss()->clone());
  EXPECT_FALSE(bare->weight.defined());
}

TEST(ModuleCopies, OfFractionalPoolsHaveSamplesOfTheirOwnAndUseThem) {
  const Tensor samples = tenon::full({1, 1, 2}, 0.7),
               image = tenon::arange(49, TensorOptions(kFloat32)).view({1, 1, 7, 7});
  const auto make = [&] {
    return nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(3)._random_samples(samples.clone()));
  };
  expect_own_buffers("FractionalMaxPool2d", make);
  expect_own_buffers("FractionalMaxPool3d", [] {
    return nn::FractionalMaxPool3d(
        nn::FractionalMaxPool3dOptions(2).output_size(2)._random_samples(tenon::full({1, 1, 3}, 0.5)));
  });
  nn::FractionalMaxPool2d late = make();
  const auto early = std::dynamic_pointer_cast<nn::FractionalMaxPool2dImpl>(late->clone());
  early->_random_samples.zero_();
  EXPECT_FALSE(early->forward(image).equal(late(image)));
  EXPECT_TRUE(std::get<0>(early->forward_with_indices(image)).equal(early->forward(image)));
}

TEST(Module, ToEmptyGivesMemoryInTheSameLayoutAndKeepsEveryTensorsObject) {
  nn::BatchNorm2d norm(3);
  nn::Linear linear(2, 3);
  linear->weight.set_data(tenon::ones({2, 3}).t());
  linear->bias.set_requires_grad(false);
  nn::Sequential model(linear, norm);
  for (const Device& device : {kElsewhere, Device(kCPU), Device(kCPU)}) {
    const Tensor old = linear->weight.detach();
    model->to_empty(device);
    EXPECT_NE(linear->weight.data_ptr(), old.data_ptr());
    EXPECT_TRUE(linear->weight.is_same(model->named_parameters()["0.weight"]));
    EXPECT_EQ(linear->weight.sizes().vec(), old.sizes().vec());
    EXPECT_EQ(linear->weight.strides().vec(), old.strides().vec());
    EXPECT_TRUE(linear->weight.requires_grad());
    EXPECT_FALSE(linear->bias.requires_grad());
    for (const Tensor& parameter : model->parameters()) EXPECT_EQ(parameter.device(), device);
    for (const Tensor& buffer : model->buffers()) EXPECT_EQ(buffer.device(), device);
    EXPECT_EQ(norm->num_batches_tracked.scalar_type(), kInt64);
  }
}

}  // namespace
}  // namespace tenon::test
