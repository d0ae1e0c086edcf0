// Grad modes, inference mode, detaching, anomaly mode.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::HasSubstr;

TEST(GradMode, GuardsNest) {
  const Tensor x = ones({1}, requires_grad());
  {
    NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    {
      AutoGradMode grad(true);
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE(GradMode::is_enabled());
  }
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(InferenceMode, MakesTensorsWithoutVersions) {
  Tensor x;
  {
    InferenceMode inference;
    x = ones({2});
    x.add_(1);
    EXPECT_TRUE(x.is_inference());
  }
  test::expect_error([&] { x._version(); }, "Inference tensors do not track version counter");
  test::expect_error([&] { x.add_(1); }, "Inplace update to inference tensor outside InferenceMode");
  const Tensor w = ones({2}, requires_grad());
  test::expect_error([&] { x* w; }, "Inference tensors cannot be saved for backward");
  EXPECT_FALSE(x.clone().is_inference());
}

TEST(InferenceMode, LeavesViewsOfOrdinaryTensorsOrdinary) {
  const Tensor x = ones({1, 2, 3}, requires_grad());
  const Tensor y = x.clone();
  Tensor view, view_of_view;
  {
    autograd::InferenceMode inference;
    view = y.view({2, 3});
    view_of_view = view.view({3, 2});
    view_of_view.mul_(1);
    EXPECT_FALSE(view_of_view.is_inference());
    EXPECT_TRUE(view_of_view.requires_grad()) << "as its base does";
    EXPECT_TRUE(view_of_view.is_leaf());
    EXPECT_EQ(y._version(), view_of_view._version());
  }
  test::expect_error([&] { view.mul_(1); }, "A view was created in inference mode and is being modified inplace");
  y.mul_(1);
  test::expect_error([&] { view.grad_fn(); },
                     "A view was created in inference mode and its base or another view of its "
                     "base has been modified inplace");
}

TEST(InferenceMode, TensorsOfItAloneAreNotRecordedButGetGradientsBesideOthers) {
  Tensor x;
  {
    InferenceMode inference;
    x = ones({2}).set_requires_grad(true);
  }
  EXPECT_FALSE((x * x).requires_grad());
  EXPECT_FALSE(x.view({2, 1}).requires_grad());
  const Tensor w = ones({2}, requires_grad());
  const Tensor sum = x.add(w);
  EXPECT_TRUE(sum.requires_grad());
  sum.backward(ones({2}));
  EXPECT_TRUE(x.grad().equal(ones({2})));
  test::expect_error([&] { x.unsafeGetTensorImpl()->version_counter().current_version(); },
                     "Inference tensors do not track version counter.");
  test::expect_error([&] { x.unsafeGetTensorImpl()->bump_version(); },
                     "Inplace update to inference tensor outside InferenceMode");
}

TEST(GradMode, ViewsMadeInItsAbsenceRequireWhatTheirBaseRequires) {
  for (const bool wanted : {true, false}) {
    const Tensor base = ones({1, 2, 3}).set_requires_grad(wanted).clone();
    Tensor view;
    {
      AutoGradMode off(false);
      view = base.view({2, 3});
    }
    EXPECT_EQ(view.requires_grad(), wanted);
    EXPECT_TRUE(view.is_leaf());
    const Tensor product = view * view;
    EXPECT_EQ(product.requires_grad(), wanted);
    if (wanted) {
      product.backward(ones_like(product));
      EXPECT_FALSE(view.grad().defined()) << "no edge leads to it";
      EXPECT_THROW(view.mul_(2), Error);
    } else {
      view.mul_(2);
    }
  }
}

TEST(Detach, SharesMemoryAndCutsHistory) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 2;
  EXPECT_FALSE(y.detach().requires_grad());
  EXPECT_TRUE(y.detach().is_alias_of(y));
  Tensor z = x * 3;
  z.detach_();
  EXPECT_TRUE(z.is_leaf());
  test::expect_error([&] { y[0].detach_(); }, "Can't detach views in-place");
}

TEST(Anomaly, NamesTheFunctionThatReturnedNan) {
  struct Silent : WarningHandler {
    void process(const SourceLocation&, const std::string& text, bool) override { messages += text; }
    std::string messages;
  } handler;
  Warning::set_warning_handler(&handler);
  autograd::DetectAnomalyGuard anomaly;
  const Tensor x = zeros({1}, requires_grad());
  test::expect_error([&] { (x / x).backward(); }, "Function 'DivBackward0' returned nan values in its");
  Warning::set_warning_handler(nullptr);
  EXPECT_THAT(handler.messages, HasSubstr("Traceback of forward call that caused the error"));
}

TEST(InferenceMode, RecordsNothingEvenWhereGradModeIsTurnedOn) {
  const Tensor x = ones({2}, requires_grad());
  {
    InferenceMode inference;
    EXPECT_FALSE(GradMode::is_enabled());
    {
      AutoGradMode on(true);
      EXPECT_TRUE(GradMode::is_enabled());
      EXPECT_FALSE((x * 2).requires_grad());
      InferenceMode out(false);
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE(GradMode::is_enabled());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  NoGradGuard off;
  { InferenceMode inference; }
  EXPECT_FALSE(GradMode::is_enabled());
}

}  // namespace
}  // namespace tenon
