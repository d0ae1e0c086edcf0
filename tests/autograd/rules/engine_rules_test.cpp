// What backward and grad refuse, word for word, and what they run, keep, show and give up.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/refusal.h"
#include "whole.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;

// --- what is refused ------------------------------------------------------------------------------------------------

TEST(EngineRules, RefusalsSayWhatWasGivenAndWhatIsExpected) {
  const Tensor x = leaf({2, 3}), y = x * 2, plain = ones({2, 3});
  EXPECT_EQ(refusal_of([&] { backward({y, y}, {ones({2, 3})}); }), "got 2 tensors and 1 gradients");
  EXPECT_EQ(refusal_of([&] { backward({y}, {plain, plain, plain}); }), "got 1 tensors and 3 gradients");
  EXPECT_EQ(refusal_of([&] { grad({y}, {x}, {plain, plain}); }), "got 1 tensors and 2 gradients");
  EXPECT_EQ(refusal_of([&] { grad({y, y.sum()}, {x}, {plain}); }), "got 2 tensors and 1 gradients");
  EXPECT_EQ(refusal_of([&] { y.backward(); }),
            "grad can be implicitly created only for scalar outputs (got a tensor of shape [2, 3])");
  EXPECT_EQ(refusal_of([&] { leaf({0}).backward(); }),
            "grad can be implicitly created only for scalar outputs (got a tensor of shape [0])");
  EXPECT_EQ(refusal_of([&] {
              backward({y.sum(), plain.sum()});
            }),
            "element 1 of tensors does not require grad and does not have a grad_fn");
  EXPECT_EQ(refusal_of([&] {
              grad({plain, y}, {x}, {plain, y});
            }),
            "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_EQ(refusal_of([&] {
              y.sum().backward({}, std::nullopt, false, TensorList({x, plain}));
            }),
            "One of the differentiated Tensors does not require grad");
  EXPECT_EQ(refusal_of([&] { grad({y.sum()}, {plain}); }), "One of the differentiated Tensors does not require grad");
  EXPECT_EQ(refusal_of([&] { grad({y.sum()}, {}); }), "grad requires non-empty inputs.");
  EXPECT_EQ(refusal_of([&] { y.sum().backward({}, std::nullopt, false, TensorList(variable_list{})); }),
            "'inputs' argument to backward cannot be empty");
  EXPECT_EQ(refusal_of([&] { grad({y.sum()}, {leaf({1})}); }),
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior.");
  EXPECT_EQ(refusal_of([&] {
              backward({y.sum(), y}, {Tensor(), ones({3, 2})});
            }),
            "invalid gradient at index 1 - got [3, 2] but expected shape compatible with [2, 3]");
}

TEST(EngineRules, AnImplicitGradientIsMadeForOneElementOfAnyRank) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{}, {1}, {1, 1, 1}}) {
    const Tensor x = leaf(sizes, 3);
    (x * x).backward();
    EXPECT_TRUE(x.grad().equal(constant(sizes, 6)));
    EXPECT_TRUE(grad({x * x}, {x})[0].equal(constant(sizes, 6)));
  }
}

TEST(EngineRules, AGradientIsSummedToWhatItBelongsTo) {
  const Tensor x = leaf({3, 1});
  (x * 2).backward(constant({4, 3, 5}, 1));
  EXPECT_TRUE(x.grad().equal(constant({3, 1}, 40)));
  const Tensor y = leaf({2});
  (y * 2).backward(constant({}, 1).expand({2}));
  EXPECT_TRUE(y.grad().equal(constant({2}, 2)));
}

TEST(EngineRules, SomeGradientsMayBeLeftOutOfSeveral) {
  const Tensor x = leaf({2});
  backward({(x * 2).sum(), x * 3, (x * 5).sum()}, {Tensor(), constant({2}, 10), constant({}, 7)});
  EXPECT_TRUE(x.grad().equal(constant({2}, 2 + 30 + 35)));
  const auto gradients = grad({(x * 2).sum(), x * 3}, {x}, {constant({}, 100), constant({2}, 1)});
  EXPECT_TRUE(gradients[0].equal(constant({2}, 203)));
}

TEST(EngineRules, ATensorThatIsItsOwnRootGetsTheGradientItself) {
  const Tensor x = leaf({});
  x.backward();
  EXPECT_EQ(x.grad().item<double>(), 1);
  const Tensor y = x * 2;
  const auto gradients = grad({y, y}, {y, x}, {constant({}, 3), constant({}, 4)});
  EXPECT_EQ(gradients[0].item<double>(), 7);
  EXPECT_EQ(gradients[1].item<double>(), 14);
}

TEST(EngineRules, ARootMayLieOnTheWayOfAnother) {
  const Tensor x = leaf({});
  const Tensor y = x * 2, z = y * 3;
  backward({y, z});
  EXPECT_EQ(x.grad().item<double>(), 2 + 6);
  const Tensor u = x * 2, v = u * 3;
  x.mutable_grad().reset();
  backward({v, u});
  EXPECT_EQ(x.grad().item<double>(), 2 + 6);
}

// --- which nodes run ------------------------------------------------------------------------------------------------

/// The product of two, whose backward says what it is asked for and writes down that it ran.
struct Counted : Function<Counted> {
  static inline std::vector<std::string> runs;
  static Tensor forward(AutogradContext* context, Tensor a, Tensor b, std::string name) {
    context->saved_data["name"] = name;
    context->save_for_backward({a, b});
    return a * b;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    runs.push_back(context->saved_data["name"].toStringRef() + ":" + (context->needs_input_grad(0) ? "a" : "") +
                   (context->needs_input_grad(1) ? "b" : ""));
    return {gradients[0] * saved[1], gradients[0] * saved[0], Tensor()};
  }
  static std::vector<std::string> taken() { return std::exchange(runs, {}); }
};

TEST(EngineRules, OnlyNodesOnTheWayToWhatIsAskedForRun) {
  const Tensor a = leaf({}, 2), b = leaf({}, 3), c = leaf({}, 5);
  const Tensor ab = Counted::apply(a, b, "ab"), bc = Counted::apply(b, c, "bc"), all = Counted::apply(ab, bc, "all");
  EXPECT_EQ(grad({all}, {a}, {}, true)[0].item<double>(), 45);
  EXPECT_THAT(Counted::taken(), ElementsAre("all:a", "ab:a"));
  EXPECT_EQ(grad({all}, {c}, {}, true)[0].item<double>(), 18);
  EXPECT_THAT(Counted::taken(), ElementsAre("all:b", "bc:b"));
  EXPECT_EQ(grad({all}, {b}, {}, true)[0].item<double>(), 60);
  EXPECT_THAT(Counted::taken(), ElementsAre("all:ab", "bc:a", "ab:b"));
  const auto inner = grad({all}, {bc, ab}, {}, true);
  EXPECT_EQ(inner[0].item<double>(), 6);
  EXPECT_EQ(inner[1].item<double>(), 15);
  EXPECT_THAT(Counted::taken(), ElementsAre("all:ab"));
  const auto two = grad({all}, {bc, b, bc}, {}, true);
  EXPECT_EQ(two[0].item<double>(), 6);
  EXPECT_EQ(two[1].item<double>(), 60);
  EXPECT_EQ(two[2].item<double>(), 6);
  Counted::taken();
  EXPECT_FALSE(grad({all}, {leaf({})}, {}, true, false, /*allow_unused=*/true)[0].defined());
  EXPECT_THAT(Counted::taken(), ElementsAre()) << "nothing leads there";
  all.backward({}, true, false, TensorList({b}));
  EXPECT_THAT(Counted::taken(), ElementsAre("all:ab", "bc:a", "ab:b"));
  EXPECT_EQ(b.grad().item<double>(), 60);
  EXPECT_FALSE(a.grad().defined());
  EXPECT_FALSE(c.grad().defined());
  all.backward();
  EXPECT_THAT(Counted::taken(), ElementsAre("all:ab", "bc:ab", "ab:ab"));
  EXPECT_EQ(b.grad().item<double>(), 120);
}

TEST(EngineRules, ANodeRunsOnceWhateverNumberOfWaysLeadToIt) {
  const Tensor a = leaf({}, 2), b = leaf({}, 3);
  Tensor x = Counted::apply(a, b, "x");
  Tensor sum = x;
  for (int i = 0; i < 100; ++i) sum = sum + x;  // the map of nodes grows
  sum.backward();
  EXPECT_THAT(Counted::taken(), ElementsAre("x:ab"));
  EXPECT_EQ(a.grad().item<double>(), 303);
}

TEST(EngineRules, ConstantsAreAskedForNoGradient) {
  const Tensor a = leaf({}, 2);
  Counted::apply(constant({}, 3), a, "left").backward();
  Counted::apply(a, constant({}, 3), "right").backward();
  EXPECT_THAT(Counted::taken(), ElementsAre("left:b", "right:a"));
}

// --- what is kept of the graph --------------------------------------------------------------------------------------

TEST(EngineRules, AGraphIsKeptWhereItIsAskedForOrWhereOneIsMadeOfTheGradient) {
  const auto runs = [](std::optional<bool> retain, bool create) {
    const Tensor x = leaf({}, 2);
    const Tensor y = x * x;
    const bool has_history = grad({y}, {x}, {}, retain, create)[0].requires_grad();
    EXPECT_EQ(has_history, create);
    return refusal_of([&] { y.backward(); }) == "";
  };
  EXPECT_FALSE(runs(std::nullopt, false));
  EXPECT_TRUE(runs(std::nullopt, true));
  EXPECT_TRUE(runs(true, false));
  EXPECT_FALSE(runs(false, true));
  EXPECT_FALSE(runs(false, false));
  const auto runs_again = [](std::optional<bool> retain, bool create) {
    const Tensor x = leaf({}, 2);
    const Tensor y = x * x;
    y.backward({}, retain, create);
    EXPECT_EQ(x.grad().requires_grad(), create);
    const bool again = refusal_of([&] { y.backward(); }) == "";
    x.mutable_grad().reset();
    return again;
  };
  EXPECT_FALSE(runs_again(std::nullopt, false));
  EXPECT_TRUE(runs_again(std::nullopt, true));
  EXPECT_TRUE(runs_again(true, false));
  EXPECT_FALSE(runs_again(false, true));
}

TEST(EngineRules, GradientsOfGradientsAccumulateWithTheirHistory) {
  const Tensor x = leaf({2}, 3);
  (x * x * x).sum().backward({}, true, /*create_graph=*/true);
  (x * x).sum().backward({}, true, /*create_graph=*/true);
  const Tensor first = x.grad();
  EXPECT_TRUE(first.detach().equal(constant({2}, 27 + 6)));
  EXPECT_TRUE(grad({first.sum()}, {x})[0].equal(constant({2}, 18 + 2)));
  x.mutable_grad().reset();
}

// --- sums of gradients ----------------------------------------------------------------------------------------------

TEST(EngineRules, AChainOfDiamondsIsWalkedOnceANode) {
  const Tensor x = leaf({}, 1);
  Tensor y = x * 1;
  for (int i = 0; i < 64; ++i) y = y + y;  // 2^64 ways
  EXPECT_EQ(grad({y}, {x}, {}, true)[0].item<double>(), 0x1p64);
  y.backward({}, true, false, TensorList({x}));
  EXPECT_EQ(x.grad().item<double>(), 0x1p64);
  y.backward();
  EXPECT_EQ(x.grad().item<double>(), 0x1p65);
}

TEST(EngineRules, WhatSomebodyKeptOfAGradientIsNotWhatTheSumIsMadeIn) {
  const Tensor x = leaf({3});
  const Tensor y = x * 1, a = y * 2, b = y * 3, c = y * 5;
  std::vector<Tensor> kept;
  for (const Tensor& one : {a, b, c}) {
    one.grad_fn()->add_post_hook([&](const variable_list& outputs, const variable_list&) {
      kept.push_back(outputs[0]);
      return outputs;
    });
  }
  (a + b + c).sum().backward();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_TRUE(kept[0].equal(constant({3}, 5)));
  EXPECT_TRUE(kept[1].equal(constant({3}, 3)));
  EXPECT_TRUE(kept[2].equal(constant({3}, 2)));
  EXPECT_TRUE(x.grad().equal(constant({3}, 10)));
}

TEST(EngineRules, SumsAreRightWhateverTheLayoutsOfWhatIsAdded) {
  const Tensor x = leaf({2, 3});
  const Tensor y = x * 1;
  const Tensor weights = tensor({{1., 2., 3.}, {4., 5., 6.}}, kFloat64);
  // Expanded, transposed, dense, and a part with zeros around it.
  const Tensor loss =
      y.sum() + (y.t() * weights.t()).sum() + (y * weights).sum() + y[1].sum() + y.narrow(1, 1, 1).sum();
  loss.backward();
  EXPECT_TRUE(x.grad().equal(tensor({{3., 6., 7.}, {10., 13., 14.}}, kFloat64)));
  const Tensor z = leaf({2, 3});
  const Tensor first = grad({(z * z).sum() + z.sum() + (z.t() * weights.t()).sum()}, {z}, {}, std::nullopt, true)[0];
  EXPECT_TRUE(first.detach().equal(weights + 3));
  EXPECT_TRUE(grad({first.sum()}, {z})[0].equal(constant({2, 3}, 2)));
}

TEST(EngineRules, LeavesOfOneRunAreServedInTheOrderInWhichTheirGradientsAreComplete) {
  const Tensor a = leaf({}), b = leaf({}), c = leaf({});
  std::string order;
  for (const auto& [one, name] : {std::pair(a, "a"), std::pair(b, "b"), std::pair(c, "c")})
    one.register_hook([&order, name = name](const Tensor&) { order += name; });
  (a * b * c + a).backward();
  EXPECT_EQ(order.size(), 3U);
  EXPECT_EQ(order, "cab");
}

TEST(EngineRules, FlagsMayBeTakenFromWhatNeverHadThem) {
  EXPECT_EQ(refusal_of([] { ones({1}, kInt64).set_requires_grad(false); }), "");
  EXPECT_EQ(refusal_of([] { ones({1}, kBool).set_requires_grad(false); }), "");
}

}  // namespace
}  // namespace tenon
