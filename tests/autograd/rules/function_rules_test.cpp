// What custom functions give and take: a place for every tensor among the arguments, outputs of every kind.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What backward gives for what forward took: a tensor, one that may be missing, a list, a number.
struct Mixed : Function<Mixed> {
  static inline std::function<variable_list(AutogradContext*, variable_list)> answer;
  static Tensor forward(AutogradContext*, Tensor x, std::optional<Tensor> maybe, variable_list list, double factor) {
    Tensor sum = x * factor;
    if (maybe && maybe->defined()) sum = sum + *maybe;
    for (const Tensor& one : list) sum = sum + one;
    return sum;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return answer(context, std::move(gradients));
  }
};

TEST(FunctionRules, EveryTensorOfTheArgumentsHasAPlaceAmongTheGradients) {
  const auto run = [](bool has_optional, const std::optional<Tensor>& otherwise, std::size_t given,
                      std::size_t extra_undefined, bool of_number) {
    const Tensor x = ones({}, requires_grad()), maybe = ones({}, requires_grad()), a = ones({}, requires_grad()),
                 b = ones({}, requires_grad());
    Mixed::answer = [&](AutogradContext*, const variable_list& gradients) {
      variable_list results;
      for (std::size_t i = 0; i < given; ++i) results.push_back(gradients[0] * static_cast<double>(i + 1));
      if (!has_optional && given > 1) results[1] = Tensor();
      if (given == 5 && !of_number) results[4] = Tensor();
      results.resize(given + extra_undefined);
      return results;
    };
    const Tensor y = Mixed::apply(x, has_optional ? std::optional(maybe) : otherwise, variable_list{a, b}, 2.0);
    const std::string refusal = refusal_of([&] { y.backward(); });
    if (!refusal.empty()) return refusal.substr(refusal.find("returned"));
    EXPECT_EQ(x.grad().item<float>(), 1);
    if (has_optional) {
      EXPECT_EQ(maybe.grad().item<float>(), 2);
    }
    EXPECT_EQ(a.grad().item<float>(), 3);
    EXPECT_EQ(b.grad().item<float>(), 4);
    return std::string();
  };
  for (const auto& [has_optional, otherwise] :
       std::vector<std::pair<bool, std::optional<Tensor>>>{{true, {}}, {false, std::nullopt}, {false, Tensor()}}) {
    EXPECT_EQ(run(has_optional, otherwise, 5, 0, false), "");
    EXPECT_EQ(run(has_optional, otherwise, 5, 3, false), "") << "more is fine where it is undefined";
    EXPECT_EQ(run(has_optional, otherwise, 4, 0, false),
              "returned an incorrect number of gradients (expected 5, got 4)");
    EXPECT_EQ(run(has_optional, otherwise, 6, 0, false),
              "returned an incorrect number of gradients (expected 5, got 6)");
    EXPECT_EQ(run(has_optional, otherwise, 5, 0, true),
              "returned a gradient different that is defined at position 5, but the corresponding forward input was "
              "not a Variable");
  }
}

struct Pair : Function<Pair> {
  static inline bool materializes = true;
  static inline std::vector<bool> defined;
  static inline variable_list incoming;
  static variable_list forward(AutogradContext* context, Tensor x) {
    context->set_materialize_grads(materializes);
    return {x * 2, Tensor(), x.unsqueeze(0).expand({3, 2}) * 1.};
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    defined.clear();
    for (const Tensor& gradient : gradients) defined.push_back(gradient.defined());
    incoming = gradients;
    return {gradients[0].defined() ? gradients[0] * 2 : gradients[2].sum(0)};
  }
};

TEST(FunctionRules, GradientsThatDidNotComeAreZerosOfTheOutputsFormUnlessThatIsTurnedOff) {
  for (const bool materializes : {true, false}) {
    Pair::materializes = materializes;
    const Tensor x = ones({2}, TensorOptions(kFloat64).requires_grad(true));
    const variable_list out = Pair::apply(x);
    ASSERT_EQ(out.size(), 3U);
    EXPECT_FALSE(out[1].defined());
    EXPECT_EQ(out[2].output_nr(), 2);
    out[0].sum().backward();
    EXPECT_THAT(Pair::defined, ElementsAre(true, false, materializes));
    if (materializes) {
      EXPECT_TRUE(Pair::incoming[2].equal(zeros({3, 2}, kFloat64)));
    }
    EXPECT_TRUE(x.grad().equal(full({2}, 2., kFloat64)));
  }
}

struct Identity : Function<Identity> {
  static inline bool marks = false;
  static Tensor forward(AutogradContext* context, Tensor x) {
    if (marks) context->mark_non_differentiable({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 5}; }
};

TEST(FunctionRules, AnInputThatComesBackIsAnotherTensorOnItsMemory) {
  for (const bool is_leaf : {true, false}) {
    const Tensor x = ones({2}, requires_grad()), input = is_leaf ? x : x * 1;
    Identity::marks = false;
    const Tensor y = Identity::apply(input);
    EXPECT_FALSE(y.is_same(input));
    EXPECT_TRUE(y.is_alias_of(input));
    EXPECT_TRUE(y.is_view());
    EXPECT_THAT(y.grad_fn()->name(), HasSubstr("Identity"));
    EXPECT_THAT(refusal_of([&] { y.mul_(2); }), HasSubstr("custom Function"));
    y.sum().backward();
    EXPECT_TRUE(x.grad().equal(full({2}, 5.)));
    Identity::marks = true;
    const Tensor z = Identity::apply(input);
    EXPECT_FALSE(z.requires_grad());
    EXPECT_FALSE(z.is_same(input));
    EXPECT_TRUE(z.is_alias_of(input));
    EXPECT_TRUE(input.requires_grad());
  }
  Identity::marks = false;
  const Tensor plain = ones({2});
  const Tensor alias = Identity::apply(plain);
  EXPECT_FALSE(alias.is_same(plain));
  EXPECT_EQ(refusal_of([&] { alias.mul_(2); }), "");
  EXPECT_TRUE(plain.equal(full({2}, 2.)));
  EXPECT_THAT(refusal_of([&] { alias.mul_(ones({2}, requires_grad())); }), HasSubstr("custom Function"))
      << "the input would not know of it";
  const NoGradGuard off;
  const Tensor x = ones({2}, requires_grad());
  EXPECT_FALSE(Identity::apply(x).requires_grad());
}

struct Saves : Function<Saves> {
  static Tensor forward(AutogradContext* context, Tensor x) {
    const Tensor y = x.exp();
    context->save_for_backward({x, y, Tensor()});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    EXPECT_EQ(saved.size(), 3U);
    EXPECT_FALSE(saved[2].defined());
    return {gradients[0] * saved[1]};
  }
};

TEST(FunctionRules, WhatIsSavedHasItsHistoryAndItsVersionAndGoesAfterTheRun) {
  const Tensor x = tensor({0.5}, TensorOptions(kFloat64).requires_grad(true));
  const Tensor first = grad({Saves::apply(x)}, {x}, {}, std::nullopt, true)[0];
  const Tensor second = grad({first}, {x})[0];
  EXPECT_TRUE(second.equal(x.detach().exp()));
  const Tensor y = Saves::apply(x);
  y.mul_(2);
  EXPECT_THAT(refusal_of([&] { y.backward(); }),
              ::testing::AllOf(HasSubstr("[CPUDoubleType [1]], which is output 0 of "), HasSubstr("Saves"),
                               HasSubstr("is at version 1; expected version 0 instead")));
  const Tensor z = Saves::apply(x);
  z.backward();
  EXPECT_THAT(refusal_of([&] { z.backward(); }),
              HasSubstr("Trying to backward through the graph a second time (or directly access saved tensors"));
}

}  // namespace
}  // namespace tenon
