// Rules of the engine's order, of histories that change, and of views: those that a program sees only at their edges.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Engine, RunsWhatCameLastInTheForwardPassFirst) {
  const Tensor x = ones({2}, requires_grad());
  std::vector<std::string> order;
  const auto named = [&](const Tensor& tensor, const char* name) {
    tensor.register_hook([&order, name](const Tensor&) { order.emplace_back(name); });
    return tensor;
  };
  const Tensor a = named(x.exp(), "a"), b = named(x.sin(), "b"), c = named(a * 2, "c"), d = named(b * 2, "d");
  (c + a + (b + d)).sum().backward();
  EXPECT_THAT(order, ElementsAre("d", "c", "b", "a"));
}

TEST(Engine, AGradientOnAnotherDeviceIsRefused) {
  const Tensor x = ones({2, 3}, requires_grad());
  const Tensor y = x * 2;
  test::expect_error(
      [&] {
        y.backward(empty({2, 3}, TensorOptions().device("meta")));
      },
      "expected device cpu:0 but got meta:0");
}

TEST(CheckpointRules, AnInputThatComesBackAsItIsStaysALeaf) {
  const Tensor x = ones({2}, requires_grad());
  const variable_list out =
      checkpoint([](const variable_list& inputs) { return inputs; }, {x}, CheckpointOptions{.use_reentrant = true});
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(out[0].is_leaf());
  (out[0] * 3).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 3.0)));
}

// --- histories that change ------------------------------------------------------------------------------------------

TEST(RetainedGradient, IsKeptOnceHoweverOftenItIsAskedFor) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 2;
  y.retain_grad();
  y.retain_grad();
  (y * 5).sum().backward();
  EXPECT_TRUE(y.grad().equal(full({2}, 5.0)));
}

TEST(RetainedGradient, EndsWithTheHistoryThatATensorGivesUp) {
  const Tensor x = ones({2}, requires_grad());
  Tensor y = x * 2;
  y.retain_grad();
  const Tensor z = y * 5;
  y.detach_();
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  z.sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 10.0)));
}

TEST(SetData, TakesSizesAndStridesOfTheOther) {
  Tensor x = ones({4}, requires_grad());
  x.set_data(arange(6, TensorOptions(kFloat32)).view({2, 3}).t());
  EXPECT_EQ(x.sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(x.strides(), IntArrayRef({1, 3}));
  (x * 2).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({3, 2}, 2.0)));
}

TEST(SavedTensorRules, WhatIsUnpackedIsTheOutputThatWasSavedAndNotTheFirstOfItsFunction) {
  const Tensor x = tensor({2.0, 3.0}, TensorOptions(kFloat64).requires_grad(true));
  Tensor y;
  {
    const SavedTensorHooksGuard guard({.pack = [](const Tensor& tensor) -> std::any { return tensor.detach(); },
                                       .unpack = [](const std::any& packed) { return std::any_cast<Tensor>(packed); }});
    y = x.unbind()[1].pow(3);
  }
  const Tensor first = grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_TRUE(first.equal(tensor({0.0, 27.0}, kFloat64)));
  const Tensor second = grad({first.sum()}, {x})[0];
  EXPECT_TRUE(second.equal(tensor({0.0, 18.0}, kFloat64)));
}

// --- views ----------------------------------------------------------------------------------------------------------

TEST(ViewRules, AViewMadeWithoutGradKeepsItsKindAboveAndBelowOrdinaryOnes) {
  const Tensor x = ones({4}, requires_grad());
  const Tensor base = x * 1.;
  const auto is_refused = ThrowsMessage<Error>(HasSubstr("created in no_grad mode"));
  const Tensor ordinary = base.view({2, 2});
  Tensor without, of_ordinary;
  {
    const NoGradGuard no_grad;
    without = base.view({2, 2});
    of_ordinary = ordinary.view({4});
  }
  const Tensor above = without.view({4});
  EXPECT_THAT([&] { of_ordinary.mul_(2); }, is_refused);
  EXPECT_THAT([&] { above.mul_(2); }, is_refused);
  EXPECT_THAT([&] { without.mul_(2); }, is_refused);
  EXPECT_NO_THROW(ordinary.mul_(2));
}

TEST(ViewRules, AViewMadeWithoutGradOfOneMadeInInferenceModeIsOfInferenceMode) {
  const Tensor base = ones({4}, requires_grad()) * 1.;
  Tensor of_inference, of_both;
  {
    const InferenceMode inference;
    of_inference = base.view({2, 2});
  }
  {
    const NoGradGuard no_grad;
    of_both = of_inference.view({4});
  }
  test::expect_error([&] { of_both.mul_(2); }, "created in inference mode");
}

// --- custom functions -----------------------------------------------------------------------------------------------

/// Notes which of its inputs need a gradient, one by one and in ranges.
struct Asks : Function<Asks> {
  static Tensor forward(AutogradContext*, Tensor a, Tensor b, Tensor c) { return a + b + c; }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    answers = {context->needs_input_grad(0),
               context->needs_input_grad(1),
               context->needs_input_grad(2),
               context->needs_input_grad({{0, 1}}),
               context->needs_input_grad({{0, 2}}),
               context->needs_input_grad({{2, 3}}),
               context->needs_input_grad({{0, 1}, {2, 3}})};
    return {gradients[0], gradients[0], gradients[0]};
  }
  static inline std::vector<bool> answers;
};

TEST(FunctionRules, ARangeOfInputsNeedsAGradientWhereOneOfThemDoes) {
  const Tensor constant = ones({2}), x = ones({2}, requires_grad());
  Asks::apply(constant, x, constant).sum().backward();
  EXPECT_THAT(Asks::answers, ElementsAre(false, true, false, false, true, false, false));
}

/// Doubles its input in place, and gives its sign besides.
struct DoublesInPlace : Function<DoublesInPlace> {
  static variable_list forward(AutogradContext* context, Tensor x) {
    x.mul_(2);
    context->mark_dirty({x});
    const Tensor sign = x.sign();
    context->mark_non_differentiable({sign});
    return {sign, x};
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[1] * 2}; }
};

TEST(FunctionRules, ADirtyInputComesBackWithItsNewHistoryBesideWhatHasNone) {
  const Tensor x = tensor({-1.0, 3.0}, requires_grad());
  const Tensor y = x * 1.;
  const auto version = y._version();
  const variable_list out = DoublesInPlace::apply(y);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(out[0].equal(tensor({-1.0, 1.0})));
  EXPECT_FALSE(out[0].requires_grad());
  EXPECT_TRUE(out[1].equal(tensor({-2.0, 6.0})));
  EXPECT_GT(y._version(), version);
  out[1].sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 2.0)));
}

}  // namespace
}  // namespace tenon
