// Streams, events and copies between devices: what is asked of which driver, in which order. And virtual time.
#include <tenon/core/scope/scope.h>
#include <tenon/device/devices.h>
#include <tenon/device/order/peer_copy.h>
#include <tenon/device/order/stream.h>
#include <tenon/device/order/virtual_time.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

/// What its devices were asked, "0 record 3 on 5".
std::vector<std::string> asked;

/// Writes down what it is asked. Events and streams are numbered from 1 on each device.
class WrittenDriver final : public DeviceDriver, public KeepsVirtualTime {
 public:
  explicit WrittenDriver(Device device)
      : KeepsVirtualTime(device.index() == 1),
        name_(std::to_string(device.index())),
        is_asynchronous_(device.type().name() == "order_async") {}
  DeviceProperties properties() const override {
    return {.name = "written " + name_, .asynchronous = is_asynchronous_};
  }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t bytes, CopyKind kind, StreamRef stream) override {
    write("copy " + std::to_string(bytes) + (kind == CopyKind::kPeerToPeer ? " to a peer" : "") + on(stream));
  }
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  StreamRef create_stream(int priority) override {
    write("stream of priority " + std::to_string(priority));
    return {++streams_};
  }
  void destroy_stream(StreamRef stream) noexcept override { write("no stream " + std::to_string(stream.id)); }
  void synchronize(StreamRef stream) override { write("wait for stream " + std::to_string(stream.id)); }
  void synchronize() override { write("wait for all"); }
  EventRef create_event(bool timing) override {
    write(timing ? "timed event" : "event");
    return {++events_};
  }
  void destroy_event(EventRef event) noexcept override { write("no" + of(event)); }
  void record(EventRef event, StreamRef stream) override { write("record" + of(event) + on(stream)); }
  void wait(StreamRef stream, EventRef event) override { write("wait for" + of(event) + on(stream)); }
  bool query(EventRef event) override {
    write("ask" + of(event));
    return event.id == 1;
  }
  void synchronize(EventRef event) override { write("wait for" + of(event)); }
  double elapsed_ms(EventRef start, EventRef end) override {
    write("time from" + of(start) + " to" + of(end));
    return 2.5;
  }
  void queue_kernel(StreamRef, const KernelWork&) override {}
  DeviceActivity activity() override { return {.kernels = kernels_}; }
  void reset_activity() override { kernels_ = 0; }

 private:
  void write(const std::string& what) { asked.push_back(name_ + ": " + what); }
  static std::string of(EventRef event) { return " event " + std::to_string(event.id); }
  static std::string on(StreamRef stream) { return " on " + std::to_string(stream.id); }

  AddressOnlySource source_;
  const std::string name_;
  const bool is_asynchronous_;
  std::uint64_t streams_ = 0, events_ = 0;
  std::int64_t kernels_ = 7;
};

Device async(int index) { return {DeviceType::named("order_async"), static_cast<DeviceIndex>(index)}; }
Device sync(int index) { return {DeviceType::named("order_sync"), static_cast<DeviceIndex>(index)}; }

class Order : public ::testing::Test {
 protected:
  Order() {
    set_device_resolver([](Device device) {
      auto& driver = drivers().emplace_back(std::make_unique<WrittenDriver>(device));
      return std::make_unique<DeviceState>(device, *driver);
    });
    asked.clear();
  }
  ~Order() override {
    close_devices();
    set_device_resolver(nullptr);
    drivers().clear();
    asked.clear();
  }
  static std::vector<std::string> told() { return std::exchange(asked, {}); }

 private:
  static std::vector<std::unique_ptr<WrittenDriver>>& drivers() {
    static std::vector<std::unique_ptr<WrittenDriver>> all;
    return all;
  }
};

TEST_F(Order, ACopyBetweenDevicesRunsBehindTheTargetsStreamWhichGoesOnBehindIt) {
  const StreamGuard target(async(0), {5}), source(async(1), {6});
  copy_between(device_state(async(0)), nullptr, device_state(async(1)), nullptr, 77);
  EXPECT_THAT(told(), ElementsAre("0: event", "0: record event 1 on 5", "1: wait for event 1 on 6", "0: no event 1",
                                  "1: copy 77 to a peer on 6", "1: event", "1: record event 1 on 6",
                                  "0: wait for event 1 on 5", "1: no event 1"));
}

TEST_F(Order, ACopyBetweenDevicesIsTold) {
  class Listens final : public scopes::Listener {
   public:
    Listens() { scopes::add_listener(*this, scopes::kWantsKernels); }
    ~Listens() override { scopes::remove_listener(*this); }
    void copy_begins(const scopes::CopyCall& call) noexcept override {
      EXPECT_TRUE(asked.empty());
      begun.push_back(call);
    }
    void copy_ends(const scopes::CopyCall&) noexcept override { EXPECT_FALSE(asked.empty()); }
    std::vector<scopes::CopyCall> begun;
  };
  const Listens listens;
  copy_between(device_state(async(0)), nullptr, device_state(async(1)), nullptr, 77);
  ASSERT_EQ(listens.begun.size(), 1U);
  EXPECT_EQ(listens.begun[0].from, async(1));
  EXPECT_EQ(listens.begun[0].to, async(0));
  EXPECT_EQ(listens.begun[0].bytes, 77U);
}

TEST_F(Order, IsCommonToAsynchronousDevicesOfOneKind) {
  EXPECT_TRUE(have_common_order(device_state(async(0)), device_state(async(1))));
  EXPECT_TRUE(have_common_order(device_state(async(1)), device_state(async(0))));
  EXPECT_FALSE(have_common_order(device_state(sync(0)), device_state(sync(1))));
  EXPECT_FALSE(have_common_order(device_state(async(0)), device_state(sync(0))));
  EXPECT_FALSE(have_common_order(device_state(sync(0)), device_state(async(0))));
}

TEST_F(Order, AStreamIsDestroyedWithTheLastOfItsCopies) {
  std::optional<Stream> first(std::in_place, async(0), -2);
  EXPECT_THAT(told(), ElementsAre("0: stream of priority -2"));
  {
    const Stream copy = *first;
    EXPECT_TRUE(copy == *first);
    EXPECT_FALSE(copy == Stream(async(0)));
    EXPECT_FALSE(copy == Stream(async(1))) << "its number is the same";
    first.reset();
    EXPECT_THAT(told(),
                ElementsAre("0: stream of priority 0", "0: no stream 2", "1: stream of priority 0", "1: no stream 1"));
    EXPECT_EQ(copy.device(), async(0));
    EXPECT_EQ(copy.ref().id, 1U);
    copy.synchronize();
    EXPECT_THAT(told(), ElementsAre("0: wait for stream 1"));
  }
  EXPECT_THAT(told(), ElementsAre("0: no stream 1"));
}

TEST_F(Order, AStreamWaitsForWhatIsQueuedOnAnother) {
  const Stream waiting(async(0)), other(async(1));
  told();
  waiting.wait_stream(other);
  EXPECT_THAT(told(), ElementsAre("1: event", "1: record event 1 on 1", "0: wait for event 1 on 1", "1: no event 1"));
}

TEST_F(Order, AnEventIsRecordedOnTheCurrentStreamUnlessOneIsNamed) {
  {
    Event event(async(0), /*timing=*/true);
    EXPECT_EQ(event.device(), async(0));
    EXPECT_EQ(event.ref().id, 1U);
    event.record();
    {
      const StreamGuard on(async(0), {4});
      event.record();
    }
    event.record({9});
    event.block(StreamRef{3});
    event.synchronize();
    EXPECT_THAT(told(), ElementsAre("0: timed event", "0: record event 1 on 0", "0: record event 1 on 4",
                                    "0: record event 1 on 9", "0: wait for event 1 on 3", "0: wait for event 1"));
  }
  EXPECT_THAT(told(), ElementsAre("0: no event 1"));
}

TEST_F(Order, AnEventSaysWhetherItWasReachedAndHowLongAfterAnother) {
  const Event first(async(0)), second(async(0));
  EXPECT_TRUE(first.query());
  EXPECT_FALSE(second.query());
  EXPECT_EQ(first.elapsed_time(second), 2.5);
  EXPECT_THAT(told(), ElementsAre("0: event", "0: event", "0: ask event 1", "0: ask event 2",
                                  "0: time from event 1 to event 2"));
  const Stream waiting(async(1));
  waiting.wait_event(second);
  EXPECT_THAT(told(), ElementsAre("1: stream of priority 0", "1: wait for event 2 on 1"))
      << "of another device of its kind";
}

TEST_F(Order, AGuardOfAStreamIsOfItsDevice) {
  const Stream stream(async(1));
  {
    const StreamGuard on(stream);
    EXPECT_EQ(current_stream(async(1)).id, 1U);
    EXPECT_EQ(current_stream(async(0)).id, 0U);
  }
  EXPECT_EQ(current_stream(async(1)).id, 0U);
}

TEST_F(Order, AGuardWithoutAnIndexIsOfTheCurrentDevice) {
  set_current_device(async(0).type(), 1);
  {
    const StreamGuard on(Device(async(0).type()), {8});
    set_current_device(async(0).type(), 0);
    EXPECT_EQ(current_stream(async(1)).id, 8U);
    EXPECT_EQ(current_stream(Device(async(0).type())).id, 0U);
  }
  EXPECT_EQ(current_stream(async(1)).id, 0U);
}

TEST_F(Order, ADeviceIsWaitedForAndAskedWhatItIs) {
  synchronize(async(1));
  EXPECT_THAT(told(), ElementsAre("1: wait for all"));
  EXPECT_EQ(device_properties(async(1)).name, "written 1");
}

TEST_F(Order, ADeviceWithACostModelHasATimelineAndActivity) {
  test::FakeDriver plain(MiB);
  EXPECT_EQ(virtual_timeline(plain), nullptr);
  EXPECT_FALSE(device_activity(async(0)).has_value()) << "there is no cost model";
  EXPECT_EQ(device_activity(async(1))->kernels, 7);
  EXPECT_NE(virtual_timeline(device_state(async(1)).driver()), nullptr);
  EXPECT_EQ(virtual_timeline(device_state(async(0)).driver()), nullptr) << "it has none, though another one does";
  EXPECT_EQ(virtual_timeline(plain), nullptr) << "it could have none";
  EXPECT_FALSE(device_activity(async(0)).has_value());
  reset_device_activity(async(0));
  EXPECT_EQ(device_activity(async(1))->kernels, 7);
  reset_device_activity(async(1));
  EXPECT_EQ(device_activity(async(1))->kernels, 0);
}

TEST(VirtualTime, GoesOnAndIsEachThreadsOwn) {
  const double start = virtual_time_us();
  advance_virtual_time(start + 10);
  EXPECT_EQ(virtual_time_us(), start + 10);
  advance_virtual_time(start + 4);
  EXPECT_EQ(virtual_time_us(), start + 10) << "never back";
  double elsewhere = -1;
  std::thread([&] {
    elsewhere = virtual_time_us();
    advance_virtual_time(1e12);
  }).join();
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(virtual_time_us(), start + 10);
}

}  // namespace
}  // namespace tenon
