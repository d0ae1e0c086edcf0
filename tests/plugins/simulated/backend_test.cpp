// The simulated backend: devices of any capacity, asynchronous in-order streams, failures and latency on demand.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

namespace tenon {
namespace {

class Simulated : public testing::Test {
 protected:
  void TearDown() override { find_backend("simulated").shutdown(); }

  static DeviceDriver& open(const std::map<std::string, std::string>& settings, int index = 0) {
    Backend& backend = find_backend("simulated");
    Options options(backend.options());
    for (const auto& [name, value] : settings) options.set_text(name, value);
    backend.configure(options);
    return backend.device(index);
  }
};

TEST_F(Simulated, HasAsManyDevicesAsConfiguredAndSaysHowToGetMore) {
  open({{"count", "2"}, {"mode", "address-only"}}, 1);
  EXPECT_EQ(find_backend("simulated").device_count(), 2);
  try {
    find_backend("simulated").device(2);
    FAIL() << "device 2 of 2 was opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("simulated:2"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("device.simulated.count"), std::string::npos);
  }
}

TEST_F(Simulated, AddressOnlyDevicesHaveAnyCapacityAndEndThere) {
  MemorySource& memory = open({{"mode", "address-only"}, {"capacity", "80GiB"}}).memory();
  EXPECT_EQ(memory.usage().free_bytes, 80 * GiB);
  void* first = memory.acquire(79 * GiB);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(memory.usage().free_bytes, GiB);
  EXPECT_EQ(memory.acquire(2 * GiB), nullptr);
  memory.release(first, 79 * GiB);
  EXPECT_EQ(memory.usage().free_bytes, 80 * GiB);
}

TEST_F(Simulated, BackedMemoryHoldsWhatIsCopiedThere) {
  DeviceDriver& device = open({{"capacity", "64MiB"}});
  const std::string text = "carried to the device and back";
  std::string back(text.size(), '?');
  void* memory = device.memory().acquire(text.size());
  ASSERT_NE(memory, nullptr);
  device.copy(memory, text.data(), text.size(), CopyKind::kHostToDevice, {});
  device.copy(back.data(), memory, text.size(), CopyKind::kDeviceToHost, {});
  device.synchronize(StreamRef{});
  EXPECT_EQ(back, text);
  device.memory().release(memory, text.size());
}

TEST_F(Simulated, OnePhysicalPieceMappedTwiceIsTheSameMemory) {
  MemorySource& memory = open({{"capacity", "64MiB"}}).memory();
  const std::size_t page = memory.traits().page_bytes;
  char* first = static_cast<char*>(memory.reserve(2 * page));
  const Physical physical = memory.create(page);
  ASSERT_TRUE(physical);
  memory.map(first, page, physical, 0);
  memory.map(first + page, page, physical, 0);
  first[7] = 'x';
  EXPECT_EQ(first[page + 7], 'x');
  memory.unmap(first, 2 * page);
  memory.destroy(physical, page);
  memory.unreserve(first, 2 * page);
  EXPECT_EQ(memory.usage().free_bytes, 64 * MiB);
}

TEST_F(Simulated, AStreamRunsItsWorkInOrderBehindTheCallersBack) {
  DeviceDriver& device = open({});
  const StreamRef stream = device.create_stream(0);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::vector<int> order;
  device.enqueue(stream, [opened] { opened.wait(); });
  for (int i = 0; i < 100; ++i) device.enqueue(stream, [&order, i] { order.push_back(i); });
  const Ticket ticket = device.memory().mark(stream);
  EXPECT_FALSE(device.memory().reached(ticket));
  EXPECT_TRUE(device.memory().reached(device.memory().mark(StreamRef{}))) << "another stream was held up";
  gate.set_value();
  device.memory().wait(ticket);
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  device.destroy_stream(stream);
}

TEST_F(Simulated, AnEventMakesOneStreamWaitForAnother) {
  DeviceDriver& device = open({});
  const StreamRef producer = device.create_stream(0);
  const StreamRef consumer = device.create_stream(0);
  const EventRef produced = device.create_event(false);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::atomic<int> value{0};
  int seen = -1;
  device.enqueue(producer, [opened, &value] {
    opened.wait();
    value = 42;
  });
  device.record(produced, producer);
  device.wait(consumer, produced);
  device.enqueue(consumer, [&] { seen = value; });
  EXPECT_FALSE(device.query(produced));
  gate.set_value();
  device.synchronize(consumer);
  EXPECT_EQ(seen, 42);
  EXPECT_TRUE(device.query(produced));
  device.destroy_event(produced);
}

TEST_F(Simulated, TimedEventsMeasureAndRefuseWhatWasNotReached) {
  DeviceDriver& device = open({});
  const EventRef start = device.create_event(true);
  const EventRef end = device.create_event(true);
  device.record(start, {});
  EXPECT_THROW(device.elapsed_ms(start, end), Error) << "an event that was never recorded has no time";
  device.record(end, {});
  device.synchronize(end);
  EXPECT_GE(device.elapsed_ms(start, end), 0.0);
}

TEST_F(Simulated, CallsForMemoryFailWhereConfigured) {
  MemorySource& memory = open({{"mode", "address-only"}, {"fail_at", "2"}, {"fail_every", "5"}}).memory();
  std::vector<bool> served;
  for (int call = 1; call <= 10; ++call) served.push_back(memory.acquire(512) != nullptr);
  EXPECT_EQ(served, (std::vector<bool>{true, false, true, true, false, true, true, true, true, false}));
}

TEST_F(Simulated, CallsForPagesTakeAsLongAsThereArePages) {
  MemorySource& memory = open({{"mode", "address-only"},
                               {"create_us_per_mib", "1000"},
                               {"map_us_per_mib", "2000"},
                               {"unmap_us_per_mib", "3000"},
                               {"destroy_us_per_mib", "4000"}})
                             .memory();
  const auto ms_of = [](auto&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr std::size_t kBytes = 4 * MiB;
  void* const address = memory.reserve(kBytes);
  Physical physical;
  EXPECT_GE(ms_of([&] { physical = memory.create(kBytes); }), 4);
  EXPECT_GE(ms_of([&] { memory.map(address, kBytes, physical, 0); }), 8);
  EXPECT_GE(ms_of([&] { memory.unmap(address, kBytes); }), 12);
  EXPECT_GE(ms_of([&] { memory.destroy(physical, kBytes); }), 16);
  memory.unreserve(address, kBytes);
}

TEST_F(Simulated, EachCallForMemoryTakesItsLatency) {
  constexpr std::chrono::microseconds kLatency(3000);
  MemorySource& memory = open({{"mode", "address-only"}, {"latency_us", "3000"}}).memory();
  const std::size_t page = memory.traits().page_bytes;
  void *address = nullptr, *range = nullptr;
  Physical physical;
  const std::vector<std::function<void()>> calls = {
      [&] { address = memory.acquire(512); },        [&] { memory.release(address, 512); },
      [&] { range = memory.reserve(page); },         [&] { physical = memory.create(page); },
      [&] { memory.map(range, page, physical, 0); }, [&] { memory.unmap(range, page); },
      [&] { memory.destroy(physical, page); },       [&] { memory.unreserve(range, page); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto before = std::chrono::steady_clock::now();
    calls[i]();
    EXPECT_GE(std::chrono::steady_clock::now() - before, kLatency) << "call " << i;
  }
}

TEST_F(Simulated, AddressOnlyDevicesRunNoKernelAndGiveZerosToTheHost) {
  DeviceDriver& device = open({{"mode", "address-only"}});
  EXPECT_FALSE(device.properties().computes);
  EXPECT_FALSE(device.begin_kernel({}));
  void* memory = device.memory().acquire(16);
  char back[16];
  std::memset(back, 'x', sizeof back);
  device.copy(back, memory, sizeof back, CopyKind::kDeviceToHost, {});
  device.synchronize();
  for (const char byte : back) EXPECT_EQ(byte, 0);
}

TEST_F(Simulated, RefusesSettingsOutOfRangeByName) {
  try {
    open({{"count", "0"}});
    FAIL() << "no devices were accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'count'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon
