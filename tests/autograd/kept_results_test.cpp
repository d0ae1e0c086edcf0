// Selective checkpointing: what a policy keeps is not computed again, gradients are those of the plain run to the bit,
// and memory is that of what is kept.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/device/device_state.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Part = std::function<Tensor(Tensor)>;

CheckpointOptions keeping(std::vector<std::string> operators) {
  return {.keep = keep_results_of(std::move(operators))};
}

/// Bytes that the cpu's allocator gave out while `run` ran.
std::int64_t bytes_given_out(const std::function<void()>& run) {
  const auto given = [] { return device_state(Device(kCPU)).allocator().stats().requested_bytes.allocated; };
  const std::int64_t before = given();
  run();
  return given() - before;
}

/// The gradient of x and of the weight after one step through the part.
std::vector<Tensor> gradients(const Tensor& x, const Tensor& weight, const std::function<Tensor()>& forward) {
  x.mutable_grad().reset();
  weight.mutable_grad().reset();
  forward().square().sum().backward();
  return {x.grad().clone(), weight.grad().clone()};
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
}

TEST(KeptResults, LeaveGradientsAsTheyAreForEveryOperator) {
  manual_seed(3);
  const Tensor x = randn({2, 3, 8, 8}, requires_grad()), w = randn({3, 3, 3, 3}, requires_grad());
  const Tensor bias = randn({8});
  const Part part = [&](Tensor v) {
    const Tensor y = conv2d(v, w, {}, 1, 1).tanh();                // convolution
    const Tensor z = linear(y, y.mean({0, 1}), bias).sigmoid();    // addmm
    const Tensor a = scaled_dot_product_attention(z, z, y).exp();  // attention
    const Tensor b = a.flatten(0, 1).bmm(y.flatten(0, 1)).tanh();  // bmm
    const Tensor c = baddbmm(b, b, y.flatten(0, 1)).sin();         // baddbmm
    return c.flatten(0, 1).mm(y.mean({0, 1})).tanh();              // mm
  };
  const auto plain = gradients(x, w, [&] { return part(x); });
  expect_same(plain, gradients(x, w, [&] { return checkpoint(part, x); }));
  std::vector<std::vector<std::string>> choices;
  for (const std::string& name : keepable_operators()) choices.push_back({name});
  choices.push_back(keepable_operators());
  choices.push_back({});
  for (const auto& choice : choices) {
    SCOPED_TRACE(choice.empty() ? "none" : choice.front());
    expect_same(plain, gradients(x, w, [&] { return checkpoint(part, x, keeping(choice)); }));
  }
}

TEST(KeptResults, MayBeOfPointwiseOperatorsNormalisationsAndPoolings) {
  manual_seed(3);
  const Tensor x = randn({2, 4, 8, 8}, requires_grad()), w = randn({4}, requires_grad());
  const Part part = [&](Tensor v) {
    const Tensor mean = zeros({4}), variance = ones({4});
    const Tensor y = batch_norm(v * w.view({4, 1, 1}) + 1.5, w, {}, mean, variance, true, 0.1, 1e-5, false);
    const Tensor z = group_norm(y.relu() / (v.square() + 1), 2, w, {});
    const Tensor pooled = max_pool2d(z, 2) - avg_pool2d(z.sigmoid(), 2);
    const Tensor last = layer_norm(pooled, {4});
    return gelu(std::get<0>(adaptive_max_pool2d(last.softmax(-1), 2)).log_softmax(1) + adaptive_avg_pool2d(last, 2))
        .pow(2);
  };
  const std::vector<std::string> used = {"mul",         "add",
                                         "batch_norm",  "relu",
                                         "div",         "square",
                                         "group_norm",  "max_pool",
                                         "sub",         "avg_pool",
                                         "sigmoid",     "layer_norm",
                                         "softmax",     "adaptive_max_pool",
                                         "log_softmax", "adaptive_avg_pool",
                                         "gelu"};
  std::vector<std::string> asked;
  checkpoint(part, x, {.keep = [&](std::string_view op) {
               asked.emplace_back(op);
               return false;
             }});
  for (const std::string& name : used) EXPECT_THAT(asked, ::testing::Contains(name));
  const auto plain = gradients(x, w, [&] { return part(x); });
  for (const std::string& name : used) {
    SCOPED_TRACE(name);
    expect_same(plain, gradients(x, w, [&] { return checkpoint(part, x, keeping({name})); }));
  }
  expect_same(plain, gradients(x, w, [&] { return checkpoint(part, x, keeping(used)); }));
}

TEST(KeptResults, AreAskedForOnceByTheirNames) {
  const Tensor x = randn({4, 4}, requires_grad());
  std::vector<std::string> asked;
  const Part part = [&](Tensor v) { return addmm(v, v.tanh(), v).mm(v).exp(); };
  const Tensor y = checkpoint(part, x, {.keep = [&](std::string_view op) {
                                asked.emplace_back(op);
                                return true;
                              }});
  EXPECT_THAT(asked, ElementsAre("tanh", "addmm", "mm", "exp"));
  y.sum().backward();
  EXPECT_THAT(asked, ElementsAre("tanh", "addmm", "mm", "exp")) << "the recomputation does what was said";
}

TEST(KeptResults, TakeTheirMemoryFromTheFirstRunOnAndNoneInTheSecond) {
  constexpr std::int64_t kSide = 64, kBytes = kSide * kSide * 4;
  const Tensor x = randn({kSide, kSide}, requires_grad()), w = randn({kSide, kSide});
  const Part part = [&](Tensor v) { return v.mm(w).exp().mm(w).tanh(); };
  const auto live = [] { return device_state(Device(kCPU)).allocator().stats().requested_bytes.current; };
  const auto kept = [&](const CheckpointOptions& options) {
    const std::int64_t before = live();
    const Tensor y = checkpoint(part, x, options);
    return live() - before;
  };
  EXPECT_EQ(kept(keeping({"mm"})) - kept({}), 2 * kBytes);
  const auto step = [&](const CheckpointOptions& options) {
    const Tensor y = checkpoint(part, x, options);
    return bytes_given_out([&] { y.sum().backward(); });
  };
  EXPECT_EQ(step({}) - step(keeping({"mm"})), 2 * kBytes) << "two products were not computed again";
  EXPECT_LT(step(keeping({"mm"})), step({}));
}

TEST(KeptResults, MayBeSomeOfAnOperators) {
  const Tensor x = randn({8, 8}, requires_grad()), w = randn({8, 8}, requires_grad());
  const Part part = [&](Tensor v) { return v.mm(w).exp().mm(w).tanh().mm(w); };
  int calls = 0;
  const CheckpointOptions second{.keep = [&](std::string_view op) { return op == "mm" && ++calls % 2 == 0; }};
  expect_same(gradients(x, w, [&] { return part(x); }), gradients(x, w, [&] { return checkpoint(part, x, second); }));
  EXPECT_EQ(calls, 3);
}

TEST(KeptResults, WithRandomNumbersBetweenThemGiveTheSameGradients) {
  const Tensor x = randn({2, 4, 16, 8}, requires_grad()), w = randn({8, 8}, requires_grad());
  const Part part = [&](Tensor v) {
    const Tensor y = scaled_dot_product_attention(v, v, v, std::nullopt, 0.5);
    return dropout(linear(dropout(y, 0.3, true), w), 0.3, true);
  };
  const auto with = [&](const std::function<Tensor()>& forward) {
    manual_seed(11);
    return gradients(x, w, forward);
  };
  const auto plain = with([&] { return part(x); });
  expect_same(plain, with([&] { return checkpoint(part, x, keeping(keepable_operators())); }));
  expect_same(plain, with([&] { return checkpoint(part, x, keeping({"scaled_dot_product_attention"})); }));
}

TEST(KeptResults, OfAnInnerPartAreItsOwn) {
  const Tensor x = randn({6, 6}, requires_grad()), w = randn({6, 6}, requires_grad());
  const Part inner = [&](Tensor v) { return v.mm(w).tanh().mm(w); };
  const Part plain = [&](Tensor v) { return inner(v.mm(w).exp()).mm(w); };
  const auto expected = gradients(x, w, [&] { return plain(x); });
  for (const CheckpointOptions& options : {CheckpointOptions{}, keeping({"mm"})}) {
    const Part outer = [&](Tensor v) { return checkpoint(inner, v.mm(w).exp(), options).mm(w); };
    expect_same(expected, gradients(x, w, [&] { return checkpoint(outer, x, keeping({"mm"})); }));
  }
}

TEST(KeptResults, AreComputedWhereBackwardRunsAgain) {
  const Tensor x = randn({6, 6}, requires_grad()), w = randn({6, 6}, requires_grad());
  const Part part = [&](Tensor v) { return v.mm(w).tanh().mm(w); };
  const Tensor y = checkpoint(part, x, keeping({"mm"})).sum();
  y.backward(Tensor(), /*retain_graph=*/true);
  const Tensor once = x.grad().clone();
  x.mutable_grad().reset();
  y.backward();
  EXPECT_TRUE(x.grad().equal(once));
}

// Its kernels write over the results of its products.
TEST(KeptResults, AreNotThoseInsideARecurrentLayer) {
  manual_seed(2);
  const Tensor x = randn({5, 2, 4}, requires_grad());
  const std::vector<Tensor> weights = {randn({12, 4}, requires_grad()), randn({12, 3}, requires_grad())};
  const std::vector<Tensor> state = {zeros({1, 2, 3}), zeros({1, 2, 3})};
  const Part part = [&](Tensor v) {
    return std::get<0>(lstm(v, state, weights, /*has_biases=*/false, /*num_layers=*/1, /*dropout=*/0.0, /*train=*/true,
                            /*bidirectional=*/false, /*batch_first=*/false));
  };
  expect_same(gradients(x, weights[0], [&] { return part(x); }),
              gradients(x, weights[0], [&] { return checkpoint(part, x, keeping(keepable_operators())); }));
}

TEST(KeptResults, MustNotBeWrittenTo) {
  const Tensor x = randn({4, 4}, requires_grad());
  const Part part = [&](Tensor v) { return v.mm(v).relu_().exp(); };
  const Tensor y = checkpoint(part, x, keeping({"mm"}));
  test::expect_error([&] { y.sum().backward(); }, "a result of 'mm' is kept");
  checkpoint(part, x, keeping({"bmm"})).sum().backward();  // which computes it again
}

TEST(KeptResults, AreOfAPartThatDoesTheSameBothTimes) {
  const Tensor x = randn({4, 4}, requires_grad());
  int runs = 0;
  const Part part = [&](Tensor v) { return ++runs == 1 ? v.mm(v) : addmm(v, v, v); };
  const Tensor y = checkpoint(part, x, keeping({"mm"}));
  test::expect_error([&] { y.sum().backward(); }, "ran 'addmm' where the first run did not");
}

TEST(KeptResults, AreOfKnownOperatorsAndNotReentrant) {
  EXPECT_THAT(
      [] {
        keep_results_of({"mm", "softmaks"});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("'softmaks'"), HasSubstr("did you mean 'softmax'?"))));
  CheckpointOptions options = keeping({"mm"});
  options.use_reentrant = true;
  const Tensor x = randn({4, 4}, requires_grad());
  test::expect_error([&] { checkpoint([](Tensor v) { return v.mm(v); }, x, options); }, "use_reentrant");
}

}  // namespace
}  // namespace tenon
