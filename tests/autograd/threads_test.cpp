// Independent graphs on several threads, and one leaf that all of them end in.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <support/stress.h>

#include <barrier>

namespace tenon {
namespace {

using test::on_threads;
using test::stress_rounds;

TEST(Threads, AddUpTheGradientsOfALeafThatTheyShare) {
  const Tensor x = ones({4}, TensorOptions(kFloat64).requires_grad(true));
  const int rounds = stress_rounds(20'000);
  on_threads(4, [&](int) {
    for (int round = 0; round < rounds; ++round) (x * 2).sum().backward();
  });
  EXPECT_TRUE(x.grad().equal(full({4}, 8.0 * rounds, kFloat64)));
}

TEST(Threads, NeverGetAnAccumulatorThatIsOnItsWayOut) {
  // It lives as long as some edge leads to it: every few rounds the last edge goes while another thread asks for one.
  constexpr std::uint32_t kThreads = 2;
  const Tensor x = ones({4}, TensorOptions(kFloat64).requires_grad(true));
  const int rounds = stress_rounds(1'000'000);
  on_threads(kThreads, [&](int) {
    for (int round = 0; round < rounds; ++round) {
      const autograd::Edge edge = autograd::gradient_edge(x);
      const std::uint32_t owners = edge.function->use_count();
      ASSERT_TRUE(owners >= 1 && owners <= kThreads) << owners << " owners in round " << round;
      ASSERT_EQ(edge.function->num_inputs(), 1u);
    }
  });
}

TEST(Threads, AddUpRecordedGradientsOfALeafThatTheyShare) {
  const Tensor x = full({1}, 3.0, TensorOptions(kFloat64).requires_grad(true));
  const int rounds = stress_rounds(300);
  on_threads(4, [&](int) {
    for (int round = 0; round < rounds; ++round) {
      autograd::backward({(x * x).sum()}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    }
  });
  EXPECT_EQ(x.grad().item<double>(), 4 * rounds * 6);
  // The gradient is 2x for each of them, so its own is 2 for each.
  EXPECT_EQ(autograd::grad({x.grad()}, {x})[0].item<double>(), 4 * rounds * 2);
  x.mutable_grad().reset();
}

TEST(Threads, MayDropATensorThatKeepsItsGradientWhileAnotherRunsBackward) {
  const Tensor x = ones({2}, TensorOptions(kFloat64).requires_grad(true));
  const int rounds = stress_rounds(3000);
  Tensor kept, loss;
  std::barrier ready(2), done(2);
  on_threads(2, [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      if (thread == 0) {
        kept = x * 2;
        kept.retain_grad();
        loss = (kept * 3).sum();
      }
      ready.arrive_and_wait();
      thread == 0 ? loss.backward() : kept.reset();
      done.arrive_and_wait();
    }
  });
  EXPECT_TRUE(x.grad().equal(full({2}, 6.0 * rounds, kFloat64)));
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
