// Rules of autograd that are easily broken: whose memory a gradient is, what hooks and checkpoints see, what belongs to
// a view, what a custom function gives back.
#include "support/expect_error.h"

#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/autocast.h>
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace tenon {
namespace {

using namespace autograd;

TensorOptions in_double() { return TensorOptions(kFloat64); }

// --- a gradient's memory is its leaf's alone ------------------------------------------------------------------------

TEST(GradientsMemory, OfTwoLeavesIsNotShared) {
  const Tensor a = ones({3}, requires_grad()), b = ones({3}, requires_grad());
  const Tensor given = full({3}, 2.);
  (a + b).backward(given);
  a.grad().mul_(5);
  EXPECT_TRUE(b.grad().equal(full({3}, 2.)));
  EXPECT_TRUE(given.equal(full({3}, 2.)));
}

TEST(GradientsMemory, IsNotTheCallersThroughAView) {
  const Tensor x = ones({2, 3}, requires_grad());
  const Tensor given = ones({6});
  x.view({6}).backward(given);
  x.grad().mul_(5);
  EXPECT_TRUE(given.equal(ones({6})));
}

TEST(GradientsMemory, IsNotWhatAHookKept) {
  const Tensor x = ones({3}, requires_grad());
  const Tensor y = x * 1.;
  Tensor kept;
  y.register_hook([&](const Tensor& gradient) { kept = gradient; });
  (y * full({3}, 2.)).sum().backward();
  ASSERT_TRUE(kept.defined());
  x.grad().mul_(5);
  EXPECT_TRUE(kept.equal(full({3}, 2.)));
}

TEST(GradientsMemory, OfAViewOfWhatIsHeldElsewhereIsACopy) {
  const Tensor x = ones({4}, requires_grad());
  Tensor kept;
  const Tensor y = x.view({2, 2});
  y.register_hook([&](const Tensor& gradient) { kept = gradient; });
  (y * full({2, 2}, 3.)).sum().backward();
  x.grad().zero_();
  EXPECT_TRUE(kept.equal(full({2, 2}, 3.)));
}

TEST(GradientsMemory, IsNotSharedWithAnAliasThatAHookKept) {
  for (const bool is_of_the_leaf : {false, true}) {
    for (const bool has_history : {false, true}) {
      const Tensor x = ones({3}, requires_grad());
      const Tensor y = x.view({3});
      Tensor kept;
      (is_of_the_leaf ? x : y).register_hook([&](const Tensor&) -> Tensor {
        kept = full({3}, 2.);
        const Tensor alias = kept.detach();  // of the same memory, and no view of it
        return has_history ? alias.requires_grad_() : alias;
      });
      y.sum().backward();
      x.grad().mul_(5);
      EXPECT_TRUE(kept.equal(full({3}, 2.))) << is_of_the_leaf << has_history;
    }
  }
}

TEST(GradientsMemory, IsNotAPartOfALargerOne) {
  const Tensor x = ones({3}, requires_grad());
  const Tensor y = x.view({3});
  y.register_hook([](const Tensor&) { return full({1000, 3}, 2.)[0]; });
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(full({3}, 2.)));
  EXPECT_EQ(x.grad().storage().nbytes(), 3 * sizeof(float)) << "the rest is not kept alive";
}

TEST(GradientsMemory, OfAnExpandedGradientIsWhole) {
  const Tensor x = ones({4}, requires_grad());
  x.sum().backward();  // its gradient comes as one number, expanded
  x.grad()[0].fill_(7);
  EXPECT_EQ(x.grad()[1].item<float>(), 1);
}

TEST(GradientsMemory, AccumulatedOnceMoreIsAdded) {
  const Tensor x = ones({3}, requires_grad());
  for (int i = 0; i < 3; ++i) (x * 2.).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({3}, 6.)));
}

// --- checkpoints ----------------------------------------------------------------------------------------------------

TEST(CheckpointRules, ByHooksServesASecondBackward) {
  int runs = 0;
  const Tensor x = tensor({0.3, 0.7}, in_double()).requires_grad_();
  const Tensor y = checkpoint(
      [&](Tensor v) {
        ++runs;
        return v.exp() * v.sin();
      },
      x);
  y.sum().backward({}, /*retain_graph=*/true);
  const Tensor first = x.grad().clone();
  x.mutable_grad().reset();
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(first));
  EXPECT_GE(runs, 2);
  const Tensor plain = x.detach().requires_grad_();
  (plain.exp() * plain.sin()).sum().backward();
  EXPECT_TRUE(plain.grad().equal(first));
}

TEST(CheckpointRules, RandomNumbersGoOnWhereTheyAreNotToBeDrawnAgain) {
  for (const bool reentrant : {false, true}) {
    manual_seed(12);
    const Tensor first = rand({3}), second = rand({3}), third = rand({3});
    manual_seed(12);
    const Tensor x = ones({3}, requires_grad());
    const auto scaled = [](const variable_list& given) { return variable_list{given[0].sin() * rand({3})}; };
    checkpoint(scaled, {x}, {.use_reentrant = reentrant, .preserve_rng_state = false})[0].sum().backward();
    EXPECT_TRUE(rand({3}).equal(third)) << "drawn once forward and once backward, reentrant " << reentrant;
    EXPECT_TRUE(allclose(x.grad(), x.detach().cos() * second));
    EXPECT_FALSE(first.equal(second));
  }
}

TEST(CheckpointRules, SequentialRunsEachFunctionOnceForwardAndAllButTheLastSegmentAgain) {
  for (const std::size_t count : {1u, 2u, 5u, 6u, 7u}) {
    for (const std::size_t segments : {1u, 2u, 3u, 5u}) {
      std::vector<int> runs(count, 0);
      std::vector<std::function<Tensor(Tensor)>> functions;
      for (std::size_t i = 0; i < count; ++i) {
        functions.emplace_back([&runs, i](Tensor v) {
          ++runs[i];
          return v * (1. + 0.1 * static_cast<double>(i)) + v.sin();
        });
      }
      const Tensor x = tensor({0.5}, in_double()).requires_grad_();
      const Tensor y = checkpoint_sequential(functions, segments, x);
      for (const int run : runs) EXPECT_EQ(run, 1);
      y.backward();
      const std::size_t length = std::max<std::size_t>(1, count / segments);
      const std::size_t last = std::min(length * (segments - 1), count - 1);  // where the last segment begins
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(runs[i], i < last ? 2 : 1) << "function " << i << " of " << count << " in " << segments;
      const Tensor plain = tensor({0.5}, in_double()).requires_grad_();
      Tensor value = plain;
      for (const auto& function : functions) value = function(value);
      value.backward();
      EXPECT_TRUE(x.grad().equal(plain.grad()));
    }
  }
}

// --- hooks of saved tensors -----------------------------------------------------------------------------------------

SavedTensorHooks counting(int& packed) {
  return {[&packed](const Tensor& tensor) -> std::any {
            ++packed;
            return tensor.clone();
          },
          [](const std::any& value) { return std::any_cast<Tensor>(value); }};
}

TEST(SavedTensorRules, HooksEndWithTheirGuardAndTheOuterOnesServeAgain) {
  const Tensor x = tensor({2.0}, requires_grad());
  int outer = 0, inner = 0;
  {
    const SavedTensorHooksGuard first(counting(outer));
    {
      const SavedTensorHooksGuard second(counting(inner));
      x.exp();
    }
    EXPECT_EQ(inner, 1);
    EXPECT_EQ(outer, 0);
    x.exp();
    EXPECT_EQ(outer, 1);
  }
  x.exp();
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 1);
}

TEST(SavedTensorRules, WhatIsUnpackedHasTheHistoryOfWhatWasSaved) {
  int packed = 0;
  const Tensor x = tensor({2.0}, in_double()).requires_grad_();
  Tensor y;
  {
    const SavedTensorHooksGuard guard(counting(packed));
    const Tensor inner = x * 3.;  // no leaf
    y = x.pow(3) + inner * inner;
  }
  const Tensor first = grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_DOUBLE_EQ(first.item<double>(), 3 * 4 + 18 * 2);
  ASSERT_TRUE(first.requires_grad());
  const Tensor second = grad({first}, {x})[0];
  EXPECT_DOUBLE_EQ(second.item<double>(), 6 * 2 + 18);
  EXPECT_GT(packed, 0);
}

TEST(SavedTensorRules, WhatNeededNoGradientNeedsNoneOnceUnpacked) {
  int packed = 0;
  const Tensor x = tensor({2.0}, requires_grad()), constant = tensor({3.0});
  Tensor y;
  {
    const SavedTensorHooksGuard guard(counting(packed));
    y = x * constant;
  }
  const Tensor first = grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_FALSE(first.requires_grad());
}

// --- backward within backward ---------------------------------------------------------------------------------------

/// Its backward runs another, `depth` times; the innermost divides by `divisor`.
struct Within : Function<Within> {
  static Tensor forward(AutogradContext* context, Tensor x, std::int64_t depth, double divisor) {
    context->saved_data["depth"] = depth;
    context->saved_data["divisor"] = divisor;
    return x * 1.;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t depth = context->saved_data["depth"].toInt();
    const double divisor = context->saved_data["divisor"].toDouble();
    if (depth == 0) return {gradients[0] * 0. / divisor, Tensor(), Tensor()};
    const AutoGradMode with_gradients(true);
    const Tensor inner = gradients[0].detach().requires_grad_();
    Within::apply(inner, depth - 1, divisor).sum().backward();
    return {inner.grad() + 1., Tensor(), Tensor()};
  }
};

// Below a certain depth a thread of its own goes on, in the modes of the one that waits.
TEST(Reentrant, DeeperThanAStackIsRight) {
  const Tensor x = tensor({1.0}, in_double()).requires_grad_();
  Within::apply(x, std::int64_t{150}, 1.).backward();
  EXPECT_DOUBLE_EQ(x.grad().item<double>(), 150);
}

TEST(Reentrant, AnomaliesAreFoundAtAnyDepth) {
  for (const std::int64_t depth : {1, 58, 62, 150}) {
    const DetectAnomalyGuard guard;
    const Tensor x = tensor({1.0}, in_double()).requires_grad_();
    SCOPED_TRACE(depth);
    test::expect_error([&] { Within::apply(x, depth, 0.).backward(); }, "nan values");
  }
}

/// As Within, but what the inner backward finds goes no further.
struct Apart : Function<Apart> {
  static Tensor forward(AutogradContext* context, Tensor x, std::int64_t depth) {
    context->saved_data["depth"] = depth;
    return x * 1.;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t depth = context->saved_data["depth"].toInt();
    if (depth == 0) return {gradients[0] * 0. / 0., Tensor()};
    const AutoGradMode with_gradients(true);
    const Tensor inner = gradients[0].detach().requires_grad_();
    Apart::apply(inner, depth - 1).sum().backward();
    return {gradients[0], Tensor()};
  }
};

TEST(Reentrant, AnAnomalyThatReachesNobodyElseIsFoundAtAnyDepth) {
  for (const std::int64_t depth : {1, 58, 59, 60, 61, 62, 150}) {
    const DetectAnomalyGuard guard;
    const Tensor x = tensor({1.0}, in_double()).requires_grad_();
    SCOPED_TRACE(depth);
    test::expect_error([&] { Apart::apply(x, depth).backward(); }, "nan values");
  }
}

/// The modes that the backward at the bottom of `depth` others sees, and its thread.
struct Seen {
  bool has_anomaly_mode = false, checks_nan = true, casts = false;
  std::thread::id thread;
};

struct Looking : Function<Looking> {
  static inline Seen seen;
  static Tensor forward(AutogradContext* context, Tensor x, std::int64_t depth) {
    context->saved_data["depth"] = depth;
    return x * 1.;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t depth = context->saved_data["depth"].toInt();
    if (depth == 0) {
      seen = {AnomalyMode::is_enabled(), AnomalyMode::should_check_nan(), autocast::is_autocast_enabled(kCPU),
              std::this_thread::get_id()};
      return {gradients[0], Tensor()};
    }
    const AutoGradMode with_gradients(true);
    Looking::apply(gradients[0].detach().requires_grad_(), depth - 1).sum().backward();
    return {gradients[0], Tensor()};
  }
};

TEST(Reentrant, TheModesOfTheThreadThatWaitsAreThoseOfTheOneThatGoesOn) {
  for (const std::int64_t depth : {1, 150}) {
    const DetectAnomalyGuard guard(/*check_nan=*/false);
    const AutocastGuard casts(kCPU);
    Looking::apply(tensor({1.0}, in_double()).requires_grad_(), depth).backward();
    EXPECT_EQ(Looking::seen.thread == std::this_thread::get_id(), depth == 1);
    EXPECT_TRUE(Looking::seen.has_anomaly_mode) << "at depth " << depth;
    EXPECT_FALSE(Looking::seen.checks_nan) << "at depth " << depth;
    EXPECT_TRUE(Looking::seen.casts) << "at depth " << depth;
  }
  for (const std::int64_t depth : {59, 60}) {
    Looking::apply(tensor({1.0}, in_double()).requires_grad_(), depth).backward();
    EXPECT_EQ(Looking::seen.thread == std::this_thread::get_id(), depth < 60) << "sixty of them fit a stack";
  }
  Looking::apply(tensor({1.0}, in_double()).requires_grad_(), std::int64_t{150}).backward();
  EXPECT_FALSE(Looking::seen.has_anomaly_mode);
  EXPECT_FALSE(Looking::seen.casts);
}

// --- views ----------------------------------------------------------------------------------------------------------

TEST(ViewRules, TurningATensorInPlaceCountsAsAChangeOfIt) {
  const Tensor x = ones({2, 3});
  const auto before = x._version();
  x.t_();
  EXPECT_EQ(x._version(), before + 1);
  x.transpose_(0, 1);
  EXPECT_EQ(x._version(), before + 2);
  x.as_strided_({6}, {1});
  EXPECT_EQ(x._version(), before + 3);
}

TEST(ViewRules, WhatBackwardSavedNoticesThatItWasTurned) {
  const Tensor x = ones({2, 3}, requires_grad());
  const Tensor y = x * 2.;
  const Tensor loss = y.square().sum();
  y.t_();
  test::expect_error([&] { loss.backward(); }, "modified by an inplace operation");
}

TEST(ViewRules, AViewMadeInInferenceModeOfAViewKeepsItsKind) {
  const Tensor x = ones({4}, requires_grad());
  const Tensor base = x * 1.;
  const Tensor view = base.view({2, 2});
  Tensor of_inference, of_both;
  {
    const InferenceMode inference;
    of_inference = base.view({2, 2});
    of_both = of_inference.view({4});
  }
  const Tensor outside = of_inference.view({4});
  for (const Tensor& bad : {of_inference, of_both, outside}) {
    test::expect_error([&] { bad.mul_(2); }, "created in inference mode");
  }
  EXPECT_NO_THROW(view.mul_(2));
}

// --- custom functions -----------------------------------------------------------------------------------------------

struct WithPositions : Function<WithPositions> {
  static variable_list forward(AutogradContext*, Tensor x) { return {x * 2., (x > 0).to(kInt64), x > 0}; }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 2.}; }
};

TEST(FunctionRules, OutputsThatAreNotFloatingHaveNoGradient) {
  const Tensor x = tensor({1.0, -1.0}, requires_grad());
  const auto out = WithPositions::apply(x);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
  EXPECT_FALSE(out[2].requires_grad());
  out[0].sum().backward();
  EXPECT_TRUE(x.grad().equal(full({2}, 2.)));
}

struct AView : Function<AView> {
  static Tensor forward(AutogradContext*, Tensor x) { return x.view({-1}); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0].view({2, 2})}; }
};

TEST(FunctionRules, AViewThatOneMadeIsNotModifiedInPlace) {
  const Tensor x = ones({2, 2}, requires_grad());
  const Tensor y = AView::apply(x * 1.);
  EXPECT_TRUE(y.is_view());
  test::expect_error([&] { y.mul_(2); }, "custom Function");
}

}  // namespace
}  // namespace tenon
