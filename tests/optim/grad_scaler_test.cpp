// GradScaler step by step beside torch.amp.GradScaler, and what it refuses.
#include "support/expect_error.h"

#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/grad_scaler.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

using optim::GradScaler;
using optim::GradScalerState;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// An iteration as PyTorch left it.
struct Recorded {
  char what;
  double scale;
  std::int64_t tracker;
  double first, second;
};

const std::vector<Recorded> kRecorded = {
#define GRAD_SCALER_STEP(what, scale, tracker, first, second) {what, scale, tracker, first, second},
#define GRAD_SCALER_AT_THE_TOP(scale, tracker)
#include "grad_scaler_states.inl"
};
const std::vector<GradScalerState> kAtTheTop = {
#define GRAD_SCALER_STEP(what, scale, tracker, first, second)
#define GRAD_SCALER_AT_THE_TOP(scale, tracker) {scale, 2, 0.5, 1, tracker},
#include "grad_scaler_states.inl"
};

Tensor two() { return tenon::tensor(std::vector<double>{1, -2}).to(kFloat32).set_requires_grad(true); }
optim::SGD stepping(const Tensor& parameter) { return optim::SGD({parameter}, optim::SGDOptions(0.125)); }
Tensor loss_of(const Tensor& x) { return (x * x).sum(); }

TEST(GradScaler, KeepsTheStateOfPyTorchsOverAScriptOfOverflows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GradScaler scaler({.init_scale = 262144, .growth_factor = 3, .backoff_factor = 0.3, .growth_interval = 3});
  const Tensor first = two(), second = two();
  optim::SGD one = stepping(first), other = stepping(second);
  int iteration = 0;
  for (const Recorded& recorded : kRecorded) {
    SCOPED_TRACE(std::string("iteration ") + std::to_string(iteration++) + ", " + recorded.what);
    const Tensor loss = scaler.scale(loss_of(first) + loss_of(second));
    one.zero_grad();
    other.zero_grad();
    loss.backward();
    const char what = recorded.what;
    if (what == 'a' || what == 'c') first.grad().select(0, 1).fill_(kInfinity);
    if (what == 'n') first.grad().select(0, 0).fill_(std::numeric_limits<double>::quiet_NaN());
    if (what == 'b' || what == 'c') second.grad().select(0, 0).fill_(-kInfinity);
    if (what == 'u') scaler.unscale_(one);
    scaler.step(one);
    scaler.step(other);
    scaler.update(what == 's' ? std::optional<double>(24) : std::nullopt);
    ASSERT_TRUE(scaler.state_dict());
    EXPECT_EQ(scaler.state_dict()->scale, recorded.scale);
    EXPECT_EQ(scaler.get_scale(), recorded.scale);
    EXPECT_EQ(scaler.state_dict()->growth_tracker, recorded.tracker);
    EXPECT_EQ(first.detach().select(0, 1).item<float>(), static_cast<float>(recorded.first));
    EXPECT_EQ(second.detach().select(0, 0).item<float>(), static_cast<float>(recorded.second));
  }
}

TEST(GradScaler, DoesNotGrowToInfinity) {
  GradScaler scaler({.init_scale = 3e38, .growth_interval = 1});
  const Tensor x = two();
  optim::SGD optimizer = stepping(x);
  for (const GradScalerState& recorded : kAtTheTop) {
    optimizer.zero_grad();
    scaler.scale(x.sum() * 0);
    x.mutable_grad() = zeros_like(x);
    scaler.step(optimizer);
    scaler.update();
    EXPECT_EQ(scaler.state_dict()->scale, static_cast<float>(recorded.scale));
    EXPECT_EQ(scaler.state_dict()->growth_tracker, 0);
  }
}

TEST(GradScaler, GoesOnFromItsStateAndItsArchive) {
  GradScaler scaler({.init_scale = 512, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 5});
  const Tensor x = two();
  optim::SGD optimizer = stepping(x);
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    scaler.scale(loss_of(x)).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  GradScaler again;
  again.load_state_dict(scaler.state_dict());
  EXPECT_EQ(again.state_dict(), scaler.state_dict());
  EXPECT_EQ(again.state_dict()->growth_tracker, 3);

  OutputArchive written;
  scaler.save(written);
  std::stringstream stream;
  written.save_to(stream);
  InputArchive read;
  read.load_from(stream);
  GradScaler archived;
  archived.load(read);
  EXPECT_EQ(archived.state_dict(), scaler.state_dict());
}

TEST(GradScaler, DisabledOnlySteps) {
  GradScaler scaler({.growth_factor = 0, .enabled = false});
  const Tensor x = two();
  optim::SGD optimizer = stepping(x);
  loss_of(x).backward();
  EXPECT_TRUE(scaler.scale(x).is_same(x));
  scaler.unscale_(optimizer);
  scaler.step(optimizer);
  scaler.update();
  EXPECT_EQ(x.detach().select(0, 1).item<float>(), -1.5F);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_FALSE(scaler.state_dict());
  scaler.load_state_dict(std::nullopt);
}

TEST(GradScaler, MakesALossOf16BitsOneOf32) {
  GradScaler scaler;
  const Tensor loss = full({}, 3.0, TensorOptions(kFloat16));
  EXPECT_EQ(scaler.scale(loss).scalar_type(), kFloat32);
  EXPECT_EQ(scaler.scale(std::vector<Tensor>{loss, loss}).at(1).item<float>(), 3.0F * 65536);
}

TEST(GradScaler, RefusesWhatPyTorchRefuses) {
  const auto says = [](const char* text) { return ThrowsMessage<Error>(HasSubstr(text)); };
  EXPECT_THAT([] { GradScaler({.growth_factor = 1}); }, says("growth factor must be > 1.0"));
  EXPECT_THAT([] { GradScaler({.backoff_factor = 1}); }, says("backoff factor must be < 1.0"));
  GradScaler scaler;
  const Tensor x = two();
  optim::SGD optimizer = stepping(x);
  EXPECT_THAT([&] { scaler.unscale_(optimizer); }, says("Attempted unscale_ but _scale is None"));
  EXPECT_THAT([&] { scaler.step(optimizer); }, says("Attempted step but _scale is None"));
  EXPECT_THAT([&] { scaler.update(); }, says("Attempted update but _scale is None"));
  const Tensor loss = scaler.scale(loss_of(x));
  EXPECT_THAT([&] { scaler.step(optimizer); }, says("No inf checks were recorded for this optimizer"));
  scaler.update(65536.0);
  EXPECT_THAT([&] { scaler.update(); }, says("No inf checks were recorded prior to update"));
  loss.backward();
  EXPECT_THAT([&] { scaler.step(optimizer, [&] { return loss; }); }, says("Closure use is not currently supported"));
  scaler.unscale_(optimizer);
  EXPECT_THAT([&] { scaler.unscale_(optimizer); }, says("unscale_() has already been called on this optimizer"));
  scaler.step(optimizer);
  EXPECT_THAT([&] { scaler.unscale_(optimizer); }, says("unscale_() is being called after step()"));
  EXPECT_THAT([&] { scaler.step(optimizer); }, says("step() has already been called since the last update()"));
  EXPECT_THAT([&] { scaler.load_state_dict(std::nullopt); }, says("The source state dict is empty"));

  const Tensor half = two().detach().to(kFloat16).set_requires_grad(true);
  optim::SGD of_half = stepping(half);
  half.mutable_grad() = ones_like(half.detach());
  expect_error<ValueError>([&] { scaler.unscale_(of_half); }, "unscale FP16 gradients");
}

// One that is never reached, and a factor that makes infinities of every loss, would leave out each step in silence.
TEST(GradScaler, RefusesAFactorAndAnIntervalThatCannotServe) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double scale : {kInfinity, 1e39, 0.0, -2.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT([&] { GradScaler({.init_scale = scale}); },
                ThrowsMessage<Error>(HasSubstr("The initial scale must be above 0 and finite")))
        << scale;
  for (const std::int64_t steps : {-1, 0})
    EXPECT_THAT([&] { GradScaler({.growth_interval = steps}); },
                ThrowsMessage<Error>(HasSubstr("The growth interval must be 1 step or more")))
        << steps;
  GradScaler scaler;
  expect_error([&] { scaler.set_growth_interval(0); }, "not 0");
  EXPECT_EQ(scaler.get_growth_interval(), 2000);
  EXPECT_NO_THROW(GradScaler({.init_scale = kInfinity, .enabled = false})) << "it scales nothing";
}

}  // namespace
}  // namespace tenon::test
