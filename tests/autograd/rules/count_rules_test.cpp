// How much is done, and for whom: what a backward pass allocates, which locks and nodes there are, what listeners are
// told, and what becomes of tensors that end while it runs.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/node_map.h>
#include <tenon/autograd/post_accumulate.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/scope/scope.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.h"
#include "whole.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Blocks that the cpu's allocator hands out while `run` runs.
std::int64_t blocks_of(const std::function<void()>& run) {
  const auto handed_out = [] { return device_state(Device(kCPU)).allocator().stats().allocations.allocated; };
  const std::int64_t before = handed_out();
  run();
  return handed_out() - before;
}

// --- how many blocks a backward pass takes --------------------------------------------------------------------------

TEST(BackwardBlocks, ALeafTakesOverAFreshGradientOfItsLayoutAndCopiesAnyOther) {
  const Tensor given = constant({2, 3}, 1);
  const auto of = [&](const Tensor& x, const std::function<Tensor(const Tensor&)>& function) {
    const Tensor y = function(x);
    const Tensor gradient = given.view(y.sizes());
    return blocks_of([&] { y.backward(gradient); });
  };
  const auto twice = [](const Tensor& x) { return x * 2; };
  EXPECT_EQ(of(leaf({2, 3}), twice), 1) << "the product";
  EXPECT_EQ(of(leaf({6}), [](const Tensor& x) { return x.view({2, 3}) * 2; }), 1) << "a view of the whole of it";
  EXPECT_EQ(of(leaf({3, 2}), [](const Tensor& x) { return x.t() * 2; }), 2) << "the leaf lies otherwise";
  const Tensor turned = constant({3, 2}, 1).t().set_requires_grad(true);
  EXPECT_EQ(of(turned, twice), 2);
  EXPECT_EQ(turned.grad().strides(), turned.strides());
  EXPECT_EQ(of(turned, twice), 1) << "added to what is there";
  EXPECT_EQ(of(leaf({2, 3}), [](const Tensor& x) { return x + 1; }), 1) << "given by the caller: a copy alone";
  EXPECT_EQ(of(leaf({2, 1}), [](const Tensor& x) { return x.expand({2, 3}) * 2; }), 2) << "the product and its sum";
  const Tensor hooked = leaf({2, 3});
  const PostAccumulateHandle handle(hooked, [](const Tensor&) {});
  EXPECT_EQ(of(hooked, twice), 1) << "a hook that is shown it afterwards takes nothing";
  const Tensor kept_by_hook = leaf({2, 3});
  Tensor kept;
  kept_by_hook.register_hook([&](const Tensor& gradient) { kept = gradient; });
  EXPECT_EQ(of(kept_by_hook, twice), 2);
}

TEST(BackwardBlocks, GradientsOfOneTensorAreAddedUpInTheMemoryOfTheFirst) {
  const Tensor given = constant({5}, 1);
  const auto of = [&](int branches, bool create_graph) {
    const Tensor x = leaf({5});
    const Tensor y = x * 1;
    variable_list roots, gradients;
    for (int i = 0; i < branches; ++i) {
      roots.push_back(y * (i + 2));
      gradients.push_back(given);
    }
    return blocks_of([&] { grad(roots, {x}, gradients, std::nullopt, create_graph); });
  };
  const std::int64_t of_one = of(1, false);
  EXPECT_EQ(of_one, 2) << "of each product";
  for (int branches = 2; branches < 6; ++branches) {
    EXPECT_EQ(of(branches, false), of_one + branches - 1) << "a product for each branch, and no sum";
    EXPECT_EQ(of(branches, true), of(1, true) + 2 * (branches - 1)) << "a product and a sum for each";
  }
  const Tensor x = leaf({5});
  const Tensor y = x * 1;
  y.register_hook([](const Tensor& gradient) { EXPECT_EQ(gradient._version(), 0) << "it was never seen before"; });
  (y * 2 + y * 3 + y * 5).sum().backward();
  EXPECT_TRUE(x.grad().equal(constant({5}, 10)));
}

TEST(BackwardBlocks, AreGradientsAndThoseOfASecondRunActivations) {
  const auto purpose_of = [](const Tensor& tensor) { return tensor.impl().storage().block().request.purpose; };
  const Tensor x = leaf({});
  x.backward();
  EXPECT_EQ(purpose_of(x.grad()), Purpose::kGradient) << "the one that is made where none is given";
  for (const bool create_graph : {false, true}) {
    const Tensor y = leaf({3});
    (y * y).sum().backward({}, true, create_graph);
    EXPECT_EQ(purpose_of(y.grad()), Purpose::kGradient);
    y.mutable_grad().reset();
  }
  for (const bool reentrant : {false, true}) {
    std::vector<Purpose> purposes;
    const Tensor y = leaf({3});
    const auto part = [&](const variable_list& inputs) {
      const Tensor inner = inputs[0].exp();
      purposes.push_back(purpose_of(inner));
      return variable_list{inner.sin()};
    };
    checkpoint(part, {y}, {.use_reentrant = reentrant})[0].sum().backward();
    EXPECT_THAT(purposes, ElementsAre(Purpose::kActivation, Purpose::kActivation));
    EXPECT_EQ(purpose_of(y.grad()), Purpose::kGradient);
  }
}

// --- books of one run -----------------------------------------------------------------------------------------------

struct Plain final : Node {
  std::string name() const override { return "Plain"; }
  GradList apply(GradList&& gradients) override { return std::move(gradients); }
};

TEST(NodeMaps, HoldAnEntryForEachNodeAndMakeItOnce) {
  NodeMap<int> map;
  std::vector<IntrusivePtr<Node>> nodes;
  const IntrusivePtr<Node> other(new Plain);
  EXPECT_EQ(map.find(other.get()), nullptr);
  for (int i = 1; i <= 3000; ++i) {
    nodes.emplace_back(new Plain);
    EXPECT_EQ(map[nodes.back().get()], 0) << "a fresh one";
    map[nodes.back().get()] = i;
    EXPECT_EQ(map.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(*map.find(nodes[static_cast<std::size_t>(i / 2)].get()), i / 2 + 1);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(map[nodes[i].get()], static_cast<int>(i + 1));
  EXPECT_EQ(map.size(), nodes.size());
  EXPECT_EQ(map.find(other.get()), nullptr);
}

TEST(Locks, OfMetasThatLieSideBySideAreDifferentOnesOfSixtyFour) {
  // Addresses alone: nothing is read there.
  const auto lock = [](std::uintptr_t address) { return &mutex_of(reinterpret_cast<const AutogradMeta*>(address)); };
  std::set<const void*> locks;
  for (std::uintptr_t i = 0; i < 64; ++i) {
    locks.insert(lock(0x10000 + 64 * i));
    EXPECT_EQ(lock(0x10000 + 64 * i), lock(0x10000 + 64 * i + 63)) << "of one line of the cache";
  }
  EXPECT_EQ(locks.size(), 64U);
  for (std::uintptr_t i = 0; i < 1000; ++i) locks.insert(lock(0x10000 + 64 * i));
  EXPECT_EQ(locks.size(), 64U);
}

// --- tensors that end meanwhile -------------------------------------------------------------------------------------

TEST(RetainedGradients, OfATensorThatEndsWhileAnotherOneIsKeptAreKeptByNobody) {
  const Tensor x = leaf({2, 3});
  variable_list parts = (x * 1).unbind();
  for (const Tensor& part : parts) part.retain_grad();
  // The second part lives through the history of what the first one has for a gradient, which the sum replaces.
  parts[0].mutable_grad() = parts[1] * leaf({3}, 5);
  const Tensor loss = parts[0].sum() * 2 + parts[1].sum() * 3;
  parts[1] = Tensor();
  loss.backward();
  EXPECT_TRUE(parts[0].grad().equal(constant({3}, 7)));
  EXPECT_TRUE(x.grad().equal(tensor({{2., 2., 2.}, {3., 3., 3.}}, kFloat64)));
}

TEST(RetainedGradients, OfEachOutputAreItsOwnAndAddUpFromRunToRun) {
  const Tensor x = leaf({3});
  const variable_list parts = (x * 1).unbind();
  for (const Tensor& part : parts) part.retain_grad();
  for (int run = 1; run <= 3; ++run) {
    (parts[0] * 2 + parts[2] * 5).backward({}, /*retain_graph=*/true);
    EXPECT_EQ(parts[0].grad().item<double>(), 2 * run);
    EXPECT_FALSE(parts[1].grad().defined());
    EXPECT_EQ(parts[2].grad().item<double>(), 5 * run);
  }
  EXPECT_TRUE(x.grad().equal(tensor({6., 0., 15.}, kFloat64)));
}

// --- who is told ----------------------------------------------------------------------------------------------------

struct NodesRun final : scopes::Listener {
  NodesRun() { scopes::add_listener(*this, scopes::kWantsScopes); }
  ~NodesRun() override { scopes::remove_listener(*this); }
  void entered(const scopes::Entered& scope) noexcept override {
    if (scope.kind != scopes::Kind::kBackward) return;
    told.emplace_back(scope.name);
    nodes.emplace_back(scope.node, scope.sequence);
  }
  void node_made(const void* node, std::uint64_t sequence) noexcept override { made.emplace_back(node, sequence); }
  std::vector<std::string> told;
  std::vector<std::pair<const void*, std::uint64_t>> nodes, made;
};

TEST(Listeners, AreToldOfEachNodeThatRunsUnderBothItsNames) {
  const Tensor x = leaf({2});
  NodesRun run;
  const Tensor y = x.exp();
  const Tensor z = y.sin();
  const Node* const of_y = y.grad_fn().get();
  const Node* const of_z = z.grad_fn().get();
  const auto pair_of = [](const Node* node) {
    return std::pair<const void*, std::uint64_t>(node, node->sequence_nr());
  };
  EXPECT_THAT(run.made, ElementsAre(pair_of(of_y), pair_of(of_z)));
  EXPECT_EQ(of_z->sequence_nr(), of_y->sequence_nr() + 1);
  z.backward(constant({2}, 1));
  EXPECT_THAT(run.told, ElementsAre("autograd::engine::evaluate_function: SinBackward0", "SinBackward0",
                                    "autograd::engine::evaluate_function: ExpBackward0", "ExpBackward0",
                                    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                                    "torch::autograd::AccumulateGrad"));
  ASSERT_EQ(run.nodes.size(), 6U);
  EXPECT_EQ(run.nodes[0], pair_of(of_z));
  EXPECT_EQ(run.nodes[1], pair_of(of_z));
  EXPECT_EQ(run.nodes[2], pair_of(of_y));
}

TEST(Anomalies, OfAGradientsOwnHistoryNameTheCalculationThatInducedThem) {
  struct Warnings : WarningHandler {
    Warnings() { Warning::set_warning_handler(this); }
    ~Warnings() override { Warning::set_warning_handler(nullptr); }
    void process(const SourceLocation&, const std::string& text, bool) override {
      texts.push_back(text.substr(0, text.find(":\n")));
    }
    std::vector<std::string> texts;
  } warnings;
  const DetectAnomalyGuard anomaly;
  const Tensor x = leaf({1}, 0);
  const Tensor slope = grad({x.pow(1.5)}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_THAT(refusal_of([&] {
                grad({slope}, {x}, {constant({1}, 0)});  // 0 * (1 / 0)
              }),
              HasSubstr("Function 'SqrtBackward0' returned nan values in its 0th output."));
  EXPECT_THAT(
      warnings.texts,
      ElementsAre("Error detected in SqrtBackward0. Traceback of forward call that caused the error",
                  "Previous calculation was induced by PowScalarBackward0. Traceback of forward call that induced "
                  "the previous calculation"));
}

}  // namespace
}  // namespace tenon
