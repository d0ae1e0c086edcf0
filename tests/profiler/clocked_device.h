// A device for the profiler's tests whose clock the tests move: its streams, events and, where it has one, the
// recording of its own library. It watches over what is asked of it.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/device/order/traces_activity.h>
#include <tenon/dispatch/call.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <memory/test_policy.h>

namespace tenon::test {

/// What such a device is like, and what it does besides.
struct ClockedTraits {
  bool asynchronous = true;
  bool has_events = true;                ///< false: making one throws
  bool capturing = false;                ///< all of its streams
  std::string why_not_traced;            ///< of one that traces
  std::function<void()> during_copy;     ///< what happens meanwhile
  std::function<void()> during_kernel;   ///< likewise
  std::vector<TracedActivity> ran_else;  ///< of one that traces: what it did that nobody had queued
};

class ClockedDriver : public DeviceDriver {
 public:
  explicit ClockedDriver(ClockedTraits& traits) : traits_(traits) {}

  DeviceProperties properties() const override {
    return {.name = "clocked", .capacity_bytes = kBytes, .asynchronous = traits_.asynchronous};
  }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {
    work(7);
    if (traits_.during_copy) traits_.during_copy();
  }
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  bool capturing(StreamRef) override { return traits_.capturing; }

  EventRef create_event(bool timing) override {
    if (!traits_.has_events) throw std::runtime_error("this device has no events");
    EXPECT_TRUE(timing);
    ++events_made;
    events_[++last_event_] = {};
    return {last_event_};
  }
  void destroy_event(EventRef event) noexcept override { EXPECT_EQ(events_.erase(event.id), 1u); }
  void record(EventRef event, StreamRef stream) override { events_.at(event.id) = {.ms = now_ms, .stream = stream.id}; }
  void synchronize(EventRef event) override { events_.at(event.id).is_reached = true; }
  void synchronize(StreamRef) override {}
  void synchronize() override { ++times_waited; }
  double elapsed_ms(EventRef start, EventRef end) override {
    const Event &from = events_.at(start.id), &to = events_.at(end.id);
    EXPECT_TRUE(to.is_reached) << "asked before the stream has come there";
    EXPECT_EQ(from.stream, to.stream);
    return to.ms - from.ms;
  }
  std::size_t live_events() const { return events_.size(); }

  void begin_anew() {
    now_ms = 100;
    events_made = times_waited = 0;
  }

  /// The device is busy for so long.
  virtual void work(double ms) { now_ms += ms; }

  double now_ms = 100;
  int events_made = 0, times_waited = 0;

 protected:
  ClockedTraits& traits_;

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  struct Event {
    double ms = -1;
    std::uint64_t stream = 0;
    bool is_reached = false;
  };
  AddressOnlySource source_{{.device = "clocked", .capacity_bytes = kBytes}};
  std::map<std::uint64_t, Event> events_;
  std::uint64_t last_event_ = 0;
};

/// One whose own library records what it does.
class TracedDriver final : public ClockedDriver, public TracesActivity {
 public:
  using ClockedDriver::ClockedDriver;

  std::string start_trace() override {
    EXPECT_FALSE(is_tracing) << "begun twice";
    given_.clear();
    if (traits_.why_not_traced.empty()) is_tracing = true;
    return traits_.why_not_traced;
  }
  void begin_calls(std::uint64_t correlation) noexcept override {
    EXPECT_NE(correlation, 0u);
    EXPECT_TRUE(given_.insert(correlation).second) << "one number for two calls";
    open_.push_back(correlation);
  }
  void end_calls() noexcept override {
    ASSERT_FALSE(open_.empty()) << "nothing had begun";
    open_.pop_back();
  }
  std::vector<TracedActivity> stop_trace() override {
    EXPECT_TRUE(is_tracing);
    EXPECT_TRUE(open_.empty()) << "calls that never ended";
    is_tracing = false;
    for (TracedActivity& activity : traits_.ran_else) ran_.push_back(activity);
    return std::exchange(ran_, {});
  }
  void work(double ms) override {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    if (is_tracing)
      ran_.push_back({.name = "work",
                      .stream = 5,
                      .correlation = open_.empty() ? 0 : open_.back(),
                      .begin_ns = now,
                      .end_ns = now + static_cast<std::int64_t>(1e6 * ms)});
  }
  bool is_tracing = false;

 private:
  std::vector<std::uint64_t> open_;
  std::set<std::uint64_t> given_;
  std::vector<TracedActivity> ran_;
};

/// Devices of the kinds "clocked" and "traced" with a kernel that takes as long as it is told to. Once opened they stay
/// open, beside the host, and begin each test as new.
class ClockedDevices : public testing::Test {
 protected:
  ClockedDevices() {
    [[maybe_unused]] static const bool are_made = make();
    traits() = {};
    for (const auto& [name, driver] : drivers()) driver->begin_anew();
  }

  static Device device(const char* kind) { return {DeviceType::named(kind), 0}; }
  static ClockedDriver& driver(Device device) { return dynamic_cast<ClockedDriver&>(device_state(device).driver()); }
  /// A kernel that takes so long.
  static void run(Device device, double ms) {
    call_kernel(TENON_OP("clocked_test"), device_state(device), {}, {}, &ms);
  }
  static ClockedTraits& traits() {
    static ClockedTraits all;
    return all;
  }

 private:
  static bool make() {
    device_state(kCPU);  // by its own backend
    set_device_resolver([](Device device) {
      auto& driver = drivers()[device.str()];
      if (device.type() == DeviceType::named("traced"))
        driver = std::make_unique<TracedDriver>(traits());
      else
        driver = std::make_unique<ClockedDriver>(traits());
      auto state = std::make_unique<DeviceState>(device, *driver);
      state->swap_allocator(make_stack(driver->memory()));
      return state;
    });
    for (const char* kind : {"clocked", "traced"})
      register_kernel(DeviceType::named(kind), "clocked_test",
                      [](KernelContext& context, auto, auto, const void* attributes) {
                        dynamic_cast<ClockedDriver&>(context.driver()).work(*static_cast<const double*>(attributes));
                        if (traits().during_kernel) traits().during_kernel();
                      });
    return true;
  }
  static std::map<std::string, std::unique_ptr<ClockedDriver>>& drivers() {
    static auto* const all = new std::map<std::string, std::unique_ptr<ClockedDriver>>;  // as long as its devices
    return *all;
  }
};

}  // namespace tenon::test
