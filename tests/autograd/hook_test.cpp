// Hooks on tensors and nodes, and gradients kept on request.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {
namespace {

TEST(Hook, SeesAndReplacesTheGradient) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 3;
  int calls = 0;
  y.register_hook([&](const Tensor& gradient) {
    ++calls;
    return gradient * 2;
  });
  const unsigned seen = x.register_hook([&](const Tensor& gradient) {
    EXPECT_TRUE(gradient.equal(full({2}, 6.0)));
    ++calls;
  });
  y.sum().backward({}, true);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(x.grad().equal(full({2}, 6.0)));
  x.remove_hook(seen);
  y.sum().backward();
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(x.remove_hook(9), Error);
}

/// Says whether it has been destroyed: what a hook captured is to be there while it runs.
struct Flagged {
  explicit Flagged(bool& gone) : gone(&gone) {}
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;
  ~Flagged() { *gone = true; }
  bool* gone;
};

TEST(Hook, OfATensorMayRemoveItselfAndRegisterOthersWhileItRuns) {
  for (const bool is_leaf : {true, false}) {
    const Tensor x = ones({2}, requires_grad());
    const Tensor y = is_leaf ? x : x * 1;
    bool gone = false;
    int later = 0;
    auto state = std::make_shared<const Flagged>(gone);
    y.register_hook([&gone, &later, &of = y, state](const Tensor& gradient) {
      of.remove_hook(0);
      for (int i = 0; i < 20; ++i) of.register_hook([&later](const Tensor&) { ++later; });
      EXPECT_FALSE(gone) << "and neither is what holds it";
      return gradient * 2;
    });
    state.reset();
    const Tensor loss = (y * 3).sum();
    loss.backward({}, true);
    EXPECT_TRUE(gone) << "once it has run";
    EXPECT_EQ(later, 0) << "hooks that are registered while hooks run see the next gradient";
    EXPECT_TRUE(x.grad().equal(full({2}, 6.0)));
    loss.backward();
    EXPECT_EQ(later, 20);
    EXPECT_TRUE(x.grad().equal(full({2}, 9.0)));
  }
}

TEST(Hook, OfATensorKeepsWhatItCountsByItself) {
  const Tensor x = ones({2}, requires_grad());
  std::vector<int> seen;
  x.register_hook([&seen, calls = 0](const Tensor&) mutable { seen.push_back(++calls); });
  for (int i = 0; i < 3; ++i) (x * 2).sum().backward();
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3));
}

TEST(Hook, OfANodeMayRegisterOthersWhileItRuns) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 3;
  autograd::Node& node = *y.grad_fn();
  int before = 0, after = 0;
  node.add_pre_hook([&, ten = std::vector<double>(8, 10.0)](const autograd::variable_list& gradients) {
    for (int i = 0; i < 20; ++i) {
      node.add_pre_hook([&before](const autograd::variable_list& given) {
        ++before;
        return given;
      });
    }
    return autograd::variable_list{gradients[0] * ten[7]};
  });
  node.add_post_hook(
      [&, ten = std::vector<double>(8, 10.0)](const autograd::variable_list& outputs, const autograd::variable_list&) {
        for (int i = 0; i < 20; ++i) {
          node.add_post_hook([&after](const autograd::variable_list& given, const autograd::variable_list&) {
            ++after;
            return given;
          });
        }
        return autograd::variable_list{outputs[0] * ten[7], Tensor()};
      });
  node.add_pre_hook([](const autograd::variable_list& gradients) { return autograd::variable_list{gradients[0] * 2}; });
  node.add_post_hook([](const autograd::variable_list& outputs, const autograd::variable_list&) {
    return autograd::variable_list{outputs[0] * 2, Tensor()};
  });
  y.sum().backward();
  EXPECT_EQ(before + after, 0);
  EXPECT_TRUE(x.grad().equal(full({2}, 1200.0)));
}

TEST(Hook, APostAccumulateHookMayEndItselfWhileItRuns) {
  const Tensor x = ones({2}, requires_grad());
  bool gone = false;
  int calls = 0;
  std::optional<autograd::PostAccumulateHandle> handle;
  auto state = std::make_shared<const Flagged>(gone);
  handle.emplace(x, [&, state](const Tensor& leaf) {
    handle.reset();
    EXPECT_FALSE(gone);
    EXPECT_TRUE(leaf.is_same(x));
    ++calls;
  });
  state.reset();
  (x * 2).sum().backward();
  EXPECT_TRUE(gone);
  (x * 2).sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hook, OfANodeGivesAsManyGradientsAsItGets) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 3;
  const IntrusivePtr<autograd::Node> accumulate = autograd::gradient_edge(x).function;
  accumulate->add_pre_hook([](const autograd::variable_list& gradients) { return gradients; });
  accumulate->add_pre_hook([](const autograd::variable_list&) { return autograd::variable_list{}; });
  test::expect_error([&] { y.sum().backward(); },
                     "hook '1' has returned an incorrect number of values (got 0, but expected 1)");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Hook, PostAccumulateHooksSeeWhatWasAddedUpAndMayTakeItAway) {
  const Tensor x = ones({2}, requires_grad());
  x.mutable_grad() = full({2}, 10.0);
  std::vector<std::string> order;
  x.register_hook([&](const Tensor& gradient) {
    order.emplace_back("tensor hook");
    EXPECT_TRUE(gradient.equal(full({2}, 5.0)));
    return gradient * 2;
  });
  {
    const autograd::PostAccumulateHandle first(x, [&](const Tensor& leaf) {
      order.emplace_back("first");
      EXPECT_TRUE(leaf.is_same(x));
      EXPECT_TRUE(leaf.grad().equal(full({2}, 20.0)));
      EXPECT_FALSE(GradMode::is_enabled());
    });
    const autograd::PostAccumulateHandle second(x, [&](const Tensor& leaf) {
      order.emplace_back("second");
      leaf.mutable_grad().reset();
    });
    (x * 2 + x * 3).sum().backward();
    EXPECT_FALSE(x.grad().defined());
  }
  EXPECT_THAT(order, ::testing::ElementsAre("tensor hook", "first", "second"));
  (x * 5).sum().backward();
  EXPECT_EQ(order.size(), 4u) << "handles that ended";
}

TEST(Hook, PostAccumulateHooksAreOfLeavesThatRequireAGradient) {
  const auto nothing = [](const Tensor&) {};
  EXPECT_THROW(autograd::PostAccumulateHandle(ones({2}), nothing), Error);
  EXPECT_THROW(autograd::PostAccumulateHandle(ones({2}, requires_grad()) * 2, nothing), Error);
}

TEST(Hook, RetainGradKeepsTheGradientOfAResult) {
  const Tensor x = ones({2}, requires_grad());
  Tensor y = x * 3;
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad());
  y.mul_(2);  // follows the tensor to its new history
  y.sum().backward();
  EXPECT_TRUE(y.grad().equal(ones({2})));
  EXPECT_TRUE(x.grad().equal(full({2}, 6.0)));
}

TEST(Hook, RetainGradFollowsAViewWhoseBaseWasWrittenTo) {
  const Tensor x = ones({2}, TensorOptions(kFloat64).requires_grad(true));
  const Tensor base = x * 1;
  Tensor view = base.select(0, 0);
  view.retain_grad();
  const Tensor before = view * 5;  // of the view's first history
  base.mul_(3);
  (view * 2).backward();
  EXPECT_EQ(view.grad().item<double>(), 2);
  EXPECT_TRUE(x.grad().equal(tensor({6.0, 0.0}, kFloat64)));
  view.reset();
  before.backward();  // where nobody keeps a gradient any more
  EXPECT_TRUE(x.grad().equal(tensor({11.0, 0.0}, kFloat64)));
}

TEST(Hook, StaysWithTheHistoryItWasRegisteredOn) {
  const Tensor x = ones({2}, requires_grad());
  Tensor y = x.clone();
  Tensor before;
  Tensor after;
  y.register_hook([&](const Tensor& gradient) { before = gradient; });
  y.mul_(2);
  y.register_hook([&](const Tensor& gradient) { after = gradient; });
  y.sum().backward();
  EXPECT_TRUE(before.equal(full({2}, 2.0)));
  EXPECT_TRUE(after.equal(ones({2})));
}

TEST(Hook, OfNodesSeesBothSides) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 3;
  y.grad_fn()->add_pre_hook(
      [](const autograd::variable_list& gradients) { return autograd::variable_list{gradients[0] * 10}; });
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 30.0)));
  EXPECT_EQ(y.grad_fn()->name(), "MulBackward0");
}

TEST(Hook, MayChangeNeitherTypeNorSize) {
  const Tensor x = ones({2}, requires_grad());
  const auto with = [&](std::function<Tensor(const Tensor&)> hook) {
    return [&x, hook] {
      const Tensor y = x * 3;
      y.register_hook(hook);
      y.sum().backward();
    };
  };
  test::expect_error(with([](const Tensor& gradient) { return gradient.to(kFloat64); }),
                     "hook '0' has changed the type of value (was CPUFloatType got CPUDoubleType)");
  test::expect_error(with([](const Tensor& gradient) { return gradient.sum(); }),
                     "hook '0' has changed the size of value");
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace tenon
