// Streams and events of simulated devices as a driver has them: what waits for what, what outlives what, and what is
// refused.
#include "plugins/simulated/machine.h"
#include "support/expect_error.h"

#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::Contains;
using testing::Pair;

class SimulatedStreams : public SimulatedMachine {
 protected:
  void SetUp() override { have({{"count", std::int64_t{2}}, {"capacity", std::string("1GiB")}}); }
  static DeviceDriver& driver(const Device& device = kZero) { return device_state(device).driver(); }
  /// Holds the stream up until the promise is kept.
  static std::promise<void> hold(StreamRef stream, const Device& device = kZero) {
    std::promise<void> gate;
    driver(device).enqueue(stream, [opened = gate.get_future().share()] { opened.wait(); });
    return gate;
  }
};

TEST_F(SimulatedStreams, SynchronizingWaitsForAllOfThemOrForOne) {
  const StreamRef held = driver().create_stream(0), other = driver().create_stream(0);
  EXPECT_NE(held.id, other.id);
  EXPECT_NE(held.id, 0U) << "that one is always there";
  std::promise<void> gate = hold(held);
  bool other_ran = false, held_ran = false;
  driver().enqueue(other, [&] { other_ran = true; });
  driver().enqueue(held, [&] { held_ran = true; });
  driver().synchronize(other);
  EXPECT_TRUE(other_ran);
  const Ticket ticket = driver().memory().mark(held);
  EXPECT_FALSE(driver().memory().reached(ticket)) << "nobody waited for it";
  gate.set_value();
  driver().synchronize();
  EXPECT_TRUE(held_ran);
  EXPECT_TRUE(driver().memory().reached(ticket));
}

TEST_F(SimulatedStreams, TheMemoryWaitsForAllOfThemToo) {
  const StreamRef stream = driver().create_stream(0);
  int ran = 0;
  std::promise<void> gate = hold(stream);
  for (int i = 0; i < 10; ++i) driver().enqueue(stream, [&] { ++ran; });
  gate.set_value();
  driver().memory().synchronize();
  EXPECT_EQ(ran, 10);
  gate = hold(stream);
  driver().enqueue(stream, [&] { ++ran; });
  gate.set_value();
  driver().pinned_host_memory()->synchronize();
  EXPECT_EQ(ran, 11) << "of which pinned memory may be in use as well";
}

TEST_F(SimulatedStreams, ATicketIsForWhatWasQueuedBeforeIt) {
  MemorySource& memory = driver().memory();
  const StreamRef stream = driver().create_stream(0);
  EXPECT_TRUE(memory.reached(memory.mark(stream))) << "nothing is queued";
  std::promise<void> first = hold(stream);
  const Ticket behind_first = memory.mark(stream);
  std::promise<void> second = hold(stream);
  const Ticket behind_second = memory.mark(stream);
  first.set_value();
  memory.wait(behind_first);
  EXPECT_TRUE(memory.reached(behind_first));
  EXPECT_FALSE(memory.reached(behind_second));
  second.set_value();
  memory.wait(behind_second);
  EXPECT_TRUE(memory.reached(behind_second));
  EXPECT_TRUE(driver().pinned_host_memory()->reached(behind_second));
}

TEST_F(SimulatedStreams, WhatWorkHoldsIsGoneOnceItsTicketIsReached) {
  for (int i = 0; i < 50; ++i) {
    auto captured = std::make_shared<int>(i);
    const std::weak_ptr<int> seen = captured;
    driver().enqueue({}, [captured = std::move(captured)] {});
    driver().synchronize(StreamRef{});
    EXPECT_TRUE(seen.expired());
  }
}

TEST_F(SimulatedStreams, ADestroyedStreamHasRunToItsEndAndIsUnknown) {
  const StreamRef gone = driver().create_stream(0);
  const EventRef event = driver().create_event(false);
  bool ran = false;
  std::promise<void> gate = hold(gone);
  driver().enqueue(gone, [&] { ran = true; });
  driver().record(event, gone);
  const Ticket ticket = driver().memory().mark(gone);
  gate.set_value();
  driver().destroy_stream(gone);
  EXPECT_TRUE(ran);
  EXPECT_TRUE(driver().memory().reached(ticket));
  EXPECT_TRUE(driver().query(event));
  driver().memory().wait(ticket);
  const std::string unknown = "there is no stream " + std::to_string(gone.id) + " on this device";
  expect_error([&] { driver().enqueue(gone, [] {}); }, unknown);
  expect_error([&] { driver().record(event, gone); }, unknown);
  EXPECT_TRUE(driver().memory().reached(driver().memory().mark(gone)));
  driver().destroy_stream(gone);  // twice is once
  driver().destroy_event(event);
}

TEST_F(SimulatedStreams, TheDefaultOneCannotBeDestroyed) {
  driver().destroy_stream({});
  bool ran = false;
  driver().enqueue({}, [&] { ran = true; });
  driver().synchronize(StreamRef{});
  EXPECT_TRUE(ran);
}

TEST_F(SimulatedStreams, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  const EventRef event = driver().create_event(false);
  EXPECT_TRUE(driver().query(event));
  driver().synchronize(event);
  driver().wait({}, event);
  driver().synchronize(StreamRef{});
  driver().destroy_event(event);
}

TEST_F(SimulatedStreams, AWaitIsForWhatTheEventMeantWhenItWasAskedFor) {
  const StreamRef producer = driver().create_stream(0), consumer = driver(kOne).create_stream(0);
  const EventRef event = driver().create_event(false);
  std::promise<void> first = hold(producer);
  driver().record(event, producer);
  driver(kOne).wait(consumer, event);
  std::promise<void> second = hold(producer);
  driver().record(event, producer);  // anew, which moves nobody's wait
  EXPECT_FALSE(driver(kOne).memory().reached(driver(kOne).memory().mark(consumer)));
  first.set_value();
  driver(kOne).synchronize(consumer);
  EXPECT_FALSE(driver().query(event)) << "it means the second point now";
  second.set_value();
  driver().synchronize(event);
  EXPECT_TRUE(driver(kOne).query(event)) << "events are of all devices";
  driver().destroy_event(event);
}

TEST_F(SimulatedStreams, AStreamNeedsNotWaitForItself) {
  const StreamRef stream = driver().create_stream(0);
  const EventRef event = driver().create_event(false);
  std::promise<void> gate = hold(stream);
  driver().record(event, stream);
  const Ticket before = driver().memory().mark(stream);
  driver().wait(stream, event);
  EXPECT_EQ(driver().memory().mark(stream).value, before.value) << "nothing is queued for it";
  gate.set_value();
  driver().synchronize(stream);
  driver().wait({}, event);
  EXPECT_EQ(driver().memory().mark({}).value, 0U) << "nor for what has been reached";
  driver().destroy_event(event);
}

TEST_F(SimulatedStreams, AnEventThatDoesNotExistIsRefusedByItsNumber) {
  const EventRef gone = driver().create_event(true), there = driver().create_event(true);
  EXPECT_NE(gone.id, there.id);
  driver().destroy_event(gone);
  const std::string unknown = "there is no event " + std::to_string(gone.id);
  expect_error([&] { driver().record(gone, {}); }, unknown);
  expect_error([&] { driver().wait({}, gone); }, unknown);
  expect_error([&] { driver().query(gone); }, unknown);
  expect_error([&] { driver().synchronize(gone); }, unknown);
  expect_error([&] { driver().elapsed_ms(there, gone); }, unknown);
  driver().destroy_event(gone);
  driver().destroy_event(there);
}

TEST_F(SimulatedStreams, TimeIsMeasuredBetweenTimedEventsThatWereReached) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const EventRef start = driver().create_event(true), end = driver().create_event(true),
                 untimed = driver().create_event(false);
  const auto before = Clock::now();
  driver().record(start, {});
  driver().enqueue({}, [] {
    for (const auto begun = Clock::now(); Clock::now() - begun < std::chrono::milliseconds(5);) continue;
  });
  driver().record(end, {});
  driver().record(untimed, {});
  driver().synchronize(end);
  const double most = ms(Clock::now() - before), measured = driver().elapsed_ms(start, end);
  EXPECT_GE(measured, 5);
  EXPECT_LE(measured, most);
  EXPECT_EQ(driver().elapsed_ms(end, start), -measured);
  driver().synchronize();
  for (const auto& [from, to] : {std::pair(start, untimed), std::pair(untimed, end)})
    expect_error([&] { driver().elapsed_ms(from, to); },
                 "simulated:0: elapsed_ms needs two events that were created with timing and recorded");
  std::promise<void> gate = hold({});
  driver().record(end, {});
  for (const auto& [from, to] : {std::pair(start, end), std::pair(end, start)})
    expect_error([&] { driver().elapsed_ms(from, to); },
                 "simulated:0: elapsed_ms before both events were reached; synchronize them first");
  gate.set_value();
  driver().synchronize();
  for (const EventRef event : {start, end, untimed}) driver().destroy_event(event);
}

TEST_F(SimulatedStreams, CopiesAndFillsAreQueuedAndAKernelWaitsForItsTurn) {
  auto* const memory = static_cast<unsigned char*>(driver().memory().acquire(64));
  std::memset(memory, 1, 64);
  std::vector<unsigned char> source(64, 7);
  std::promise<void> gate = hold({});
  driver().copy(memory, source.data(), 32, CopyKind::kHostToDevice, {});
  driver().fill(memory + 32, 9, 31, {});
  driver().copy(memory + 63, memory, 1, CopyKind::kDeviceToDevice, {});
  EXPECT_EQ(memory[0], 1) << "nothing has run";
  gate.set_value();
  EXPECT_TRUE(driver().begin_kernel({})) << "there are bytes to compute on";
  EXPECT_EQ(memory[0], 7);
  EXPECT_EQ(memory[31], 7);
  EXPECT_EQ(memory[32], 9);
  EXPECT_EQ(memory[62], 9);
  EXPECT_EQ(memory[63], 7);
  driver().memory().release(memory, 64);
}

TEST_F(SimulatedStreams, AClosedDeviceHasDoneWhatWasQueued) {
  std::atomic<int> ran = 0;
  for (const StreamRef stream : {StreamRef{}, driver().create_stream(0)})
    for (int i = 0; i < 20; ++i) driver().enqueue(stream, [&] { ++ran; });
  have({});
  EXPECT_EQ(ran, 40);
}

TEST_F(SimulatedStreams, DevicesTellWhatTheyAre) {
  DeviceProperties properties = driver().properties();
  EXPECT_EQ(properties.name, "simulated, 1.00 GiB");
  EXPECT_EQ(properties.capacity_bytes, std::size_t{1} << 30);
  EXPECT_EQ(properties.compute_units, 1);
  EXPECT_TRUE(properties.host_accessible);
  EXPECT_TRUE(properties.asynchronous);
  EXPECT_TRUE(properties.computes);
  EXPECT_THAT(properties.details,
              testing::ElementsAre(Pair("memory", "backed by host memory"), Pair("virtual memory page", "2MiB")));
  EXPECT_TRUE(driver().pinned_host_memory()->traits().host_accessible);
  EXPECT_EQ(driver().pinned_host_memory()->traits().capacity_bytes, 0U) << "as much as the host has";
  have({{"capacity", std::string("0")}, {"mode", std::string("address-only")}, {"page", std::string("64KiB")}});
  properties = driver().properties();
  EXPECT_EQ(properties.name, "simulated, unlimited");
  EXPECT_FALSE(properties.host_accessible);
  EXPECT_FALSE(properties.computes);
  EXPECT_THAT(properties.details, Contains(Pair("memory", "addresses only")));
  EXPECT_THAT(properties.details, Contains(Pair("virtual memory page", "64KiB")));
  EXPECT_EQ(driver().memory().traits().page_bytes, std::size_t{64} << 10);
  EXPECT_EQ(driver().memory().traits().device, "simulated:0");
}

TEST_F(SimulatedStreams, CallsForMemoryAreCountedTogetherWhereTheyFail) {
  for (const char* mode : {"backed", "address-only"}) {
    have({{"mode", std::string(mode)}, {"fail_at", std::int64_t{2}}, {"fail_every", std::int64_t{4}}});
    MemorySource& memory = driver().memory();
    const std::size_t page = memory.traits().page_bytes, all = memory.usage().free_bytes;
    void* const first = memory.acquire(page);
    EXPECT_NE(first, nullptr);
    EXPECT_FALSE(memory.create(page)) << "the second of them";
    void* const range = memory.reserve(page);  // takes no memory
    ASSERT_NE(range, nullptr);
    const Physical third = memory.create(page);
    EXPECT_TRUE(third);
    EXPECT_EQ(memory.acquire(page), nullptr) << "every fourth";
    EXPECT_EQ(memory.usage().free_bytes, all - 2 * page);
    memory.map(range, page, third, 0);
    memory.unmap(range, page);
    memory.destroy(third, page);
    memory.unreserve(range, page);
    memory.release(first, page);
    EXPECT_EQ(memory.usage().free_bytes, all);
  }
}

}  // namespace
}  // namespace tenon::test
