// Counting and choosing devices, streams and events of a device that has them, and what /proc says of who uses one.
#include <tenon/core/error.h>
#include <tenon/device/device_use.h>
#include <tenon/device/devices.h>
#include <tenon/device/order/stream.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <ctime>
#include <memory>
#include <string>

namespace tenon {
namespace {

using test::fake;
using test::FakeDevices;
using ::testing::HasSubstr;

/// So many devices of every kind, for as long as it lives.
class Counted {
 public:
  explicit Counted(int count) {
    counted() = count;
    set_device_counter([](DeviceType) { return counted(); });
  }
  ~Counted() {
    set_device_counter(nullptr);
    set_current_device(fake().type(), 0);
  }

 private:
  static int& counted() {
    static int count = 0;
    return count;
  }
};

TEST(Devices, OfAKindThatNoBackendHasThereAreNoneAndNoneIsChosen) {
  set_device_counter(nullptr);
  EXPECT_EQ(device_count(fake().type()), 0);
  EXPECT_FALSE(is_available(fake().type()));
  EXPECT_EQ(test::message_of([] { set_device(fake(0)); }), "no backend is loaded that has devices of kind 'fake'");
}

TEST(Devices, TheCurrentOneIsOneThatIsThere) {
  {
    const Counted two(2);
    EXPECT_EQ(device_count(fake().type()), 2);
    EXPECT_TRUE(is_available(fake().type()));
    set_device(fake(1));
    EXPECT_EQ(current_device(fake().type()), 1);
    EXPECT_EQ(test::message_of([] { set_device(fake(2)); }),
              "no device 'fake:2' to be the current one: there are 2 of this kind");
    EXPECT_EQ(test::message_of([] { set_device(Device(fake().type())); }),
              "set_device('fake'): an index is missing, as in 'fake:0'");
    EXPECT_EQ(current_device(fake().type()), 1) << "what was refused changes nothing";
    {
      const DeviceGuard guard(fake(0));
      EXPECT_EQ(current_device(fake().type()), 0);
      EXPECT_EQ(guard.original_device(), fake(1));
    }
    EXPECT_EQ(current_device(fake().type()), 1);
  }
  const Counted one(1);
  EXPECT_EQ(test::message_of([] { set_device(fake(1)); }),
            "no device 'fake:1' to be the current one: there is 1 of this kind");
}

TEST(DeviceState, WithoutAnAllocatorHasNoneToShare) {
  test::FakeDriver driver(MiB);
  const DeviceState state(fake(5), driver);
  EXPECT_EQ(state.shared_allocator(), nullptr);
}

/// A device with streams, which do nothing until it is told.
class QueuedDriver final : public DeviceDriver {
 public:
  DeviceProperties properties() const override { return {.name = "queued"}; }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {}
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  StreamRef create_stream(int priority) override { return {static_cast<std::uint64_t>(10 + priority)}; }
  void wait(StreamRef stream, EventRef) override { waited = stream.id; }

  static bool& is_busy() {
    static bool busy = false;
    return busy;
  }
  std::uint64_t waited = 0;  ///< the stream that waits for an event

 private:
  AddressOnlySource source_{{.device = "queued", .manual_completion = is_busy()}};
};

/// Devices of kind "queued" and "fake".
class QueuedDevices {
 public:
  QueuedDevices() {
    set_device_resolver([](Device device) {
      if (device.type() == fake().type()) {
        other() = std::make_unique<test::FakeDriver>(MiB);
        return std::make_unique<DeviceState>(device, *other());
      }
      driver() = std::make_unique<QueuedDriver>();
      return std::make_unique<DeviceState>(device, *driver());
    });
  }
  ~QueuedDevices() {
    close_devices();
    set_device_resolver(nullptr);
    driver().reset();
    other().reset();
  }
  static std::unique_ptr<QueuedDriver>& driver() {
    static std::unique_ptr<QueuedDriver> made;
    return made;
  }
  static Device device() { return {DeviceType::named("queued"), 0}; }

 private:
  static std::unique_ptr<test::FakeDriver>& other() {
    static std::unique_ptr<test::FakeDriver> made;
    return made;
  }
};

TEST(Streams, AreDoneWhereTheDeviceHasReachedWhatWasQueued) {
  for (const bool is_busy : {true, false}) {
    QueuedDriver::is_busy() = is_busy;
    const QueuedDevices devices;
    EXPECT_EQ(Stream(QueuedDevices::device()).query(), !is_busy);
  }
}

TEST(Streams, WaitForEventsOfTheirOwnKindOfDeviceAlone) {
  const QueuedDevices devices;
  const Stream stream(QueuedDevices::device(), 3);
  Event(QueuedDevices::device()).block(stream);
  EXPECT_EQ(QueuedDevices::driver()->waited, 13U);
  EXPECT_THAT(test::message_of([&] { Event(fake(0)).block(stream); }),
              HasSubstr("a stream of queued:0 cannot wait for an event of fake:0: they are of two kinds"));
}

TEST(ProcessOfADevice, HasTheNameThatItGaveItselfAndATimeOfItsStart) {
  char before[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, before), 0);
  const unsigned long long start = start_of_process(::getpid());
  ASSERT_EQ(::prctl(PR_SET_NAME, "a (b) c"), 0);
  EXPECT_EQ(command_of_process(::getpid()), "a (b) c");
  EXPECT_EQ(start_of_process(::getpid()), start) << "brackets in its name are no end of it";
  ::prctl(PR_SET_NAME, before);
  std::timespec now{};
  ASSERT_EQ(::clock_gettime(CLOCK_BOOTTIME, &now), 0);
  const auto ticks =
      static_cast<unsigned long long>(now.tv_sec + 1) * static_cast<unsigned long long>(::sysconf(_SC_CLK_TCK));
  EXPECT_GT(start, 0U);
  EXPECT_LE(start, ticks);
}

TEST(ProcessOfADevice, ThatIsNotThereHasNeither) {
  EXPECT_EQ(command_of_process(-1), "");
  EXPECT_EQ(start_of_process(-1), 0U);
}

}  // namespace
}  // namespace tenon
