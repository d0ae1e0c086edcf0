// How devices are opened and closed: who is told, what is refused, what their allocators take over.
#include <tenon/core/error.h>
#include <tenon/device/closing.h>
#include <tenon/device/device_state.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/history/history.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using test::fake;
using test::FakeDevices;
using ::testing::ElementsAre;

std::vector<std::string> opened_in_order;

TEST(Opening, IsToldOfEachDeviceOnceWhenItCanBeUsed) {
  const FakeDevices devices;
  device_state(fake(3));
  opened_in_order.clear();
  set_device_opened([](Device device) {
    opened_in_order.push_back(device.str() + (&device_state(device) == open_devices().back() ? "" : ", not yet"));
  });
  device_state(fake(3));
  device_state(fake(1));
  device_state(fake(2));
  device_state(fake(1));
  set_device_opened(nullptr);
  device_state(fake(0));
  EXPECT_THAT(opened_in_order, ElementsAre("fake:1", "fake:2"));
  std::vector<Device> order;
  for (const DeviceState* state : open_devices()) order.push_back(state->device());
  EXPECT_THAT(order, ElementsAre(fake(3), fake(1), fake(2), fake(0)));
}

TEST(Opening, OfABackendThatGivesNothingIsAnError) {
  set_device_resolver([](Device) { return std::unique_ptr<DeviceState>(); });
  EXPECT_EQ(test::message_of([] { device_state(fake(2)); }),
            "device 'fake:2' cannot be opened: its backend returned nothing");
  EXPECT_TRUE(open_devices().empty());
  set_device_resolver(nullptr);
  EXPECT_EQ(test::message_of([] { device_state(fake(2)); }),
            "device 'fake:2' cannot be opened: no backend is loaded; load a plugin that supplies kind 'fake'");
}

TEST(Opening, OfDevicesOfOneKindKeepsThemApart) {
  const FakeDevices devices;
  const Device other{DeviceType::named("opening_other"), 1};
  DeviceState& state = device_state(fake(1));
  EXPECT_NE(&device_state(other), &state);
  EXPECT_EQ(&device_state(fake(1)), &state);
  EXPECT_EQ(device_state(other).device(), other);
  close_devices();
}

/// An allocator that says when it goes.
class Leaving final : public Allocator {
 public:
  explicit Leaving(std::string name) : name_(std::move(name)) {}
  ~Leaving() override { opened_in_order.push_back(name_); }
  Block allocate(const Request& request) override { throw OutOfMemory({.requested_bytes = request.bytes}); }
  void deallocate(const Block&, StreamRef) noexcept override {}

 private:
  const std::string name_;
};

TEST(Closing, EndsTheDeviceThatWasOpenedLastFirst) {
  const FakeDevices devices;
  opened_in_order.clear();
  for (const int index : {2, 0, 1}) {
    DeviceState& state = device_state(fake(index));
    state.swap_allocator(AllocatorStack::make(state.driver().memory(),
                                              {.policy = {.name = "leaving", .create = [=](const AllocatorContext&) {
                                                            return std::make_unique<Leaving>(std::to_string(index));
                                                          }}}));
  }
  const ClosingHandle handle([] { opened_in_order.emplace_back("told"); });
  const ClosingHandle other([] { opened_in_order.emplace_back("told too"); });
  close_devices();
  EXPECT_THAT(opened_in_order, ElementsAre("told", "told too", "1", "0", "2"));
}

TEST(AllocatorsInService, AreEachThereOnceTheCurrentOneLast) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake());
  const auto first = state.shared_allocator(), second = test::make_stack(state.driver().memory());
  EXPECT_EQ(state.swap_allocator(second), first);
  EXPECT_THAT(state.allocators(), ElementsAre(first, second));
  EXPECT_EQ(state.swap_allocator(first), second);
  EXPECT_THAT(state.allocators(), ElementsAre(second, first));
  EXPECT_EQ(state.shared_allocator(), first);
  EXPECT_EQ(test::message_of([&] { state.swap_allocator(nullptr); }), "no allocator to put in service on fake:0");
  EXPECT_EQ(state.shared_allocator(), first) << "it stays";
}

/// Refuses to hear of a limit where that is asked.
class Deaf final : public Allocator {
 public:
  Block allocate(const Request& request) override { throw OutOfMemory({.requested_bytes = request.bytes}); }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void limit_changed(std::size_t) override {
    if (is_deaf) throw Error("not now");
  }
  bool is_deaf = false;
};

TEST(AllocatorsInService, AreAllStillThereWhereOneThatComesBackIsRefused) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake());
  const auto first = state.shared_allocator();
  const auto deaf = AllocatorStack::make(
      state.driver().memory(),
      {.policy = {.name = "deaf", .create = [](const AllocatorContext&) { return std::make_unique<Deaf>(); }}});
  state.swap_allocator(deaf);
  state.swap_allocator(first);
  static_cast<Deaf&>(*deaf->outermost()).is_deaf = true;
  EXPECT_EQ(test::message_of([&] { state.swap_allocator(deaf); }), "not now");
  EXPECT_THAT(state.allocators(), ElementsAre(deaf, first));
  EXPECT_EQ(&state.allocator(), first.get());
  static_cast<Deaf&>(*deaf->outermost()).is_deaf = false;
}

TEST(AllocatorsInService, AllHaveTheDevicesLimitAlsoThoseThatCome) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake());
  const auto first = state.shared_allocator(), second = test::make_stack(state.driver().memory());
  state.swap_allocator(second);
  state.set_memory_limit(10 * MiB);
  EXPECT_EQ(state.memory_limit(), 10 * MiB);
  const auto third = test::make_stack(state.driver().memory());
  state.swap_allocator(third);
  for (const auto& one : {first, second, third}) {
    EXPECT_THROW(one->allocate({.bytes = 11 * MiB}), OutOfMemory);
    one->deallocate(one->allocate({.bytes = 9 * MiB}));
  }
  state.set_memory_limit(0);
  for (const auto& one : {first, second, third}) one->deallocate(one->allocate({.bytes = 12 * MiB}));
}

TEST(PinnedMemory, IsOneAllocatorADeviceWhoseLiveBlocksAreTheHosts) {
  const FakeDevices devices;
  DeviceState& state = device_state(fake(1));
  const auto pinned = state.pinned_host_allocator();
  EXPECT_EQ(state.pinned_host_allocator(), pinned);
  EXPECT_NE(device_state(fake(2)).pinned_host_allocator(), pinned);
  History& of_host = device_state(kCPU).history();
  of_host.keep_live();
  const Block block = pinned->allocate({.bytes = 1000});
  const std::vector<LiveBlock> live = of_host.live_blocks();
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(live[0].address, reinterpret_cast<std::uintptr_t>(block.data));
  pinned->deallocate(block);
  EXPECT_TRUE(of_host.live_blocks().empty());
  of_host.drop_live();
}

TEST(PinnedMemory, OfADeviceThatHasNoneIsAnError) {
  class WithoutPinned final : public DeviceDriver {
   public:
    DeviceProperties properties() const override { return {.name = "without"}; }
    MemorySource& memory() override { return source_; }
    void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {}
    void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}

   private:
    AddressOnlySource source_;
  };
  static WithoutPinned driver;
  set_device_resolver([](Device device) { return std::make_unique<DeviceState>(device, driver); });
  EXPECT_EQ(device_state(fake(4)).pinned_host_allocator(), nullptr);
  EXPECT_EQ(test::message_of([] { pinned_host_allocator(fake(4)); }),
            "fake:4 has no page-locked host memory: it is for devices that copy by themselves, cuda and simulated for "
            "example");
  close_devices();
  set_device_resolver(nullptr);
}

}  // namespace
}  // namespace tenon
