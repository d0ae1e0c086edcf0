// Steps that a graph captures, over a device that only writes down what it is told: which count a kernel gets, and what
// each run adds to it.
#include "../support/message_of.h"

#include <tenon/device/device_state.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/kernel/attributes/optimizer.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/tensor/captured_graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class NotingDriver final : public DeviceDriver {
 public:
  DeviceProperties properties() const override { return {.name = "noting"}; }
  MemorySource& memory() override { return source_; }
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  void copy(void* to, const void* from, std::size_t, CopyKind kind, StreamRef) override {
    if (kind != CopyKind::kHostToDevice) return;
    written_to = static_cast<const ReplayCounters*>(to);
    std::memcpy(written, from, sizeof written);
  }
  void begin_capture(StreamRef) override {}
  GraphRef end_capture(StreamRef) override { return {7}; }
  void launch(GraphRef, StreamRef) override {}
  void destroy_graph(GraphRef) noexcept override {}
  void synchronize() override {}
  using DeviceDriver::synchronize;

  /// What adam_step was called with: the count, and what is added to it.
  std::vector<std::pair<std::int64_t, const ReplayCounters*>> steps;
  /// The first counters that the last run was given, and where they lie.
  ReplayCounters written[3];
  const ReplayCounters* written_to = nullptr;

 private:
  AddressOnlySource source_;
};

class CapturedSteps : public testing::Test {
 protected:
  CapturedSteps() : device_(DeviceType::named("noting"), 0) {
    [[maybe_unused]] static const bool is_made = make();
    driver().steps.clear();
  }
  static NotingDriver& driver() {
    static auto* const driver = new NotingDriver;  // as long as its device
    return *driver;
  }
  Tensor parameter_there() const { return tenon::empty({2}, TensorOptions(device_)).set_requires_grad(true); }
  static void give_gradient(const Tensor& parameter) {
    parameter.mutable_grad() = tenon::empty_like(parameter.detach());
  }

  const Device device_;

 private:
  static bool make() {
    for (const Device used : {Device(kCPU), Device("simulated:0")}) device_state(used);  // by their own backends
    set_device_resolver([](Device device) {
      auto state = std::make_unique<DeviceState>(device, driver());
      state->swap_allocator(AllocatorStack::make(driver().memory(), allocator_from_spec("caching")));
      return state;
    });
    register_kernel(DeviceType::named("noting"), "fill", [](KernelContext&, auto, auto, const void*) {});
    register_kernel(DeviceType::named("noting"), "adam_step", [](KernelContext&, auto, auto, const void* attributes) {
      const auto& adam = *static_cast<const AdamAttributes*>(attributes);
      driver().steps.emplace_back(adam.step, adam.replay);
    });
    return true;
  }
};

template <class Optimizer, class State>
void expect_that_counts_go_on(Optimizer& adam, const Tensor& first, const Tensor& later, NotingDriver& driver,
                              const std::function<void(const Tensor&)>& give_gradient) {
  const auto count = [&](const Tensor& parameter) {
    return static_cast<const State&>(*adam.state().at(optim::state_key(parameter))).step();
  };
  give_gradient(first);
  adam.step();
  give_gradient(later);
  adam.step();
  EXPECT_THAT(driver.steps, ElementsAre(Pair(1, nullptr), Pair(1, nullptr), Pair(2, nullptr)));
  driver.steps.clear();
  CapturedGraph graph(first.device());
  graph.capture_begin();
  adam.step();
  graph.capture_end();
  for (const std::int64_t run : {0, 1, 2}) {
    graph.replay();
    EXPECT_THAT(driver.steps, ElementsAre(Pair(2, driver.written_to), Pair(3, driver.written_to + 1))) << "run " << run;
    EXPECT_EQ(driver.written[0].step, run);
    EXPECT_EQ(driver.written[1].step, run);
    EXPECT_EQ(count(first), 3 + run);
    EXPECT_EQ(count(later), 2 + run);
  }
}

TEST_F(CapturedSteps, OfAdamGoOnCountingFromRunToRun) {
  const StreamGuard on(device_, {5});
  const std::vector<Tensor> x{parameter_there(), parameter_there()};
  optim::Adam adam(x, optim::AdamOptions(0.1).amsgrad(true));
  expect_that_counts_go_on<optim::Adam, optim::AdamParamState>(adam, x[0], x[1], driver(), give_gradient);
  driver().steps.clear();
  optim::AdamW adamw(x, optim::AdamWOptions(0.1));
  x[1].mutable_grad() = Tensor();
  expect_that_counts_go_on<optim::AdamW, optim::AdamWParamState>(adamw, x[0], x[1], driver(), give_gradient);
}

TEST_F(CapturedSteps, ThatWouldMakeBringOrDecaySomethingAreRefused) {
  const StreamGuard on(device_, {5});
  const Tensor x = parameter_there();
  give_gradient(x);
  optim::Adam first({x}), stored({x});
  optim::Adagrad decaying({x}, optim::AdagradOptions(0.1).lr_decay(0.5));
  stored.step();
  stored.store_states({.on_host = true});
  driver().steps.clear();
  CapturedGraph graph(device_);
  graph.capture_begin();
  EXPECT_THAT(message_of([&] { first.step(); }), HasSubstr("take one step before capture_begin()"));
  EXPECT_THAT(message_of([&] { stored.step(); }), HasSubstr("capture with states as they are"));
  EXPECT_THAT(message_of([&] { decaying.step(); }), HasSubstr("Adagrad with lr_decay cannot be captured"));
  EXPECT_THAT(driver().steps, IsEmpty());
}

}  // namespace
}  // namespace tenon::test
