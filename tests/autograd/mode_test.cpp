// Grad modes, inference mode, detaching, anomaly mode.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/warning.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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
  EXPECT_THAT([&] { x._version(); }, ThrowsMessage<Error>(HasSubstr("Inference tensors do not track version counter")));
  EXPECT_THAT([&] { x.add_(1); },
              ThrowsMessage<Error>(HasSubstr("Inplace update to inference tensor outside InferenceMode")));
  const Tensor w = ones({2}, requires_grad());
  EXPECT_THAT([&] { x* w; }, ThrowsMessage<Error>(HasSubstr("Inference tensors cannot be saved for backward")));
  EXPECT_FALSE(x.clone().is_inference());
}

TEST(Detach, SharesMemoryAndCutsHistory) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 2;
  EXPECT_FALSE(y.detach().requires_grad());
  EXPECT_TRUE(y.detach().is_alias_of(y));
  Tensor z = x * 3;
  z.detach_();
  EXPECT_TRUE(z.is_leaf());
  EXPECT_THAT([&] { y[0].detach_(); }, ThrowsMessage<Error>(HasSubstr("Can't detach views in-place")));
}

TEST(Anomaly, NamesTheFunctionThatReturnedNan) {
  struct Silent : WarningHandler {
    void process(const SourceLocation&, const std::string& text, bool) override { messages += text; }
    std::string messages;
  } handler;
  Warning::set_warning_handler(&handler);
  autograd::DetectAnomalyGuard anomaly;
  const Tensor x = zeros({1}, requires_grad());
  EXPECT_THAT([&] { (x / x).backward(); },
              ThrowsMessage<Error>(HasSubstr("Function 'DivBackward0' returned nan values in its")));
  Warning::set_warning_handler(nullptr);
  EXPECT_THAT(handler.messages, HasSubstr("Traceback of forward call that caused the error"));
}

}  // namespace
}  // namespace tenon
