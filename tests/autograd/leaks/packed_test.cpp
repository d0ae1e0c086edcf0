// Saved tensors that hooks have packed away: what they were made of is kept by the history all the same.
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace packed_program {

using tenon::Tensor;
using tenon::autograd::SavedTensorHooks;

/// What a hook of a program's own may make of a tensor.
struct Halved {
  Tensor half;
  std::string note;
};

SavedTensorHooks halving() {
  return {.pack = [](const Tensor& tensor) -> std::any {
            return Halved{tensor.to(tenon::kBFloat16), "of float32"};
          },
          .unpack = [](const std::any& packed) { return std::any_cast<const Halved&>(packed).half.to(tenon::kFloat); }};
}

using Guard = std::function<std::shared_ptr<void>()>;

int line_of_loss = 0;
/// With losses kept, or not. `guard` makes what packs saved tensors for as long as it lives.
tenon::memory::LeakReport training(tenon::Device device, bool keeps_losses, const Guard& guard) {
  tenon::device_state(device);
  tenon::nn::Linear first(64, 64), second(64, 1);
  first->to(device);
  second->to(device);
  std::vector<Tensor> losses;
  tenon::memory::LeakWatch watch;
  for (int step = 0; step < 14; ++step) {
    const Tensor x = tenon::rand({32, 64}).to(device);
    Tensor loss;
    {
      const auto packing = guard();
      line_of_loss = __LINE__ + 1;
      loss = second->forward(tenon::relu(first->forward(x))).square().mean();
    }
    if (keeps_losses) {
      losses.push_back(loss);
    } else {
      loss.backward();
    }
    watch.step();
  }
  return watch.report();
}

}  // namespace packed_program

namespace tenon::test {
namespace {

using memory::Leak;
using memory::LeakKind;
using memory::LeakReport;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void expect_kept_graph(const LeakReport& report) {
  ASSERT_THAT(report.leaks, SizeIs(1)) << report.text();
  const Leak& leak = report.leaks.front();
  EXPECT_EQ(leak.kind, LeakKind::kKeptGraph) << report.text();
  EXPECT_THAT(leak.site, HasSubstr("(packed_test.cpp:" + std::to_string(packed_program::line_of_loss) + ")"));
  EXPECT_THAT(leak.chain, Contains(HasSubstr("Backward0")));
}

TEST(PackedLeaks, LossesWhoseSavedTensorsAreOnTheHostAreAKeptGraph) {
  for (const bool is_pinned : {true, false}) {
    const auto guard = [&] {
      return std::make_shared<autograd::SaveOnCpuGuard>(autograd::SaveOnCpuOptions{.pin_memory = is_pinned});
    };
    const LeakReport kept = packed_program::training(Device(kSimulated, 0), true, guard);
    expect_kept_graph(kept);
    EXPECT_EQ(kept.leaks.front().page_locked, is_pinned);
    const LeakReport clean = packed_program::training(Device(kSimulated, 0), false, guard);
    EXPECT_THAT(clean.leaks, IsEmpty()) << clean.text();
  }
}

TEST(PackedLeaks, LossesWhoseSavedTensorsAreInAStructOfTheProgramAreAKeptGraph) {
  const auto guard = [] { return std::make_shared<autograd::SavedTensorHooksGuard>(packed_program::halving()); };
  expect_kept_graph(packed_program::training(kCPU, true, guard));
  const LeakReport clean = packed_program::training(kCPU, false, guard);
  EXPECT_THAT(clean.leaks, IsEmpty()) << clean.text();
}

TEST(PackedLeaks, WhatHooksHandOnAsItIsIsKeptByTheHistoryToo) {
  const auto guard = [] {
    return std::make_shared<autograd::SavedTensorHooksGuard>(autograd::SavedTensorHooks{
        .pack = [](const Tensor& tensor) -> std::any { return tensor; },
        .unpack = [](const std::any& packed) { return std::any_cast<const Tensor&>(packed); }});
  };
  expect_kept_graph(packed_program::training(kCPU, true, guard));
}

}  // namespace
}  // namespace tenon::test
