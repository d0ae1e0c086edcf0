// What the devices of a run do in its steps, on the average: figures of virtual time held against the devices' own, and
// peaks that a step may reset.
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/device/devices.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/step/virtual_steps.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using train::VirtualSteps;

const Device kNear("simulated:0"), kFar("simulated:1");

class VirtualStepsOf : public ::testing::Test {
 protected:
  void TearDown() override { shutdown(); }
  void use(const std::vector<std::string>& more) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"device.names=[\"simulated:0\", \"simulated:1\"]", "device.simulated.count=2",
                         "device.simulated.mode=\"address-only\"", "allocator.name=\"direct\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    install(Config::load(request).experiment());
  }
  static Tensor matrix(Device device, std::int64_t side) {
    return empty({side, side}, TensorOptions(kFloat32).device(device));
  }

  /// What a step did by the devices' own figures.
  struct Seen {
    double us = 0;
    std::vector<DeviceActivity> devices;
  };
  /// Products on both devices, a copy between them, and the host's own time.
  static Seen step_on(VirtualSteps& steps, const std::vector<Device>& devices, std::int64_t side) {
    Seen seen;
    EXPECT_EQ(steps.around([&] {
      const double begun = virtual_time_us();
      for (const Device& device : devices) {
        EXPECT_EQ(device_activity(device)->kernels, 0) << "what was before is not of the step";
        const Tensor a = matrix(device, side);
        a.mm(a);
        if (device == devices.back()) a.to(devices.front(), kFloat32);
      }
      for (const Device& device : devices) synchronize(device);
      seen.us = virtual_time_us() - begun;
      for (const Device& device : devices) seen.devices.push_back(device_activity(device).value());
      return 7.5;
    }),
              7.5);
    return seen;
  }
  static void expect_mean(const VirtualSteps& steps, const std::vector<Device>& devices,
                          const std::vector<Seen>& counted) {
    ExperimentResult result;
    steps.note(result);
    const auto count = static_cast<double>(counted.size());
    double us = 0, idle = 0;
    for (const Seen& seen : counted) us += seen.us;
    ASSERT_TRUE(result.estimated_step_ms);
    EXPECT_NEAR(*result.estimated_step_ms, us / count / 1000, 1e-9);
    ASSERT_EQ(result.devices.size(), devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      double kernel = 0, copy = 0, hidden = 0;
      for (const Seen& seen : counted) {
        kernel += seen.devices[i].kernel_us;
        copy += seen.devices[i].copy_us;
        hidden += seen.devices[i].overlapped_us;
      }
      EXPECT_EQ(result.devices[i].device, devices[i].str());
      const EstimatedUse use = result.devices[i].estimated.value();
      EXPECT_NEAR(use.kernel_ms, kernel / count / 1000, 1e-9);
      EXPECT_NEAR(use.copy_ms, copy / count / 1000, 1e-9);
      EXPECT_NEAR(use.hidden_copy_ms, hidden / count / 1000, 1e-9);
      EXPECT_NEAR(use.idle, 1 - kernel / us, 1e-9);
      EXPECT_GT(kernel, 0);
      idle += use.idle / static_cast<double>(devices.size());
    }
    ASSERT_EQ(result.figures.size(), 2U);
    EXPECT_EQ(result.figures[0].first, "estimated_step_ms");
    EXPECT_EQ(result.figures[0].second, *result.estimated_step_ms);
    EXPECT_EQ(result.figures[1].first, "estimated_idle");
    EXPECT_NEAR(result.figures[1].second, idle, 1e-9);
  }
};

TEST_F(VirtualStepsOf, ACostModelAreTheMeanOfAllButTheFirst) {
  for (const std::vector<Device>& devices : {std::vector<Device>{kNear}, {kNear, kFar}}) {
    use({"device.simulated.tflops=1.0", "device.simulated.memory_gbs=100.0", "device.simulated.peer_gbs=10.0",
         "device.simulated.launch_us=3.0", "device.simulated.kernel_us=2.0"});
    VirtualSteps steps(devices);
    const Seen first = step_on(steps, devices, 500);
    expect_mean(steps, devices, {first});
    const Seen second = step_on(steps, devices, 200);
    expect_mean(steps, devices, {second});
    const Seen third = step_on(steps, devices, 300);
    expect_mean(steps, devices, {second, third});
  }
}

TEST_F(VirtualStepsOf, OneDeviceWithoutACostModelSayNothing) {
  use({});
  VirtualSteps steps({kNear});
  steps.around([] { return 1.0; });
  ExperimentResult result;
  steps.note(result);
  EXPECT_TRUE(result.devices.empty());
  EXPECT_FALSE(result.estimated_step_ms);
  EXPECT_TRUE(result.figures.empty());
}

TEST_F(VirtualStepsOf, SeveralDevicesHaveTheirPeaksAlthoughAStepResetsThem) {
  use({});
  VirtualSteps steps({kNear, kFar});
  AllocatorStack& far = device_state(kFar).allocator();
  const auto take = [&](std::size_t mib) {
    far.deallocate(far.allocate({.bytes = mib * MiB, .purpose = Purpose::kActivation}));
  };
  const auto reset = [&] {
    far.reset_peak_stats();
    return 0.0;
  };
  const auto peak = [&] {
    ExperimentResult result;
    result.memory.requested_bytes.peak = 11;
    result.memory.allocated_bytes.peak = 12;
    result.memory.reserved_bytes.peak = 13;
    result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kGradient)].peak = 14;
    steps.note(result);
    EXPECT_EQ(result.devices.size(), 2U);
    const DeviceResult &near = result.devices.at(0), &other = result.devices.at(1);
    EXPECT_EQ(near.device, "simulated:0");
    EXPECT_EQ(near.peak_requested_bytes, 11) << "as the run has it";
    EXPECT_EQ(near.peak_allocated_bytes, 12);
    EXPECT_EQ(near.peak_reserved_bytes, 13);
    EXPECT_EQ(near.peak_requested_by_purpose[static_cast<std::size_t>(Purpose::kGradient)], 14);
    EXPECT_EQ(other.peak_allocated_bytes, other.peak_requested_bytes);
    EXPECT_GE(other.peak_reserved_bytes, other.peak_requested_bytes);
    EXPECT_EQ(other.peak_requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)],
              other.peak_requested_bytes);
    EXPECT_FALSE(near.estimated);
    EXPECT_FALSE(result.estimated_step_ms);
    return other.peak_requested_bytes / static_cast<std::int64_t>(MiB);
  };
  take(4);
  EXPECT_EQ(peak(), 4) << "before the first step";
  steps.around(reset);
  EXPECT_EQ(peak(), 4);
  take(6);
  EXPECT_EQ(peak(), 6);
  steps.around(reset);
  steps.around(reset);
  take(5);
  EXPECT_EQ(peak(), 6);
}

}  // namespace
}  // namespace tenon::test
