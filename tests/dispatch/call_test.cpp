// Calls of kernels: what they are given, and that their workspace goes back.
#include <tenon/dispatch/call.h>

#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <functional>

namespace tenon {
namespace {

using Body = std::function<void(KernelContext&, std::span<const TensorView>, std::span<const TensorView>, const void*)>;
Body body;

void told_kernel(KernelContext& context, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
                 const void* attributes) {
  body(context, outputs, inputs, attributes);
}

class KernelCalls : public ::testing::Test {
 protected:
  KernelCalls() { register_kernel(DeviceType::named("fake"), "call_test", &told_kernel); }
  ~KernelCalls() override { body = nullptr; }
  DeviceState& state() { return device_state(test::fake()); }
  std::int64_t live_bytes() { return state().allocator().stats().allocated_bytes.current; }
  const test::FakeDevices devices_;
};

TEST_F(KernelCalls, AreGivenOutputsInputsAttributesAndTheStream) {
  TensorView written = undefined_view(), read = undefined_view();
  int of_output = 0, of_input = 0, attributes = 0, calls = 0;
  written.data = &of_output;
  read.data = &of_input;
  body = [&](KernelContext& context, auto outputs, auto inputs, const void* given) {
    ++calls;
    EXPECT_EQ(outputs[0].data, &of_output);
    EXPECT_EQ(inputs[0].data, &of_input);
    EXPECT_EQ(given, &attributes);
    EXPECT_EQ(context.stream().id, 3u);
    EXPECT_EQ(&context.driver(), &state().driver());
  };
  const StreamGuard on(test::fake(), {3});
  call_kernel(TENON_OP("call_test"), state(), {&written, 1}, {&read, 1}, &attributes);
  EXPECT_EQ(calls, 1);
}

TEST_F(KernelCalls, TakeTheirWorkspaceFromTheAllocatorInServiceAndGiveItBack) {
  body = [&](KernelContext& context, auto, auto, const void*) {
    EXPECT_EQ(context.scratch(0), nullptr);
    EXPECT_EQ(live_bytes(), 0);
    EXPECT_NE(context.scratch(1000), nullptr);
    EXPECT_EQ(live_bytes(), 1024);
    EXPECT_NE(context.scratch(5000), nullptr);
    EXPECT_EQ(live_bytes(), 1024 + 5120);
  };
  call_kernel(TENON_OP("call_test"), state(), {}, {}, nullptr);
  EXPECT_EQ(live_bytes(), 0);
}

TEST_F(KernelCalls, ThatNobodyHasAKernelForAreErrors) {
  EXPECT_NE(test::message_of([&] {
              call_kernel(TENON_OP("call_test_nowhere"), state(), {}, {}, nullptr);
            }).find("operator 'call_test_nowhere' has no kernel for device 'fake'"),
            std::string::npos);
}

TEST_F(KernelCalls, AreLeftOutWhereTheDeviceDoesNotCompute) {
  int calls = 0;
  body = [&](auto&, auto, auto, const void*) { ++calls; };
  for (const bool computes : {false, true}) {
    test::FakeDriver::computes() = computes;
    call_kernel(TENON_OP("call_test"), state(), {}, {}, nullptr);
    EXPECT_EQ(calls, computes ? 1 : 0);
  }
}

}  // namespace
}  // namespace tenon
