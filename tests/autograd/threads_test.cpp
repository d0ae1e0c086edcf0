// Independent graphs on several threads, and one leaf that all of them end in.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

TEST(Threads, AccumulateIntoOneLeaf) {
  const Tensor x = ones({4}, TensorOptions(kFloat64).requires_grad(true));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&x] {
      for (int round = 0; round < 50; ++round) (x * 2 + x).sum().backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(x.grad().equal(full({4}, 600.0, kFloat64)));
}

TEST(Threads, NestedBackwardGoesDeep) {
  // Each backward runs another one; far more levels than one stack holds.
  struct Nested : autograd::Function<Nested> {
    static Tensor forward(autograd::AutogradContext* context, Tensor x) {
      context->saved_data["level"] = x.item<double>();
      return x * 1;
    }
    static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
      const double level = context->saved_data["level"].toDouble();
      if (level > 0) {
        AutoGradMode grad(true);
        const Tensor next = tensor({level - 1}, TensorOptions(kFloat64).requires_grad(true));
        Nested::apply(next).sum().backward();
      }
      return {gradients[0]};
    }
  };
  const Tensor x = tensor({2000.0}, TensorOptions(kFloat64).requires_grad(true));
  Nested::apply(x).sum().backward();
  EXPECT_EQ(x.grad().item<double>(), 1);
}

}  // namespace
}  // namespace tenon
