// Hooks on tensors and nodes, and gradients kept on request.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(with([](const Tensor& gradient) { return gradient.to(kFloat64); }),
              ::testing::ThrowsMessage<Error>(
                  ::testing::HasSubstr("hook '0' has changed the type of value (was CPUFloatType got CPUDoubleType)")));
  EXPECT_THAT(with([](const Tensor& gradient) { return gradient.sum(); }),
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("hook '0' has changed the size of value")));
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace tenon
