// backward and grad: what they compute, keep, free and refuse.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

using ::testing::ThrowsMessage;

TEST(Engine, SumsOverEveryUse) {
  const Tensor x = tensor({2.0, 3.0}, requires_grad());
  (x * x + x * 4).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({8.0, 10.0})));
  (x * 2).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({10.0, 12.0})));
}

TEST(Engine, ReducesBroadcastOperands) {
  const Tensor a = ones({3, 1}, requires_grad());
  const Tensor b = ones({4}, requires_grad());
  (a * b).sum().backward();
  EXPECT_TRUE(a.grad().equal(full({3, 1}, 4.0)));
  EXPECT_TRUE(b.grad().equal(full({4}, 3.0)));
}

TEST(Engine, GradLeavesLeavesAlone) {
  const Tensor x = tensor({2.0}, requires_grad());
  const Tensor unused = tensor({1.0}, requires_grad());
  const Tensor y = x.pow(3);
  const auto gradients = autograd::grad({y}, {x}, {}, true);
  EXPECT_EQ(gradients[0].item<float>(), 12);
  EXPECT_FALSE(x.grad().defined());
  test::expect_error([&] { autograd::grad({y}, {unused}, {}, true); }, "Set allow_unused=True");
  EXPECT_FALSE(autograd::grad({y}, {unused}, {}, true, false, true)[0].defined());
  test::expect_error([&] { autograd::grad({y}, {}); }, "grad requires non-empty inputs.");
}

TEST(Engine, DifferentiatesTwice) {
  const Tensor x = tensor({2.0}, TensorOptions(kFloat64).requires_grad(true));
  const Tensor first = autograd::grad({x.pow(3)}, {x}, {}, std::nullopt, true)[0];
  const Tensor second = autograd::grad({first}, {x}, {}, std::nullopt, true)[0];
  const Tensor third = autograd::grad({second}, {x})[0];
  EXPECT_EQ(first.item<double>(), 12);
  EXPECT_EQ(second.item<double>(), 12);
  EXPECT_EQ(third.item<double>(), 6);
}

TEST(Engine, BackwardWithInputsAccumulatesOnlyThere) {
  const Tensor x = tensor({2.0}, requires_grad());
  const Tensor y = tensor({3.0}, requires_grad());
  const Tensor z = x * y;
  (z * z).backward({}, std::nullopt, false, TensorList({x, z}));
  EXPECT_EQ(x.grad().item<float>(), 36);
  EXPECT_EQ(z.grad().item<float>(), 12);
  EXPECT_FALSE(y.grad().defined());
}

TEST(Engine, RefusesInPyTorchsWords) {
  const Tensor x = ones({2}, requires_grad());
  test::expect_error([&] { (x * 2).backward(); }, "grad can be implicitly created only for scalar outputs");
  test::expect_error([] { ones({1}).backward(); },
                     "element 0 of tensors does not require grad and does not have a grad_fn");
  test::expect_error([&] { (x * 2).backward(ones({3})); }, "expected shape compatible with [2]");
  const Tensor y = (x * x).sum();
  y.backward();
  test::expect_error([&] { y.backward(); }, "Trying to backward through the graph a second time");
  test::expect_error([] { ones({1}, kInt64).set_requires_grad(true); }, "Only Tensors of floating point");
  test::expect_error([&] { (x * 2).set_requires_grad(false); },
                     "you can only change requires_grad flags of leaf variables");
}

TEST(Engine, RetainedGraphsRunAgain) {
  const Tensor x = tensor({3.0}, requires_grad());
  const Tensor y = x * x;
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(x.grad().item<float>(), 12);
}

TEST(Engine, GivesUpSavedTensorsAsSoonAsTheirNodeRan) {
  const Tensor x = ones({1000}, requires_grad());
  Tensor y = x.exp();
  const StorageImpl* const storage = &y.impl().storage();
  EXPECT_EQ(storage->use_count(), 2u);  // y itself and what exp saved
  const Tensor z = y.sum();
  z.backward();
  EXPECT_EQ(storage->use_count(), 1u);
}

TEST(Engine, FirstGradientIsTakenOverWithoutACopy) {
  const Tensor x = ones({1000}, requires_grad());
  void* seen = nullptr;
  const Tensor y = x * 2;
  y.grad_fn()->add_post_hook([&](const autograd::variable_list& outputs, const autograd::variable_list&) {
    seen = outputs[0].data_ptr();
    return outputs;
  });
  y.sum().backward();
  EXPECT_NE(seen, nullptr);
  EXPECT_EQ(x.grad().numel(), 1000);
}

/// The chain is built, run backwards and destroyed on a thread whose stack would not hold a frame per node.
TEST(Engine, MillionNodesNeedNoStack) {
  bool done = false;
  std::thread worker([&] {
    const Tensor x = ones({1}, requires_grad());
    {
      Tensor y = x;
      for (int i = 0; i < 1000000; ++i) y = y + 1;
      y.backward();
      EXPECT_EQ(x.grad().item<float>(), 1);
    }
    {
      Tensor y = x;
      for (int i = 0; i < 300000; ++i) y = y * x;  // destroyed without having run: saved tensors hold the chain too
    }
    done = true;
  });
  worker.join();
  EXPECT_TRUE(done);
}

TEST(Engine, CastsIntegerGradientsToTheTypeOfWhatTheyBelongTo) {
  const Tensor x = ones({2, 3}, requires_grad());
  (x * 2).backward(ones({2, 3}, TensorOptions(kInt64)) * 4);
  EXPECT_EQ(x.grad().scalar_type(), kFloat32);
  EXPECT_TRUE(x.grad().equal(full({2, 3}, 8.0)));
}

TEST(Engine, AGradientOfAnotherShapeIsRefusedWithoutANameOfTheRoot) {
  const Tensor x = ones({2, 3}, requires_grad());
  EXPECT_THAT([&] { (x * 2).backward(ones({4})); },
              ThrowsMessage<Error>(::testing::StartsWith(
                  "invalid gradient at index 0 - got [4] but expected shape compatible with [2, 3]")));
}

// Both are one number shown many times; in the root's dtype it would be 128 TiB.
TEST(Engine, MemoryThatRunsOutForTheRootsGradientIsThatAndNoMistakeOfIt) {
  const Tensor x = ones({1}, requires_grad());
  constexpr std::int64_t kMany = std::int64_t{1} << 45;
  const Tensor gradient = zeros({1}, TensorOptions(kFloat64)).expand({kMany});
  EXPECT_THROW(x.expand({kMany}).backward(gradient), OutOfMemory);
}

TEST(Engine, SumsOfGradientsAreOfVersionZero) {
  const Tensor x = ones({3}, requires_grad());
  (x * 2 + x * 3 + x.exp()).sum().backward();
  EXPECT_EQ(x.grad()._version(), 0);
}

}  // namespace
}  // namespace tenon
