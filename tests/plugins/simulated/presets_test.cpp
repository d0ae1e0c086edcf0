// What presets and options of a simulated device say of its rates, its launches and its calls for memory.
#include "plugins/simulated/round_rates.h"
#include "support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/device/devices.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using SimulatedPresets = RoundRates;

struct SheetOfGpu {
  std::string name;
  double tflops, tflops_16, memory_gb, peer_gb, host_gb;
  std::size_t capacity_gib;
};

/// Data sheets of the makers, links in one direction.
const std::vector<SheetOfGpu> kSheets = {{"v100", 15.7, 125, 900, 150, 16, 32},
                                         {"t4", 8.1, 65, 320, 16, 16, 16},
                                         {"a100", 19.5, 312, 2039, 300, 32, 80},
                                         {"h100", 67, 989, 3350, 450, 64, 80},
                                         {"h200", 67, 989, 4800, 450, 64, 141}};

TEST_F(SimulatedPresets, PresetsAreTheDataSheets) {
  for (const SheetOfGpu& gpu : kSheets) {
    SCOPED_TRACE(gpu.name);
    have({{"preset", gpu.name}, {"mode", std::string("address-only")}});
    EXPECT_EQ(device_properties(kZero).capacity_bytes, gpu.capacity_gib << 30);
    EXPECT_NEAR(time_of({.flops = gpu.tflops * 1e9}), 1000, 1e-3);
    EXPECT_NEAR(time_of({.flops = gpu.tflops_16 * 1e9, .rate = MathRate::kMatrix16}), 1000, 1e-3);
    EXPECT_NEAR(time_of({.bytes = gpu.memory_gb * 1e6}), 1000, 1e-3);
    driver().copy(host(), host(), 100'000, CopyKind::kPeerToPeer, {});
    EXPECT_NEAR(activity().copy_us, 100 / gpu.peer_gb, 1e-6);
    driver().synchronize();
    timeline().reset_activity();
    driver().copy(host(), host(), 100'000, CopyKind::kHostToDevice, {});
    EXPECT_NEAR(activity().copy_us, 100 / gpu.host_gb, 1e-6);
    const double before = virtual_time_us();
    kernel({}, 0);
    EXPECT_NEAR(virtual_time_us() - before, 3.8, kRounding) << "a launch";
  }
}

TEST_F(SimulatedPresets, WhatIsSaidGoesBeforeAPresetAndAllRatesReachAPart) {
  have({{"preset", std::string("a100")},
        {"mode", std::string("address-only")},
        {"tflops", 10.},
        {"host_gbs", 20.},
        {"launch_us", .5},
        {"efficiency", .5}});
  EXPECT_NEAR(time_of({.flops = 10e6}), 2, kRounding);
  EXPECT_NEAR(time_of({.flops = 312e6, .rate = MathRate::kMatrix16}), 2, kRounding);
  EXPECT_NEAR(time_of({.bytes = 2039e3}), 2, kRounding);
  driver().copy(host(), host(), 100'000, CopyKind::kDeviceToHost, {});
  EXPECT_NEAR(activity().copy_us, 10, kRounding);
  driver().synchronize();
  const double before = virtual_time_us();
  kernel({}, 0);
  EXPECT_NEAR(virtual_time_us() - before, .5, kRounding) << "a launch";
}

TEST_F(SimulatedPresets, CallsOfGpusOfWhichNothingIsKnownTakeNoTime) {
  have({{"preset", std::string("a100")}, {"mode", std::string("address-only")}});
  const double before = virtual_time_us();
  driver().memory().release(driver().memory().acquire(MiB), MiB);
  EXPECT_EQ(virtual_time_us(), before);
  have({{"preset", std::string("h200")}, {"mode", std::string("address-only")}, {"map_us_per_mib", 7.}});
  MemorySource& memory = driver().memory();
  const double then = virtual_time_us();
  void* const range = memory.reserve(4 * MiB);
  const Physical physical = memory.create(4 * MiB);
  EXPECT_EQ(virtual_time_us(), then) << "what is said is all";
  memory.map(range, 4 * MiB, physical, 0);
  EXPECT_NEAR(virtual_time_us() - then, 28, kRounding);
  memory.unmap(range, 4 * MiB);
  memory.destroy(physical, 4 * MiB);
  memory.unreserve(range, 4 * MiB);
}

TEST_F(SimulatedPresets, EachCallForPagesTakesWhatAnH100Takes) {
  have({{"preset", std::string("h200")}, {"mode", std::string("address-only")}});
  MemorySource& memory = driver().memory();
  void *address = nullptr, *range = nullptr;
  Physical physical;
  const auto us_of = [](auto&& call) {
    const double before = virtual_time_us();
    call();
    return virtual_time_us() - before;
  };
  EXPECT_NEAR(us_of([&] { address = memory.acquire(100 * MiB); }), 45 + 4, kRounding);
  EXPECT_NEAR(us_of([&] { memory.release(address, 100 * MiB); }), 36 + 45, kRounding);
  EXPECT_NEAR(us_of([&] { range = memory.reserve(100 * MiB); }), 5, kRounding);
  EXPECT_NEAR(us_of([&] { physical = memory.create(100 * MiB); }), 5 + 400, kRounding);
  EXPECT_NEAR(us_of([&] { memory.map(range, 100 * MiB, physical, 0); }), 3 + 1160, kRounding);
  EXPECT_NEAR(us_of([&] { memory.unmap(range, 100 * MiB); }), 2 + 780, kRounding);
  EXPECT_NEAR(us_of([&] { memory.destroy(physical, 100 * MiB); }), 2 + 480, kRounding);
  EXPECT_NEAR(us_of([&] { memory.unreserve(range, 100 * MiB); }), 5, kRounding);
}

TEST_F(SimulatedPresets, AnyFigureSwitchesTheModelOnAndEfficiencyAloneDoesNot) {
  for (const char* figure :
       {"tflops", "tflops_16", "memory_gbs", "peer_gbs", "host_gbs", "link_latency_us", "launch_us", "kernel_us"}) {
    have({{figure, 1.}});
    EXPECT_TRUE(device_activity(kZero).has_value()) << figure;
    const auto details = device_properties(kZero).details;
    EXPECT_EQ(details.back(), (std::pair<std::string, std::string>{"cost model", "rates of its own"})) << figure;
  }
  have({{"efficiency", .5}});
  EXPECT_FALSE(device_activity(kZero).has_value());
  have({{"preset", std::string("t4")}});
  EXPECT_EQ(device_properties(kZero).details.back().second, "t4");
  have({{"preset", std::string("none")}});
  EXPECT_FALSE(device_activity(kZero).has_value());
  expect_error<ConfigError>([] { have({{"preset", std::string("abacus")}}); }, "preset");
}

}  // namespace
}  // namespace tenon::test
