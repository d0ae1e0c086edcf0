// The cost model of simulated devices: what kernels, copies and calls take in virtual time, and what runs beside what.
#include <tenon/autograd/autograd.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/order/stream.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parallel.h>
#include <tenon/ops/ops.h>

#include "plugins/simulated/machine.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

/// 1 TFLOP/s, 100 GB/s of memory, 10 GB/s to a peer, 1 GB/s to the host, and nothing besides.
class CostModel : public SimulatedMachine {
 protected:
  void SetUp() override { have(rates({})); }
  static std::vector<std::pair<std::string, OptionValue>> rates(
      std::vector<std::pair<std::string, OptionValue>> besides) {
    std::vector<std::pair<std::string, OptionValue>> options = {
        {"count", std::int64_t{2}}, {"tflops", 1.}, {"memory_gbs", 100.}, {"peer_gbs", 10.}, {"host_gbs", 1.}};
    options.insert(options.end(), besides.begin(), besides.end());
    return options;
  }
  static DeviceActivity activity(Device device = kZero) { return device_activity(device).value(); }
};

Tensor on(Device device, std::initializer_list<std::int64_t> sizes) {
  Tensor made = full(std::vector<std::int64_t>(sizes), 1., TensorOptions(device));
  synchronize(device);
  reset_device_activity(device);
  return made;
}

TEST_F(CostModel, AProductTakesItsOperationsAtThePeak) {
  const Tensor a = on(kZero, {256, 512}), b = on(kZero, {512, 1024});
  const double before = virtual_time_us();
  const Tensor y = a.mm(b);
  EXPECT_EQ(virtual_time_us(), before) << "the host goes on";
  EXPECT_EQ(activity().flops, 2. * 256 * 512 * 1024);
  EXPECT_NEAR(activity().kernel_us, 2. * 256 * 512 * 1024 / 1e6, 1e-6);
  synchronize(kZero);
  EXPECT_NEAR(virtual_time_us() - before, activity().kernel_us, 1e-6) << "until it waits";
}

TEST_F(CostModel, ASumTakesItsBytesAtTheMemorysBandwidth) {
  const Tensor a = on(kZero, {1'000'000}), b = on(kZero, {1'000'000});
  const Tensor y = a.add(b);
  EXPECT_NEAR(activity().kernel_us, 3 * 4e6 / 100e3, 1e-6);
}

TEST_F(CostModel, WhatIsBroadcastIsReadOnce) {
  const Tensor a = on(kZero, {1000, 1000}), b = on(kZero, {1000});
  const Tensor y = a.add(b);
  EXPECT_NEAR(activity().kernel_us, (2 * 4e6 + 4e3) / 100e3, 1e-6);
}

TEST_F(CostModel, ALookUpReadsWhatItWritesNotItsTable) {
  const Tensor table = on(kZero, {100'000, 16});
  const Tensor rows = arange(10, TensorOptions(kZero).dtype(kLong));
  synchronize(kZero);
  reset_device_activity(kZero);
  const Tensor y = table.index_select(0, rows);
  EXPECT_NEAR(activity().kernel_us, (2 * 10 * 16 * 4 + 10 * 8) / 100e3, 1e-6);
}

TEST_F(CostModel, TheBackwardOfALinearLayerIsTwoProducts) {
  const Tensor x = on(kZero, {64, 128}).set_requires_grad(true), w = on(kZero, {128, 256}).set_requires_grad(true);
  const Tensor y = x.mm(w);
  const Tensor gradient = on(kZero, {64, 256});
  y.backward(gradient);
  EXPECT_EQ(activity().flops, 2 * (2. * 64 * 128 * 256));
}

TEST_F(CostModel, CopiesTakeTheirLink) {
  const Tensor x = on(kZero, {250'000});
  on(kOne, {1});
  const Tensor there = x.to(kOne, kFloat32);
  EXPECT_NEAR(activity().copy_us, 1e6 / 10e3, 1e-6);
  synchronize(kZero);
  reset_device_activity(kZero);
  x.cpu();
  EXPECT_NEAR(activity().copy_us, 1e6 / 1e3, 1e-6);
  EXPECT_EQ(activity().copied_bytes, 1e6);
  EXPECT_EQ(activity().copies, 1);
}

TEST_F(CostModel, ADeviceThatGetsACopyGoesOnAfterIt) {
  const Tensor x = on(kZero, {250'000});
  on(kOne, {1});
  advance_virtual_time(1e6);
  Event start(kOne, true), end(kOne, true);
  start.record();
  const Tensor there = x.to(kOne, kFloat32);
  end.record();
  end.synchronize();
  EXPECT_NEAR(start.elapsed_time(end), 0.1, 1e-9) << "1 MB at 10 GB/s";
}

TEST_F(CostModel, ACopyOnAnotherStreamIsHiddenBehindAKernel) {
  const Tensor a = on(kZero, {512, 512});
  Tensor host = full({25'000}, 1.).pin_memory(kZero);
  const Stream side(kZero);
  synchronize(kZero);
  reset_device_activity(kZero);
  const double before = virtual_time_us();
  const Tensor y = a.mm(a);  // 268 us
  {
    const StreamGuard guard(side);
    const Tensor x = host.to(kZero, kFloat32, /*non_blocking=*/true);  // 100 us
  }
  synchronize(kZero);
  EXPECT_NEAR(activity().copy_us, 100, 1e-6);
  EXPECT_NEAR(activity().overlapped_us, 100, 1e-6);
  EXPECT_NEAR(virtual_time_us() - before, activity().kernel_us, 1e-6);
}

TEST_F(CostModel, KernelsOfTwoStreamsShareTheDevice) {
  const Tensor a = on(kZero, {512, 512});
  const Stream side(kZero);
  const double before = virtual_time_us();
  const Tensor y = a.mm(a);
  {
    const StreamGuard guard(side);
    const Tensor z = a.mm(a);
  }
  synchronize(kZero);
  EXPECT_NEAR(virtual_time_us() - before, 2 * 2. * 512 * 512 * 512 / 1e6, 1e-6);
}

TEST_F(CostModel, WorkOfAnotherStreamFillsAGap) {
  const Tensor a = on(kZero, {512, 512}), b = on(kOne, {1024, 512});
  const Stream side(kZero);
  const double before = virtual_time_us();
  const Tensor late = b.mm(a.to(kOne, kFloat32));  // on the other device, until which stream 0 waits
  Event there(kOne);
  there.record();
  {
    const StreamGuard guard(side);
    side.wait_event(there);
    const Tensor second = a.mm(a);
  }
  const Tensor first = a.mm(a);  // queued later, not held up
  synchronize(kZero);
  const double product = 2. * 512 * 512 * 512 / 1e6, copy = 512 * 512 * 4 / 10e3;
  EXPECT_NEAR(virtual_time_us() - before, copy + 2 * product + product, 1e-6);
}

TEST_F(CostModel, EachLaunchTakesTheHost) {
  have(rates({{"launch_us", 5.}}));
  const Tensor a = on(kZero, {4});
  const double before = virtual_time_us();
  for (int i = 0; i < 10; ++i) a.add_(1);
  EXPECT_NEAR(virtual_time_us() - before, 50, 1e-6);
  synchronize(kZero);
  EXPECT_LT(activity().kernel_us, 1) << "small kernels: the device is idle while the host launches";
}

TEST_F(CostModel, CallsForMemoryTakeVirtualTimeInsteadOfDelaying) {
  have(rates({{"latency_us", std::int64_t{1'000'000}}}));
  const double before = virtual_time_us();
  const Tensor a = empty({4}, TensorOptions(kZero));
  EXPECT_NEAR(virtual_time_us() - before, 1e6, 1e-6);
}

TEST_F(CostModel, AddressesAloneAreCountedToo) {
  have(rates({{"mode", std::string("address-only")}, {"capacity", std::string("80GiB")}}));
  const Tensor a = empty({40'000, 40'000}, TensorOptions(kZero));
  reset_device_activity(kZero);
  const Tensor y = a.mm(a);
  EXPECT_NEAR(activity().kernel_us, 2. * 40e3 * 40e3 * 40e3 / 1e6, 1);
}

TEST_F(CostModel, APresetHasTheRatesAndTheMemoryOfItsGpu) {
  have({{"preset", std::string("h100")}, {"mode", std::string("address-only")}});
  EXPECT_EQ(device_properties(kZero).capacity_bytes, std::size_t{80} << 30);
  {
    const Tensor a = empty({8192, 8192}, TensorOptions(kZero).dtype(kBFloat16));
    reset_device_activity(kZero);
    const Tensor y = a.mm(a);
  }
  EXPECT_NEAR(activity().kernel_us, 2. * 8192 * 8192 * 8192 / 989e6, 0.01);
  have({{"preset", std::string("h100")}, {"tflops_16", 400.}, {"efficiency", 0.5}, {"capacity", std::string("8GiB")}});
  EXPECT_EQ(device_properties(kZero).capacity_bytes, std::size_t{8} << 30);
}

TEST_F(CostModel, CallsForMemoryOfAnH100TakeWhatWasMeasuredThere) {
  have({{"preset", std::string("h100")}, {"mode", std::string("address-only")}});
  MemorySource& memory = device_state(kZero).driver().memory();
  const double before = virtual_time_us();
  void* const address = memory.acquire(std::size_t{100} << 20);
  EXPECT_NEAR(virtual_time_us() - before, 45 + 100 * 0.04, 1e-6);
  memory.release(address, std::size_t{100} << 20);
}

TEST_F(CostModel, TwoDevicesWorkAtTheSameTimeForTwoThreads) {
  std::vector<nn::Linear> modules;
  std::vector<Tensor> inputs;
  for (const Device& device : {kZero, kOne}) {
    modules.emplace_back(nn::LinearOptions(512, 512).bias(false));
    modules.back()->to(device);
    inputs.push_back(on(device, {512, 512}));
  }
  const double before = virtual_time_us();
  const NoGradGuard no_grad;
  const std::vector<Tensor> outputs = nn::parallel::parallel_apply(modules, inputs);
  for (const Device& device : {kZero, kOne}) synchronize(device);
  EXPECT_NEAR(virtual_time_us() - before, 2. * 512 * 512 * 512 / 1e6, 1e-6);
}

TEST_F(CostModel, WithoutOneNothingIsCounted) {
  have({});
  const double before = virtual_time_us();
  ones({4}, TensorOptions(kZero)).add_(1);
  synchronize(kZero);
  EXPECT_EQ(virtual_time_us(), before);
  EXPECT_FALSE(device_activity(kZero).has_value());
  EXPECT_FALSE(device_activity(kCPU).has_value());
}

}  // namespace
}  // namespace tenon::test
