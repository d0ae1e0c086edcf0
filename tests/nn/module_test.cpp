// Module: registration, traversal, conversion, cloning.
#include "../support/expect_error.h"
#include "../support/message_of.h"

#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/containers/parameter_list.h>
#include <tenon/nn/modules/dropout.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tenon::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(2, 3));
    second = register_module("second", nn::Linear(nn::LinearOptions(3, 1).bias(false)));
    offset = register_buffer("offset", tenon::ones({1}));
  }
  Tensor forward(const Tensor& x) { return second(tenon::relu(first(x))) + offset; }
  nn::Linear first{nullptr}, second{nullptr};
  Tensor offset;
};
TENON_MODULE(Net);

TEST(Module, NamesParametersByTheirPath) {
  Net net;
  EXPECT_THAT(net->named_parameters().keys(), ElementsAre("first.weight", "first.bias", "second.weight"));
  EXPECT_THAT(net->named_buffers().keys(), ElementsAre("offset"));
  EXPECT_EQ(net->modules().size(), 3u);
}

TEST(Module, RefusesNamesThatAreEmptyDottedOrTaken) {
  Net net;
  EXPECT_THAT(message_of([&] { net->register_buffer("", Tensor()); }), HasSubstr("Buffer name must not be empty"));
  EXPECT_THAT(message_of([&] { net->register_buffer("a.b", Tensor()); }),
              HasSubstr("must not contain a dot (got 'a.b')"));
  EXPECT_THAT(message_of([&] { net->register_module("first", nn::Linear(1, 1)); }),
              HasSubstr("Submodule 'first' already defined"));
}

TEST(Module, ACloneHasItsOwnParameters) {
  Net net;
  auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  NoGradGuard no_grad;
  EXPECT_TRUE(copy->first->weight.equal(net->first->weight));
  net->first->weight.fill_(7);
  EXPECT_FALSE(copy->first->weight.equal(net->first->weight));
  EXPECT_TRUE(copy->first->weight.requires_grad());
}

TEST(Module, ConvertsFloatingTensorsInPlace) {
  Net net;
  const Tensor weight = net->first->weight;
  net->to(kFloat64);
  EXPECT_EQ(weight.scalar_type(), kFloat64);
  EXPECT_EQ(net->forward(tenon::ones({1, 2}, TensorOptions(kFloat64))).scalar_type(), kFloat64);
}

TEST(Module, GradientsGoWhereTheirParametersGo) {
  nn::Linear layer(2, 2);
  layer->forward(ones({1, 2})).sum().backward();
  const Tensor before = layer->weight.grad();
  layer->to(kFloat64);
  EXPECT_EQ(layer->weight.grad().scalar_type(), kFloat64);
  EXPECT_TRUE(layer->weight.grad().to(kFloat32).equal(before));
  layer->forward(ones({1, 2}, kFloat64)).sum().backward();
  EXPECT_TRUE(layer->weight.grad().equal(2 * before.to(kFloat64)));
}

TEST(Module, IntegerDtypesAreForEveryTensorAndFloatingOnesForFloatingTensors) {
  nn::Linear layer(3, 2);
  for (Tensor& parameter : layer->parameters()) parameter.requires_grad_(false);
  layer->to(kInt32);
  EXPECT_EQ(layer->weight.dtype(), kInt32);
  layer->to(Device(kCPU), kUInt8);
  EXPECT_EQ(layer->weight.dtype(), kUInt8);
  layer->to(kFloat64);
  EXPECT_EQ(layer->weight.dtype(), kUInt8);
}

TEST(Module, TrainingModeReachesEveryChild) {
  nn::ModuleList list(nn::Dropout(0.9), nn::Dropout(0.9));
  list->eval();
  for (const auto& child : *list) EXPECT_FALSE(child->is_training());
  const Tensor x = tenon::ones({8});
  EXPECT_TRUE(list->at<nn::DropoutImpl>(0).forward(x).equal(x));
}

TEST(Module, ZeroGradGivesBackUnlessToldToZero) {
  Net net;
  net->forward(tenon::ones({4, 2})).sum().backward();
  ASSERT_TRUE(net->first->bias.grad().defined());
  net->zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(net->first->bias.grad().abs().sum().item<float>(), 0);
  net->zero_grad();
  EXPECT_FALSE(net->first->bias.grad().defined());
}

TEST(ParameterDict, UpdateReplacesAndAddsNothing) {
  nn::ParameterDict dict;
  dict->insert("a", tenon::tensor({1.0}));
  nn::ParameterDict other;
  other->insert("a", tenon::tensor({5.0}));
  dict->update(*other);
  EXPECT_EQ(dict["a"].item<float>(), 5);
  other->insert("d", tenon::tensor({5.0}));
  expect_error([&] { dict->update(*other); }, "Parameter 'd' is not defined");
  EXPECT_EQ(dict->size(), 1);
}

TEST(Module, PrintsItsTree) {
  std::ostringstream stream;
  stream << *Net();
  EXPECT_THAT(stream.str(), HasSubstr("  (first): tenon::nn::Linear(in_features=2, out_features=3, bias=true)\n"));
}

TEST(Module, ACloneOfPretrainedEmbeddingsHasAWeightOfItsOwnThatIsFrozenToo) {
  const Tensor given = tenon::ones({3, 2});
  const nn::Embedding embedding = nn::Embedding::from_pretrained(given);
  const auto clone = std::dynamic_pointer_cast<nn::EmbeddingImpl>(embedding->clone());
  EXPECT_FALSE(clone->weight.requires_grad());
  clone->weight.zero_();
  EXPECT_TRUE(embedding->weight.eq(1).all().item<bool>());
  EXPECT_FALSE(embedding->weight.requires_grad());
  EXPECT_EQ(embedding->weight.data_ptr(), given.data_ptr());

  const nn::EmbeddingBag bag = nn::EmbeddingBag::from_pretrained(given);
  const auto bag_clone = std::dynamic_pointer_cast<nn::EmbeddingBagImpl>(bag->clone());
  EXPECT_FALSE(bag_clone->weight.requires_grad());
  EXPECT_NE(bag_clone->weight.data_ptr(), given.data_ptr());
}

TEST(Module, ACloneStaysFrozen) {
  nn::Linear linear(2, 3);
  linear->bias.set_requires_grad(false);
  const auto clone = std::dynamic_pointer_cast<nn::LinearImpl>(linear->clone());
  EXPECT_FALSE(clone->bias.requires_grad());
  EXPECT_TRUE(clone->weight.requires_grad());
}

TEST(ParameterList, MayBeAppendedToItself) {
  nn::ParameterList list(tenon::ones({1}), tenon::zeros({2}));
  *list += *list;
  ASSERT_EQ(list->size(), 4u);
  EXPECT_TRUE(list->at(2).is_same(list->at(0)));
  EXPECT_TRUE(list->at(3).is_same(list->at(1)));
}

}  // namespace
}  // namespace tenon::test
