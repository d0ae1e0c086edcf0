// Who holds what, in programs that are drawn: references that autograd does not explain are the program's, each node
// lives through the youngest history that leads to it, and what a history keeps is counted once.
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/leaks/holders.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/error.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/live_tensors.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/meant_leaks.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct Listing {
  Listing() { list_tensors(); }
  ~Listing() { stop_listing_tensors(); }
};

Tensor parameter(std::int64_t size = 4) { return ones({size}, TensorOptions(kFloat64).requires_grad(true)); }

/// Of each tensor that lives its number on the list: another one may get its address.
std::map<const TensorImpl*, std::uint64_t> numbers() {
  std::map<const TensorImpl*, std::uint64_t> numbers;
  for (const ListedTensor& listed : listed_tensors()) numbers[listed.tensor] = listed.number;
  return numbers;
}

/// Who captured a tensor: the node of the result that the hook is on, or the leaf.
struct Captured {
  const Node* hook_of = nullptr;
  const TensorImpl* hook_on = nullptr;
};

/// A program of a seed: what it holds (a tensor as often as it holds it), and what its hooks captured.
struct Drawn {
  explicit Drawn(unsigned seed) : random(seed) {
    for (int i = 0; i < 3; ++i) held.push_back(parameter());
    held.push_back(ones({4}, kFloat64));
    for (int i = 0; i < 45; ++i) step();
  }

  std::vector<Tensor> held;
  std::map<std::uint64_t, Captured> captured;  ///< by the tensor's number on the list

 private:
  test::MeantLeaks meant_;  // hooks capture tensors whose histories lead to them
  std::size_t below(std::size_t count) { return random() % count; }
  Tensor any() { return held[below(held.size())]; }

  void step() {
    switch (below(14)) {
      case 0:
        return add(any().exp());
      case 1:
        return add(any() * any());
      case 2:
        return add(any() + any());
      case 3:
        return add(any().sin());
      case 4:
        return add(any().view({2, 2}).view({4}));
      case 5:
        return add(any().detach());
      case 6: {
        const Tensor base = any() * 2;
        base.narrow(0, 1, 2).mul_(any().narrow(0, 0, 2));
        return add(base);
      }
      case 7:
        return add(any().sigmoid() / 3);
      case 8:
        return held.push_back(any());  // once more
      case 9:
      case 10:
        return drop();
      case 11:
        return run_backward_of(any());
      case 12:
        return hang_hook();
      default:
        return parameter_of_its_own();
    }
  }
  void add(Tensor made) { held.push_back(std::move(made)); }
  void drop() {
    if (held.size() > 5) held.erase(held.begin() + static_cast<std::ptrdiff_t>(below(held.size())));
  }
  void run_backward_of(const Tensor& tensor) {
    if (!tensor.requires_grad()) return;
    if (below(2) == 0) tensor.retain_grad();
    try {
      tensor.sum().backward({}, /*retain_graph=*/below(3) != 0);
    } catch (const Error&) {  // a part of it has run before
    }
  }
  /// Of a tensor that no other hook captured.
  void hang_hook() {
    const Tensor on = any(), what = any() + 1;
    if (!on.requires_grad()) return;
    on.register_hook([what](const Tensor& gradient) { return gradient * what.detach(); });
    const Node* const node = on.grad_fn().get();
    for (const auto& [tensor, number] : numbers())
      if (tensor == &what.impl()) captured[number] = {node, node != nullptr ? nullptr : &on.impl()};
  }
  void parameter_of_its_own() { held.push_back(parameter()); }

  std::mt19937 random;
};

std::vector<const Node*> nexts(const Node* node) {
  std::vector<const Node*> next;
  for (std::size_t i = 0; i < node->num_outputs(); ++i)
    if (const Node* to = node->next_edge(i).function.get()) next.push_back(to);
  return next;
}

std::set<const Node*> reached_from(const Node* root) {
  std::set<const Node*> seen = {root};
  std::vector<const Node*> left = {root};
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    for (const Node* next : nexts(node))
      if (seen.insert(next).second) left.push_back(next);
  }
  return seen;
}

/// How many nodes each is away from `root`, over nodes of `own` alone.
std::map<const Node*, std::size_t> distances(const Node* root, const std::set<const Node*>& own) {
  std::map<const Node*, std::size_t> distance;
  std::vector<const Node*> front = {root};
  for (std::size_t away = 0; !front.empty(); ++away) {
    std::vector<const Node*> following;
    for (const Node* node : front) {
      if (!own.contains(node) || !distance.emplace(node, away).second) continue;
      for (const Node* next : nexts(node)) following.push_back(next);
    }
    front = std::move(following);
  }
  return distance;
}

/// For each node the root whose history it is, as the header says.
std::map<const Node*, const HeldTensor*> owners_of(const Holders& holders) {
  std::map<const Node*, const HeldTensor*> owner;
  for (const HeldTensor& root : holders.all()) {
    const bool is_held = root.by_program > 0 || root.hook_of != nullptr || root.hook_on != nullptr;
    if (root.grad_fn == nullptr || !is_held) continue;
    for (const Node* node : reached_from(root.grad_fn)) {
      const HeldTensor*& now = owner[node];
      if (now == nullptr || root.grad_fn->sequence_nr() > now->grad_fn->sequence_nr()) now = &root;
    }
  }
  return owner;
}

TEST(HoldersOfDrawnPrograms, WhatAutogradDoesNotExplainIsTheProgramsAndTheRestHasItsReason) {
  std::size_t explained = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const Listing listing;
    const Drawn program(seed);
    std::map<const TensorImpl*, std::uint32_t> handles;
    for (const Tensor& tensor : program.held) ++handles[&tensor.impl()];
    const Holders holders;
    const auto number = numbers();
    std::map<const TensorImpl*, std::set<const Node*>> savers;
    std::set<const Node*> nodes;
    for (const HeldTensor& held : holders.all())
      if (held.grad_fn != nullptr) nodes.merge(reached_from(held.grad_fn));
    for (const Node* node : nodes)
      node->each_saved([&](const SavedTensor& saved) { savers[&saved.kept().impl()].insert(node); });
    // A leaf that nobody else has lives for its accumulator.
    for (const Node* node : nodes) {
      const auto* accumulator = dynamic_cast<const AccumulateGrad*>(node);
      if (accumulator == nullptr) continue;
      const TensorImpl* leaf = &accumulator->variable().impl();
      if (handles[leaf] == 0 && !program.captured.contains(number.at(leaf)) && !savers.contains(leaf))
        savers[leaf].insert(node);
    }
    std::map<const TensorImpl*, const TensorImpl*> gradients;
    for (const Tensor& tensor : program.held)
      if (const AutogradMeta* meta = meta_of(tensor); meta != nullptr && meta->grad.defined())
        gradients[&meta->grad.impl()] = &tensor.impl();
    for (const HeldTensor& held : holders.all()) {
      EXPECT_EQ(held.by_program, handles[held.tensor]);
      EXPECT_EQ(held.saver != nullptr, savers.contains(held.tensor));
      if (held.saver != nullptr) {
        EXPECT_TRUE(savers[held.tensor].contains(held.saver));
      }
      if (handles[held.tensor] == 0 && gradients.contains(held.tensor)) {
        EXPECT_EQ(held.gradient_of, gradients[held.tensor]);
      }
      const auto captured = program.captured.find(number.at(held.tensor));
      const Captured by = captured == program.captured.end() ? Captured{} : captured->second;
      EXPECT_EQ(held.hook_of, by.hook_of);
      EXPECT_EQ(held.hook_on, by.hook_on);
      EXPECT_EQ(holders.of(held.tensor), &held);
      explained += held.by_program == 0 ? 1 : 0;
      std::vector<const HeldTensor*> there;
      for (const HeldTensor& other : holders.all())
        if (other.tensor->storage().block().data == held.tensor->storage().block().data) there.push_back(&other);
      EXPECT_THAT(holders.on(reinterpret_cast<std::uint64_t>(held.tensor->storage().block().data)),
                  ::testing::UnorderedElementsAreArray(there));
    }
  }
  EXPECT_GT(explained, 100U) << "there was something to explain";
}

TEST(HoldersOfDrawnPrograms, ANodeIsOfTheYoungestHistoryThatLeadsToItOnTheShortestWay) {
  std::size_t shared = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const Listing listing;
    const Drawn program(seed);
    const Holders holders;
    const auto owner = owners_of(holders);
    std::set<const HeldTensor*> roots;
    std::uint64_t before = ~std::uint64_t{0};
    for (const HeldTensor* root : holders.roots()) {
      EXPECT_LE(root->grad_fn->sequence_nr(), before) << "the youngest first";
      before = root->grad_fn->sequence_nr();
      roots.insert(root);
      std::set<const Node*> own;
      for (const auto& [node, its] : owner)
        if (its == root) own.insert(node);
      EXPECT_EQ(holders.node_count(root), own.size());
      shared += own.empty() ? 1 : 0;
      const auto away = distances(root->grad_fn, own);
      std::size_t farthest = 0;
      std::set<const StorageImpl*> storages;
      std::size_t bytes = 0;
      for (const Node* node : own) {
        EXPECT_EQ(holders.root_of(node), root);
        const std::vector<const Node*> chain = holders.chain_to(node);
        ASSERT_EQ(chain.size(), away.at(node) + 1);
        farthest = std::max(farthest, away.at(node));
        EXPECT_EQ(chain.front(), root->grad_fn);
        EXPECT_EQ(chain.back(), node);
        for (std::size_t i = 0; i + 1 < chain.size(); ++i)
          EXPECT_THAT(nexts(chain[i]), ::testing::Contains(chain[i + 1]));
        node->each_saved([&](const SavedTensor& saved) {
          const HeldTensor* held = holders.of(&saved.kept().impl());
          if (held != nullptr && held->by_program == 0 && storages.insert(&held->tensor->storage()).second)
            bytes += held->tensor->storage().nbytes();
        });
      }
      EXPECT_EQ(holders.saved_bytes(root), bytes);
      if (own.empty()) continue;
      const std::vector<const Node*> longest = holders.longest_chain(root);
      EXPECT_EQ(longest.size(), farthest + 1);
      EXPECT_EQ(longest, holders.chain_to(longest.back()));
    }
    std::set<const HeldTensor*> expected;
    for (const HeldTensor& held : holders.all())
      if (held.grad_fn != nullptr && (held.by_program > 0 || held.hook_of != nullptr || held.hook_on != nullptr))
        expected.insert(&held);
    EXPECT_EQ(roots, expected);
  }
  EXPECT_GT(shared, 0U);
}

TEST(HoldersRules, OfWhatIsNotListedNothingIsKnown) {
  const Tensor early = parameter();
  const Tensor result = early.exp();
  const Listing listing;
  const Tensor late = parameter();
  const Holders holders;
  EXPECT_EQ(holders.of(&early.impl()), nullptr);
  EXPECT_EQ(holders.root_of(result.grad_fn().get()), nullptr);
  EXPECT_THAT(holders.chain_to(result.grad_fn().get()), ElementsAre(result.grad_fn().get()));
  EXPECT_TRUE(holders.on(reinterpret_cast<std::uint64_t>(early.impl().storage().block().data)).empty());
  ASSERT_NE(holders.of(&late.impl()), nullptr);
  EXPECT_EQ(holders.of(&late.impl())->bytes(), 32U);
  EXPECT_TRUE(holders.roots().empty());
}

TEST(HoldersRules, ATensorThatTwoHooksCapturedIsExplainedTwiceAndARemovedHookCapturesNothing) {
  const Listing listing;
  const Tensor leaf = parameter(), result = leaf * 2;
  Tensor what = ones({4}), other = ones({4});
  result.register_hook([what](const Tensor& gradient) { return gradient * what; });
  result.register_hook([what](const Tensor& gradient) { return gradient * what; });
  const unsigned removed = leaf.register_hook([other](const Tensor& gradient) { return gradient * other; });
  const TensorImpl* const of_what = &what.impl();
  what = Tensor();
  {
    const Holders holders;
    EXPECT_EQ(holders.of(of_what)->by_program, 0U);
    EXPECT_EQ(holders.of(of_what)->hook_of, result.grad_fn().get());
    EXPECT_EQ(holders.of(&other.impl())->by_program, 1U);
    EXPECT_EQ(holders.of(&other.impl())->hook_on, &leaf.impl());
  }
  leaf.remove_hook(removed);
  const Holders holders;
  EXPECT_EQ(holders.of(&other.impl())->by_program, 1U);
  EXPECT_EQ(holders.of(&other.impl())->hook_on, nullptr);
}

/// What a node shows of what it saved, by the sum of its elements.
std::vector<double> shown(const Tensor& result) {
  std::vector<double> sums;
  result.grad_fn()->each_saved([&](const SavedTensor& saved) { sums.push_back(saved.kept().sum().item<double>()); });
  return sums;
}

struct KeepsThree : Function<KeepsThree> {
  static Tensor forward(AutogradContext* context, Tensor x) {
    context->save_for_backward({x, Tensor(), x * 10});
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

TEST(SavedTensors, AreShownByTheirNodeUntilItGivesThemUp) {
  const auto expect = [](const Tensor& result, const auto& what) {
    EXPECT_THAT(shown(result), what);
    const Tensor loss = result.sum();
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_THAT(shown(result), what) << "the graph is kept";
    loss.backward();
    EXPECT_THAT(shown(result), UnorderedElementsAre()) << "it has run";
  };
  const Tensor x = full({4}, 3., TensorOptions(kFloat64).requires_grad(true)), w = full({4}, 5., kFloat64);
  expect(x * w.detach().set_requires_grad(true), UnorderedElementsAre(12, 20));
  expect(x.square(), UnorderedElementsAre(12));
  expect(KeepsThree::apply(x), UnorderedElementsAre(12, 120));
  const Tensor base = x * 1;
  base.narrow(0, 0, 2).mul_(w.narrow(0, 0, 2));
  expect(base, UnorderedElementsAre(10));
  const auto part = [](const variable_list& inputs) { return variable_list{inputs[0].exp() * inputs[1]}; };
  expect(checkpoint(part, {x, w}, {.use_reentrant = true})[0], UnorderedElementsAre(12, 20));
}

}  // namespace
}  // namespace tenon
