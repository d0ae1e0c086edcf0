// Opening devices, current devices and streams, swapping allocators.
#include <tenon/core/error.h>
#include <tenon/device/closing.h>
#include <tenon/device/device_state.h>
#include <tenon/device/lazy_drivers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <thread>

namespace tenon {
namespace {

using test::fake;
using test::FakeDevices;
using ::testing::HasSubstr;

TEST(DeviceState, IsOpenedOnFirstUseAndOnce) {
  const FakeDevices devices;
  EXPECT_TRUE(open_devices().empty());
  DeviceState& state = device_state(fake(1));
  EXPECT_EQ(state.device(), fake(1));
  EXPECT_EQ(&device_state(fake(1)), &state);
  EXPECT_EQ(FakeDevices::opened(), 1);
  device_state(fake(0));
  EXPECT_EQ(open_devices().size(), 2u);
  close_devices();
  EXPECT_TRUE(open_devices().empty());
  device_state(fake(1));
  EXPECT_EQ(FakeDevices::opened(), 3);
}

TEST(DeviceState, ManyThreadsOpenADeviceOnce) {
  const FakeDevices devices;
  std::vector<std::thread> threads;
  std::atomic<DeviceState*> seen{nullptr};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      DeviceState* state = &device_state(fake(2));
      DeviceState* expected = nullptr;
      if (!seen.compare_exchange_strong(expected, state)) {
        EXPECT_EQ(expected, state);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakeDevices::opened(), 1);
}

TEST(DeviceState, WithoutABackendTheErrorNamesTheDeviceAndItsKind) {
  set_device_resolver(nullptr);
  try {
    device_state(fake(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("device 'fake:0' cannot be opened"));
    EXPECT_THAT(error.what(), HasSubstr("load a plugin that supplies kind 'fake'"));
  }
}

TEST(DeviceState, AnIndexOfMinusOneIsTheThreadsCurrentDevice) {
  const FakeDevices devices;
  EXPECT_EQ(set_current_device(fake().type(), 1), 0);
  EXPECT_EQ(device_state(Device(fake().type())).device(), fake(1));
  DeviceIndex elsewhere = 9;
  std::thread([&] { elsewhere = current_device(fake().type()); }).join();
  EXPECT_EQ(elsewhere, 0);
  set_current_device(fake().type(), 0);
  EXPECT_THROW(set_current_device(fake().type(), -1), Error);
  EXPECT_THROW(set_current_device(fake().type(), kMaxDevicesPerType), Error);
}

TEST(DeviceState, AnIndexOrAKindBeyondTheLastIsRefused) {
  const FakeDevices devices;
  EXPECT_EQ(device_state(fake(kMaxDevicesPerType - 1)).device(), fake(63));
  EXPECT_EQ(test::message_of([] { device_state(fake(kMaxDevicesPerType)); }),
            "no device 'fake:64': indices go from 0 to 63");
  EXPECT_EQ(test::message_of([] { set_current_device(fake().type(), kMaxDevicesPerType); }),
            "no device 'fake:64': indices go from 0 to 63");
  EXPECT_EQ(test::message_of([] {
              device_state({DeviceType(kMaxDeviceTypes), 0});
            }),
            "no device 'unknown:0': indices go from 0 to 63");
}

TEST(LazyDrivers, AreMadeOnceEachUpToTheirCount) {
  LazyDrivers<std::string> drivers("simulated");
  int made = 0;
  const auto make = [&](const std::string& name) {
    ++made;
    return std::make_unique<std::string>(name);
  };
  drivers.resize(2);
  EXPECT_EQ(drivers.get(1, make), "simulated:1");
  EXPECT_EQ(&drivers.get(1, make), &drivers.get(1, make));
  EXPECT_EQ(drivers.get(0, make), "simulated:0");
  EXPECT_EQ(made, 2);
  for (const int wrong : {-1, 2}) {
    EXPECT_EQ(
        test::message_of([&] { drivers.get(wrong, make); }),
        "there is no device simulated:" + std::to_string(wrong) + ": 2 are configured; raise device.simulated.count");
  }
  drivers.destroy_all();
  EXPECT_EQ(drivers.count(), 2);
  drivers.get(1, make);
  EXPECT_EQ(made, 3);
}

TEST(StreamGuard, SetsTheStreamOfOneDeviceOnOneThreadAndNests) {
  EXPECT_EQ(current_stream(fake(0)).id, 0u);
  {
    const StreamGuard outer(fake(0), {5});
    EXPECT_EQ(current_stream(fake(0)).id, 5u);
    EXPECT_EQ(current_stream(fake(1)).id, 0u);
    {
      const StreamGuard inner(fake(0), {6});
      const StreamGuard other(fake(1), {7});
      EXPECT_EQ(current_stream(fake(0)).id, 6u);
      EXPECT_EQ(current_stream(fake(1)).id, 7u);
    }
    EXPECT_EQ(current_stream(fake(0)).id, 5u);
    std::uint64_t elsewhere = 99;
    std::thread([&] { elsewhere = current_stream(fake(0)).id; }).join();
    EXPECT_EQ(elsewhere, 0u);
  }
  EXPECT_EQ(current_stream(fake(0)).id, 0u);
}

TEST(DeviceState, BlocksGoBackToTheAllocatorTheyCameFromAfterASwap) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake());
  const std::shared_ptr<AllocatorStack> first = state.shared_allocator();
  const Block old_block = first->allocate({.bytes = 1 * MiB});
  const auto second = test::make_stack(state.driver().memory());
  EXPECT_EQ(state.swap_allocator(second), first);
  EXPECT_EQ(&state.allocator(), second.get());
  const Block new_block = state.allocator().allocate({.bytes = 2 * MiB});
  EXPECT_EQ(first->stats().allocated_bytes.current, static_cast<std::int64_t>(1 * MiB));
  EXPECT_EQ(second->stats().allocated_bytes.current, static_cast<std::int64_t>(2 * MiB));
  first->deallocate(old_block);
  second->deallocate(new_block);
  EXPECT_EQ(first->stats().allocated_bytes.current, 0);
  EXPECT_EQ(state.swap_allocator(first), second) << "one may come back";
  EXPECT_EQ(state.allocators().size(), 2u);
  EXPECT_THROW(state.swap_allocator(nullptr), Error);
}

TEST(DeviceState, ClosingGivesAllMemoryBackToTheDevice) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake());
  state.allocator().deallocate(state.allocator().allocate({.bytes = 1 * MiB}));
  const auto& driver = *FakeDevices::drivers()[0];
  EXPECT_EQ(driver.used_bytes(), 1 * MiB);
  close_devices();
  EXPECT_EQ(driver.used_bytes(), 0u);
}

TEST(DeviceState, WhoKeepsSomethingOfADeviceIsToldBeforeItIsClosed) {
  int told = 0;
  {
    const ClosingHandle handle([&] { ++told; });
    close_devices();
    EXPECT_EQ(told, 1);
    close_devices();
    EXPECT_EQ(told, 2);
  }
  close_devices();
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace tenon
