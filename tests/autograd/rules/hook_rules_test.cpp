// Hooks of tensors and nodes, flags, and gradients that tensors keep.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/refusal.h"
#include "whole.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- hooks ----------------------------------------------------------------------------------------------------------

TEST(HookRules, RunInTheirOrderAndRemovedOnesLeaveTheOthersTheirPlaces) {
  for (const bool is_leaf : {true, false}) {
    const Tensor x = leaf({2}), y = is_leaf ? x : x * 1;
    std::string order;
    const auto named = [&](const char* name) {
      return y.register_hook([&order, name](const Tensor& gradient) {
        order += name;
        return gradient * 2;
      });
    };
    EXPECT_EQ(named("a"), 0U);
    EXPECT_EQ(named("b"), 1U);
    EXPECT_EQ(named("c"), 2U);
    y.remove_hook(1);
    EXPECT_EQ(named("d"), 3U);
    (y * 3).sum().backward();
    EXPECT_EQ(order, "acd");
    EXPECT_TRUE(x.grad().equal(constant({2}, 24)));
    EXPECT_EQ(refusal_of([&] { y.remove_hook(4); }), "Invalid index, no hook at position 4");
    EXPECT_EQ(refusal_of([&] { leaf({1}).remove_hook(0); }), "Invalid index, no hook at position 0");
    EXPECT_EQ(refusal_of([&] { ones({1}).remove_hook(0); }), "Invalid index, no hook at position 0");
  }
  EXPECT_EQ(refusal_of([] { ones({1}).register_hook([](const Tensor&) {}); }),
            "cannot register a hook on a variable that doesn't require gradient");
}

TEST(HookRules, OfAViewStayWithWhatItWasBeforeItsBaseWasWrittenTo) {
  const Tensor x = leaf({4}), base = x * 1, view = base.view({2, 2});
  std::string order;
  const auto named = [&](const Tensor& tensor, const char* name) {
    return tensor.register_hook([&order, name](const Tensor&) { order += name; });
  };
  named(view, "a");
  const Tensor before = view.sum();
  base.mul_(2);
  EXPECT_EQ(named(view, "b"), 0U) << "the first of what it is now";
  EXPECT_EQ(refusal_of([&] { view.remove_hook(1); }), "Invalid index, no hook at position 1");
  view.sum().backward();
  EXPECT_EQ(order, "b");
  before.backward();
  EXPECT_EQ(order, "ba");
  // The view itself is written to.
  view.mul_(3);
  named(view, "c");
  order.clear();
  view.sum().backward();
  EXPECT_EQ(order, "c");
  EXPECT_TRUE(x.grad().equal(constant({4}, 2 + 1 + 6)));
}

TEST(HookRules, AReplacementOfAnotherFormIsRefusedByTheNumberOfItsHook) {
  const auto refusal = [](const std::function<Tensor(const Tensor&)>& replace, bool is_leaf) {
    const Tensor x = leaf({2, 3}), y = is_leaf ? x : x * 1;
    y.register_hook([](const Tensor&) {});
    y.register_hook(replace);
    return refusal_of([&] { (y * 2).sum().backward(); });
  };
  for (const bool is_leaf : {true, false}) {
    EXPECT_EQ(refusal([](const Tensor& gradient) { return gradient[0]; }, is_leaf),
              "hook '1' has changed the size of value: got [3], expected [2, 3]");
    EXPECT_EQ(refusal([](const Tensor& gradient) { return gradient.to(kFloat32); }, is_leaf),
              "hook '1' has changed the type of value (was CPUDoubleType got CPUFloatType)");
    EXPECT_THAT(refusal(
                    [](const Tensor&) {
                      return empty({2, 3}, TensorOptions(kFloat64).device("meta"));
                    },
                    is_leaf),
                HasSubstr("hook '1' has changed the type of value (was CPUDoubleType got "));
    EXPECT_EQ(refusal([](const Tensor& gradient) { return gradient * 5; }, is_leaf), "");
  }
}

TEST(HookRules, OfOneOfSeveralOutputsSeesItsOwnGradient) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, TensorOptions(kFloat64).requires_grad(true));
  const variable_list parts = (x * 1).unbind();
  std::vector<double> seen;
  parts[2].register_hook([&](const Tensor& gradient) {
    seen.push_back(gradient.item<double>());
    return gradient * 10;
  });
  parts[1].register_hook([&](const Tensor& gradient) { seen.push_back(gradient.item<double>()); });
  (parts[1] * 5 + parts[2] * 7).backward();
  EXPECT_THAT(seen, ElementsAre(7, 5));
  EXPECT_TRUE(x.grad().equal(tensor({0., 5., 70.}, kFloat64)));
  seen.clear();
  const variable_list again = (x * 1).unbind();
  again[0].register_hook([&](const Tensor&) { seen.push_back(0); });
  again[2].backward();
  EXPECT_THAT(seen, ElementsAre()) << "no gradient came for it";
}

TEST(HookRules, AreRunBeforeGradAndRetainGradTakeTheGradient) {
  const Tensor x = leaf({2});
  const Tensor y = x * 2;
  y.register_hook([](const Tensor& gradient) { return gradient * 10; });
  x.register_hook([](const Tensor& gradient) { return gradient * 100; });
  y.retain_grad();
  const auto gradients = grad({(y * 3).sum()}, {y, x}, {}, true);
  EXPECT_TRUE(gradients[0].equal(constant({2}, 30)));
  EXPECT_TRUE(gradients[1].equal(constant({2}, 6000)));
  EXPECT_TRUE(y.grad().equal(constant({2}, 30)));
  EXPECT_FALSE(x.grad().defined());
}

TEST(HookRules, OfNodesAreNumberedAndSeeAndReplaceWhatGoesThrough) {
  const Tensor x = leaf({}, 2);
  const Tensor y = x * 3;
  const IntrusivePtr<Node>& node = y.grad_fn();
  EXPECT_EQ(node->add_pre_hook([](const variable_list& gradients) { return variable_list{gradients[0] * 2}; }), 0U);
  EXPECT_EQ(node->add_pre_hook([](const variable_list& gradients) { return variable_list{gradients[0] + 1}; }), 1U);
  std::vector<double> seen;
  const auto post = [&](const variable_list& outputs, const variable_list& inputs) {
    seen.push_back(outputs[0].item<double>());
    seen.push_back(inputs[0].item<double>());
    variable_list results = outputs;
    results[0] = results[0] * 10;
    return results;
  };
  EXPECT_EQ(node->add_post_hook(post), 0U);
  EXPECT_EQ(node->add_post_hook(post), 1U);
  y.backward(constant({}, 5));
  EXPECT_THAT(seen, ElementsAre(33, 11, 330, 11));
  EXPECT_EQ(x.grad().item<double>(), 3300);
}

TEST(HookRules, APostHookMustGiveAGradientForEachEdge) {
  const Tensor x = leaf({}, 2);
  const Tensor y = x * x;
  y.grad_fn()->add_post_hook(
      [](const variable_list& outputs, const variable_list&) { return variable_list{outputs[0]}; });
  EXPECT_EQ(refusal_of([&] { y.backward(); }),
            "Function MulBackward0 returned an invalid number of gradients - expected 2, but got 1");
}

TEST(HookRules, WhatANodeReturnsIsBroughtToTheFormOfWhatItBelongsToOrRefusedByItsName) {
  const auto with = [](const std::function<Tensor(const Tensor&)>& change) {
    const Tensor x = leaf({2, 3}), w = leaf({2, 3});
    const Tensor y = x * w;
    y.grad_fn()->add_post_hook([change](const variable_list& outputs, const variable_list&) {
      return variable_list{outputs[0], change(outputs[1])};
    });
    y.sum().backward();
    return w.grad();
  };
  EXPECT_EQ(refusal_of([&] { with([](const Tensor&) { return ones({4}, kFloat64); }); }),
            "Function MulBackward0 returned an invalid gradient at index 1 - got [4] but expected shape compatible "
            "with [2, 3]");
  EXPECT_EQ(refusal_of([&] {
              with([](const Tensor&) { return empty({2, 3}, TensorOptions(kFloat64).device("meta")); });
            }),
            "Function MulBackward0 returned an invalid gradient at index 1 - expected device cpu:0 but got meta:0");
  EXPECT_TRUE(with([](const Tensor& gradient) { return gradient.to(kFloat32); }).equal(constant({2, 3}, 1)));
  EXPECT_TRUE(with([](const Tensor&) { return ones({5, 2, 3}, kFloat64); }).equal(constant({2, 3}, 5)));
  EXPECT_FALSE(with([](const Tensor&) { return Tensor(); }).defined());
}

TEST(HookRules, PostAccumulateHooksSayWhatTheyAreFor) {
  const Tensor x = leaf({1});
  const auto nothing = [](const Tensor&) {};
  EXPECT_EQ(refusal_of([&] { const PostAccumulateHandle handle(ones({1}), nothing); }),
            "cannot register a post-accumulate hook on a tensor that does not require a gradient");
  EXPECT_EQ(refusal_of([&] { const PostAccumulateHandle handle(x * 2, nothing); }),
            "post-accumulate hooks can only be registered on leaves");
}

// --- flags and gradients of tensors ---------------------------------------------------------------------------------

TEST(GradientFlags, ARefusalNamesTheFlagAndTheWayOut) {
  const Tensor x = leaf({2});
  EXPECT_EQ(refusal_of([&] { (x * 2).set_requires_grad(false); }),
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  EXPECT_EQ(refusal_of([&] { ones({1}, kInt64).set_requires_grad(true); }),
            "Only Tensors of floating point and complex dtype can require gradients");
  EXPECT_EQ(refusal_of([&] { ones({1}).retain_grad(); }), "can't retain_grad on Tensor that has requires_grad=False");
  EXPECT_EQ(refusal_of([&] { ones({1})._base(); }), "Can't get base of non-backward view Tensor");
  EXPECT_EQ(refusal_of([&] { x.set_data(ones({2}, kInt64)); }),
            "data set to a tensor that requires gradients must be floating point or complex dtype");
  EXPECT_EQ(refusal_of([&] { (x * 2)[0].detach_(); }),
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets.");
  Tensor inference;
  {
    const InferenceMode mode;
    inference = ones({2});
  }
  EXPECT_EQ(refusal_of([&] { inference.set_requires_grad(true); }),
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  EXPECT_EQ(refusal_of([&] { inference.add_(1); }),
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update.");
  EXPECT_EQ(refusal_of([&] { x* inference; }),
            "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
            "tensor and use it in autograd.");
  EXPECT_EQ(refusal_of([&] { inference.set_requires_grad(false); }), "");
}

TEST(GradientFlags, OfALeafComeAndGoAndAResultKeepsItsOwn) {
  const Tensor x = ones({2}, kFloat64);
  EXPECT_FALSE(x.requires_grad());
  x.set_requires_grad(false);
  EXPECT_FALSE(x.requires_grad());
  x.set_requires_grad(true);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  const Tensor y = x * 2;
  y.set_requires_grad(true);
  EXPECT_FALSE(y.is_leaf());
  x.set_requires_grad(false);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_FALSE(x.grad().defined()) << "it wants none any more";
  EXPECT_FALSE(Tensor().requires_grad());
}

TEST(GradientFlags, OutputNumbersAndBasesAreThoseOfTheFunctionThatMadeThem) {
  const Tensor x = leaf({3, 2});
  const variable_list parts = x.unbind();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].output_nr(), static_cast<std::int64_t>(i));
    EXPECT_TRUE(parts[i].is_view());
    EXPECT_TRUE(parts[i]._base().is_same(x));
  }
  EXPECT_EQ(x.output_nr(), 0);
  EXPECT_EQ(ones({1}).output_nr(), 0);
  EXPECT_FALSE((x * 1).is_view());
  EXPECT_TRUE(x.view({6}).view({2, 3})._base().is_same(x)) << "the base is no view itself";
}

struct Warnings : WarningHandler {
  Warnings() { Warning::set_warning_handler(this); }
  ~Warnings() override { Warning::set_warning_handler(nullptr); }
  void process(const SourceLocation&, const std::string& text, bool) override { texts.push_back(text); }
  std::vector<std::string> texts;
};

TEST(GradientFlags, WhoAsksAResultForItsGradientIsWarnedUnlessItKeepsOne) {
  Warnings warnings;
  const Tensor x = leaf({2}), y = x * 2, kept = x * 2;
  (void)x.grad();
  (void)ones({1}).grad();
  kept.retain_grad();
  (void)kept.grad();
  EXPECT_EQ(warnings.texts.size(), 0U);
  EXPECT_FALSE(x.retains_grad());
  EXPECT_TRUE(kept.retains_grad());
  (void)y.grad();
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_THAT(warnings.texts[0], HasSubstr("The .grad attribute of a Tensor that is not a leaf Tensor"));
  y.mutable_grad() = ones({2});
  (void)y.grad();
  EXPECT_EQ(warnings.texts.size(), 1U) << "one was set";
}

TEST(GradientFlags, DataOfATensorHasVersionsOfItsOwnAndNoHistory) {
  const Tensor x = leaf({2}) * 1.;
  x.mul_(2);
  x.mul_(2);
  const Tensor data = x.data();
  EXPECT_EQ(data._version(), 0);
  EXPECT_EQ(x.variable_data()._version(), 0);
  EXPECT_FALSE(data.requires_grad());
  data.add_(1);
  EXPECT_EQ(data._version(), 1);
  EXPECT_EQ(x._version(), 2);
  EXPECT_TRUE(x.detach().equal(constant({2}, 5))) << "the memory is the same";
  const Tensor seen = x.tensor_data();
  EXPECT_FALSE(seen.requires_grad());
  EXPECT_EQ(seen._version(), 2);
  const Tensor loss = x.square().sum();
  seen.add_(1);
  EXPECT_EQ(x._version(), 3);
  EXPECT_THAT(refusal_of([&] { loss.backward(); }), HasSubstr("is at version 3; expected version 2 instead"));
  const Variable variable = make_variable(x, true);
  EXPECT_EQ(variable._version(), 0);
  EXPECT_TRUE(variable.is_leaf());
  EXPECT_TRUE(variable.requires_grad());
  EXPECT_FALSE(make_variable(x).requires_grad());
  EXPECT_FALSE(make_variable(Tensor()).defined());
}

TEST(GradientFlags, NewDataHasNewGradientsOfItsSize) {
  const Tensor x = leaf({2}, 3);
  const Tensor y = x * x;
  x.set_data(constant({3}, 5));
  EXPECT_TRUE(x.requires_grad());
  (x * x).sum().backward();
  EXPECT_TRUE(x.grad().equal(constant({3}, 10)));
  const Tensor plain = ones({2});
  plain.set_data(ones({2}, kInt64));
  EXPECT_EQ(plain.scalar_type(), kInt64);
  Tensor inference;
  {
    const InferenceMode mode;
    inference = ones({2});
  }
  inference.set_data(ones({3}));
  EXPECT_FALSE(inference.is_inference()) << "what it holds now may be written to";
  EXPECT_EQ(refusal_of([&] { inference.mul_(2); }), "");
}

}  // namespace
}  // namespace tenon
