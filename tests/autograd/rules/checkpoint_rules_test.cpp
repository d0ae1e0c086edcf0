// What checkpoints and hooks of saved tensors refuse, word for word, and what parts see when they run again.
#include <tenon/autograd/autocast.h>
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/refusal.h"
#include "whole.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;

TEST(CheckpointRefusals, SayWhatAPartOrAPolicyLacks) {
  const Tensor x = leaf({2}, 0.5);
  const auto twice = [](const variable_list& inputs) { return variable_list{inputs[0].exp() * inputs[0].sin()}; };
  EXPECT_EQ(refusal_of([&] { checkpoint(twice, {x}, {.use_reentrant = true, .keep = keep_results_of({"exp"})}); }),
            "checkpoint: use_reentrant keeps the inputs alone: leave it out for a policy that keeps results");
  EXPECT_EQ(refusal_of([&] { checkpoint_sequential({}, 1, x); }),
            "checkpoint_sequential needs at least one function and one segment");
  EXPECT_EQ(refusal_of([&] { checkpoint_sequential({[](Tensor v) { return v; }}, 0, x); }),
            "checkpoint_sequential needs at least one function and one segment");
  EXPECT_EQ(refusal_of([] { keep_results_of({"convolutoin"}); }),
            "checkpoint keeps no results of an operator 'convolutoin': did you mean 'convolution'?");
  EXPECT_EQ(
      refusal_of([] {
        keep_results_of({"exp", "zzzzzzzzzzzzzz"});
      }),
      "checkpoint keeps no results of an operator 'zzzzzzzzzzzzzz': keepable_operators() has those of which it can");
  const auto constant_part = [](const variable_list& inputs) { return variable_list{inputs[0].detach() * 2}; };
  const Tensor y = checkpoint(constant_part, {x}, {.use_reentrant = true})[0];
  EXPECT_EQ(refusal_of([&] { y.sum().backward(); }),
            "none of output has requires_grad=True, this checkpoint() is not necessary");
}

TEST(CheckpointRefusals, APartDoesTheSameBothTimes) {
  for (const bool more : {true, false}) {
    int runs = 0;
    const auto part = [&](const variable_list& inputs) {
      Tensor y = inputs[0].exp();
      if ((++runs == 1) != more) y = y.exp();
      return variable_list{y};
    };
    const Tensor y = checkpoint(part, {leaf({2})})[0];
    EXPECT_EQ(refusal_of([&] { y.sum().backward(); }),
              std::string("checkpoint: the recomputation saved ") + (more ? "2" : "1") + " tensors, the first run " +
                  (more ? "1" : "2") + "; the function must do the same both times");
  }
  int runs = 0;
  const auto other = [&](const variable_list& inputs) {
    return variable_list{++runs == 1 ? inputs[0].exp() : inputs[0].sigmoid()};
  };
  const Tensor y = checkpoint(other, {leaf({2})}, {.keep = keep_results_of({"exp"})})[0];
  EXPECT_EQ(
      refusal_of([&] { y.sum().backward(); }),
      "checkpoint: the recomputation ran 'sigmoid' where the first run did not; the function must do the same both "
      "times");
  const auto kept = [](const variable_list& inputs) { return variable_list{inputs[0].exp()}; };
  const Tensor z = checkpoint(kept, {leaf({2})}, {.keep = keep_results_of({"exp"})})[0];
  z.detach().add_(1);
  EXPECT_EQ(refusal_of([&] { z.sum().backward(); }),
            "checkpoint: a result of 'exp' is kept for the recomputation and was written to by an inplace operation "
            "since: leave that out, or let the policy not keep it");
}

TEST(CheckpointRefusals, ASecondRunOfAReentrantGraphIsThatOfAnyGraph) {
  const Tensor x = leaf({2}, 0.5);
  const auto part = [](const variable_list& inputs) { return variable_list{inputs[0].exp()}; };
  const Tensor y = checkpoint(part, {x}, {.use_reentrant = true})[0].sum();
  y.backward({}, true);
  y.backward();
  EXPECT_TRUE(allclose(x.grad(), x.detach().exp() * 2));
  EXPECT_EQ(refusal_of([&] { y.backward(); }),
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
            "you need to access saved tensors after calling backward.");
}

TEST(CheckpointRefusals, AReentrantPartRunsInAWholeBackwardAlone) {
  const Tensor x = leaf({2}, 0.5), w = leaf({2}, 2);
  const auto part = [&](const variable_list& inputs) { return variable_list{inputs[0] * w}; };
  const auto loss = [&] { return checkpoint(part, {x * 1}, {.use_reentrant = true})[0].sum(); };
  const std::string text =
      "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
      "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
      "passing the `inputs` argument.";
  EXPECT_EQ(refusal_of([&] { grad({loss()}, {x}); }), text);
  EXPECT_EQ(refusal_of([&] { loss().backward({}, std::nullopt, false, TensorList({x})); }), text);
  EXPECT_FALSE(w.grad().defined()) << "nobody asked for it";
  EXPECT_FALSE(x.grad().defined());
  // One that is begun by a run for some gradients is within it.
  const Tensor inner = loss();
  const Tensor outer = x * 1;
  outer.grad_fn()->add_pre_hook([&](const variable_list& gradients) {
    inner.backward();
    return gradients;
  });
  EXPECT_EQ(refusal_of([&] { grad({outer.sum()}, {x}); }), text);
  loss().backward();
  EXPECT_TRUE(w.grad().equal(constant({2}, 0.5)));
  EXPECT_TRUE(x.grad().equal(constant({2}, 2)));
}

TEST(CheckpointRules, APartRunsAgainAsItRanFirst) {
  for (const bool reentrant : {true, false}) {
    const Tensor x = leaf({2}, 0.5).to(kFloat32).detach().requires_grad_();
    std::vector<std::string> seen;
    const auto part = [&](const variable_list& inputs) {
      seen.push_back(std::string(is_recomputing() ? "again" : "first") +
                     (GradMode::is_enabled() ? " with" : " without") +
                     (autocast::is_autocast_enabled(kCPU) ? " casts" : ""));
      EXPECT_TRUE(inputs[0].requires_grad());
      EXPECT_FALSE(inputs[1].defined());
      EXPECT_FALSE(inputs[2].requires_grad());
      EXPECT_EQ(inputs[0].is_same(x), !is_recomputing());
      return variable_list{inputs[0].exp() * inputs[2], Tensor()};
    };
    const Tensor factor = full({2}, 3.);
    variable_list y;
    {
      const AutocastGuard casts(kCPU);
      y = checkpoint(part, {x, Tensor(), factor}, {.use_reentrant = reentrant});
    }
    EXPECT_FALSE(is_recomputing());
    EXPECT_FALSE(y[1].defined());
    y[0].sum().backward();
    EXPECT_FALSE(is_recomputing());
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
    EXPECT_EQ(autocast::increment_nesting(), 1) << "no guard lives any more";
    autocast::decrement_nesting();
    EXPECT_THAT(seen, ElementsAre(reentrant ? "first without casts" : "first with casts", "again with casts"));
    EXPECT_TRUE(allclose(x.grad(), x.detach().exp() * 3));
  }
}

TEST(CheckpointRules, WithoutAGradientAPartIsAPlainCall) {
  int runs = 0;
  const auto part = [&](const variable_list& inputs) {
    ++runs;
    return variable_list{inputs[0].exp()};
  };
  for (const bool reentrant : {true, false}) {
    runs = 0;
    EXPECT_FALSE(checkpoint(part, {constant({2}, 1)}, {.use_reentrant = reentrant})[0].requires_grad());
    {
      const NoGradGuard off;
      EXPECT_FALSE(checkpoint(part, {leaf({2})}, {.use_reentrant = reentrant})[0].requires_grad());
    }
    EXPECT_EQ(runs, 2);
  }
}

TEST(CheckpointRules, OfSeveralOutputsThoseWithAGradientCount) {
  for (const bool reentrant : {true, false}) {
    const Tensor x = leaf({2}, 0.5), w = leaf({2}, 2);
    const auto part = [](const variable_list& inputs) {
      return variable_list{inputs[0].exp(), inputs[0] * inputs[1], inputs[1].sin()};
    };
    const variable_list y = checkpoint(part, {x, w}, {.use_reentrant = reentrant});
    EXPECT_EQ(y.size(), 3U);
    (y[1] * 3).sum().backward({}, true);
    EXPECT_TRUE(x.grad().equal(constant({2}, 6)));
    EXPECT_TRUE(w.grad().equal(constant({2}, 1.5)));
    (y[0].sum() + y[2].sum()).backward();
    EXPECT_TRUE(allclose(x.grad(), x.detach().exp() + 6));
    EXPECT_TRUE(allclose(w.grad(), w.detach().cos() + 1.5));
  }
}

// --- hooks of saved tensors -----------------------------------------------------------------------------------------

TEST(SavedHookRules, WhatUnpackGivesIsUsedAndNothingIsRefused) {
  const Tensor x = leaf({2}, 3);
  Tensor y, z;
  {
    const SavedTensorHooksGuard guard({.pack = [](const Tensor& tensor) -> std::any { return tensor.detach() * 2; },
                                       .unpack = [](const std::any& packed) { return std::any_cast<Tensor>(packed); }});
    y = x * x;
  }
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(constant({2}, 12)));
  {
    const SavedTensorHooksGuard guard(
        {.pack = [](const Tensor&) -> std::any { return 0; }, .unpack = [](const std::any&) { return Tensor(); }});
    z = x * x;
  }
  EXPECT_EQ(refusal_of([&] { z.sum().backward(); }), "a saved-tensor unpack hook returned an undefined tensor");
}

TEST(SavedHookRules, RunWithoutAGradientAndSeeWhatIsSavedWithoutHistory) {
  const Tensor x = leaf({2}, 0.5);
  int packed = 0, unpacked = 0;
  Tensor y;
  {
    const SavedTensorHooksGuard guard({.pack = [&](const Tensor& tensor) -> std::any {
                                         ++packed;
                                         EXPECT_FALSE(GradMode::is_enabled());
                                         EXPECT_FALSE(tensor.requires_grad());
                                         return tensor.clone();
                                       },
                                       .unpack =
                                           [&](const std::any& value) {
                                             ++unpacked;
                                             EXPECT_FALSE(GradMode::is_enabled());
                                             return std::any_cast<Tensor>(value);
                                           }});
    y = (x * 3).exp() * x;
  }
  EXPECT_EQ(packed, 3) << "both factors, and the result of exp()";
  const Tensor first = grad({y.sum()}, {x}, {}, true, true)[0];
  EXPECT_EQ(unpacked, 3);
  const Tensor second = grad({first.sum()}, {x})[0];
  const Tensor e = (x.detach() * 3).exp();
  EXPECT_TRUE(allclose(first.detach(), e * 3 * x.detach() + e));
  EXPECT_TRUE(allclose(second, e * 9 * x.detach() + e * 6));
}

}  // namespace
}  // namespace tenon
