// Kernels and copies of devices: by whose clock they are timed, whose they are, and what is asked of a driver for it.
#include "profiler/clocked_device.h"

#include <tenon/core/scope/scope.h>
#include <tenon/device/devices.h>
#include <tenon/ops/ops.h>
#include <tenon/profiler/profiler.h>

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {
namespace {

using profiler::Event;
using profiler::EventKind;
using profiler::Profile;
using profiler::record_function;
using profiler::Recording;

const Event& event_of(const Recording& recording, const std::string& name) {
  for (const Event& event : recording.events)
    if (event.name == name) return event;
  throw std::runtime_error("no event is called " + name);
}

std::string queued_by(const Recording& recording, std::size_t device_event) {
  const std::int64_t event = recording.device_events.at(device_event).event;
  return event == profiler::kNone ? "nobody" : recording.events.at(static_cast<std::size_t>(event)).name;
}

class DeviceClocks : public ClockedDevices {
 protected:
  const Device clocked = device("clocked"), traced = device("traced");
};

TEST_F(DeviceClocks, AKernelTakesWhatTheEventsAroundItSay) {
  Profile profile;
  profile.start();
  run(clocked, 2);
  driver(clocked).work(50);  // what lies between them is neither's
  {
    const record_function label("queues");
    run(clocked, 0.5);
  }
  profile.stop();
  const Recording& recording = profile.recording();
  ASSERT_EQ(recording.device_events.size(), 2u);
  EXPECT_DOUBLE_EQ(recording.device_events[0].duration_us, 2000);
  EXPECT_DOUBLE_EQ(recording.device_events[1].duration_us, 500);
  EXPECT_EQ(recording.device_events[0].name, "clocked_test");
  EXPECT_FALSE(recording.device_events[0].is_virtual);
  EXPECT_EQ(queued_by(recording, 0), "nobody");
  EXPECT_EQ(queued_by(recording, 1), "queues");
  EXPECT_DOUBLE_EQ(event_of(recording, "queues").self_device_us, 500);
  EXPECT_EQ(recording.device_kind, "CLOCKED");
}

TEST_F(DeviceClocks, AKernelBeginsWhenItIsQueuedAndTheOneBeforeItOnItsStreamHasEnded) {
  Profile profile;
  profile.start();
  run(clocked, 1e6);
  run(clocked, 1);
  {
    const StreamGuard other(clocked, StreamRef{3});
    run(clocked, 1);
  }
  profile.stop();
  const auto& events = profile.recording().device_events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_DOUBLE_EQ(events[1].start_us, events[0].start_us + events[0].duration_us);
  EXPECT_EQ(events[2].stream, 3u);
  EXPECT_LT(events[2].start_us, events[1].start_us) << "another stream waits for nobody";
  EXPECT_GE(events[2].start_us, events[0].start_us);
}

TEST_F(DeviceClocks, EveryEventIsGivenBack) {
  {
    Profile profile;
    profile.start();
    for (int i = 0; i < 3; ++i) run(clocked, 1);
    profile.stop();
    EXPECT_EQ(driver(clocked).events_made, 6);
    EXPECT_EQ(driver(clocked).live_events(), 0u);
  }
  {
    Profile given_up;
    given_up.start();
    run(clocked, 1);
  }
  EXPECT_EQ(driver(clocked).events_made, 8);
  EXPECT_EQ(driver(clocked).live_events(), 0u) << "of a recording that nobody ended, too";
}

TEST_F(DeviceClocks, WhileItsStreamIsCapturedAKernelHasNoEvents) {
  traits().capturing = true;
  Profile profile;
  profile.start();
  run(clocked, 1);
  profile.stop();
  EXPECT_EQ(driver(clocked).events_made, 0);
  ASSERT_EQ(profile.recording().device_events.size(), 1u);
}

TEST_F(DeviceClocks, OfADeviceThatWorksAtOnceAKernelTakesTheHostsTime) {
  traits().asynchronous = false;
  Profile profile;
  profile.start();
  {
    const record_function label("queues");
    run(clocked, 1e9);
  }
  profile.stop();
  EXPECT_EQ(driver(clocked).events_made, 0);
  const Recording& recording = profile.recording();
  ASSERT_EQ(recording.device_events.size(), 1u);
  const Event& label = event_of(recording, "queues");
  const auto& kernel = recording.device_events[0];
  EXPECT_GT(kernel.duration_us, 0);
  EXPECT_GE(kernel.start_us * 1000, static_cast<double>(label.start_ns));
  EXPECT_LE((kernel.start_us + kernel.duration_us) * 1000, static_cast<double>(label.end_ns) + 1000);
}

TEST_F(DeviceClocks, WhereNoEventCanBeMadeTheProgramGoesOnUntimed) {
  traits().has_events = false;
  Profile profile;
  profile.start();
  run(clocked, 1);
  profile.stop();
  EXPECT_TRUE(profile.recording().device_events.empty());
  EXPECT_DOUBLE_EQ(driver(clocked).now_ms, 101) << "it ran";
}

TEST_F(DeviceClocks, NothingOfADeviceIsRecordedWhereItIsNotWanted) {
  const Tensor host = zeros({4});
  for (const bool flops : {false, true}) {
    Profile profile({.device = false, .with_flops = flops});
    profile.start();
    run(clocked, 1);
    run(traced, 1);
    host.to(clocked);
    host.to(traced);
    profile.stop();
    EXPECT_TRUE(profile.recording().device_events.empty());
    for (const Event& event : profile.recording().events) EXPECT_NE(event.kind, EventKind::kCopy) << event.name;
    EXPECT_EQ(driver(clocked).events_made, 0);
    EXPECT_FALSE(dynamic_cast<TracedDriver&>(driver(traced)).is_tracing);
  }
}

TEST_F(DeviceClocks, OperationsAreCountedWhetherOrNotTheDeviceIsWanted) {
  const Tensor a = ones({2, 3}), b = ones({3, 4});
  for (const bool device : {false, true}) {
    Profile profile({.device = device, .with_flops = true});
    profile.start();
    a.mm(b);
    profile.stop();
    EXPECT_EQ(profile.key_averages().find("aten::mm")->flops, 48);
  }
}

TEST_F(DeviceClocks, ACopyIsAnEventThatEndsWithTheCopy) {
  const Tensor host = zeros({4});
  Profile profile;
  profile.start();
  {
    const record_function label("moves");
    const Tensor there = host.to(clocked);
    const record_function behind("behind");
    there.to(kCPU);
  }
  profile.stop();
  const Recording& recording = profile.recording();
  const Event &to = event_of(recording, "Memcpy Host -> Device"), &from = event_of(recording, "Memcpy Device -> Host");
  const Event &behind = event_of(recording, "behind"), &label = event_of(recording, "moves");
  EXPECT_EQ(to.kind, EventKind::kCopy);
  EXPECT_EQ(to.shapes, "") << "it has no operands";
  EXPECT_EQ(from.kind, EventKind::kCopy);
  EXPECT_LE(to.end_ns, behind.start_ns);
  EXPECT_GE(to.start_ns, label.start_ns);
  EXPECT_LE(from.end_ns, behind.end_ns);
  EXPECT_EQ(&recording.events[static_cast<std::size_t>(behind.parent)], &label) << "the copy is over by then";
  EXPECT_TRUE(recording.device_events.empty()) << "the host's time is all that is known of it";
}

TEST_F(DeviceClocks, ACopyThatHadBegunBeforeTheRecordingEndsNothingInIt) {
  const Tensor host = zeros({4});
  Profile profile;
  std::optional<record_function> label;
  traits().during_copy = [&] {
    profile.start();
    label.emplace("meanwhile");
  };
  host.to(clocked);
  traits().during_copy = nullptr;
  { const record_function inside("inside"); }
  label.reset();
  profile.stop();
  const Recording& recording = profile.recording();
  const Event &inside = event_of(recording, "inside"), &around = event_of(recording, "meanwhile");
  EXPECT_EQ(&recording.events[static_cast<std::size_t>(inside.parent)], &around);
  EXPECT_GE(around.end_ns, inside.end_ns);
}

TEST_F(DeviceClocks, ACopyInAPauseIsNotThere) {
  const Tensor host = zeros({4});
  Profile profile;
  profile.start();
  run(traced, 1);  // its trace goes on meanwhile
  profile.pause();
  host.to(clocked);
  host.to(traced);
  run(clocked, 1);
  run(traced, 1);
  profile.resume();
  profile.stop();
  EXPECT_TRUE(profile.recording().events.empty());
  EXPECT_EQ(profile.recording().device_events.size(), 1u) << "the one before it";
}

TEST_F(DeviceClocks, ADeviceThatTracesSaysItselfWhenItDidWhat) {
  Profile profile;
  profile.start();
  {
    const record_function label("queues");
    run(traced, 3);
    run(traced, 0.25);
  }
  profile.stop();
  const Recording& recording = profile.recording();
  ASSERT_EQ(recording.device_events.size(), 2u);
  EXPECT_DOUBLE_EQ(recording.device_events[0].duration_us, 3000);
  EXPECT_DOUBLE_EQ(recording.device_events[1].duration_us, 250);
  EXPECT_EQ(recording.device_events[0].name, "work");
  EXPECT_EQ(recording.device_events[0].stream, 5u);
  EXPECT_EQ(queued_by(recording, 1), "queues");
  const Event& label = event_of(recording, "queues");
  EXPECT_DOUBLE_EQ(label.self_device_us, 3250);
  for (const auto& ran : recording.device_events) {
    EXPECT_GE(ran.start_us * 1000, static_cast<double>(label.start_ns)) << "on the recording's clock";
    EXPECT_LE(ran.start_us * 1000, static_cast<double>(label.end_ns));
  }
  EXPECT_EQ(driver(traced).events_made, 0) << "events are for devices that do not trace";
  EXPECT_GE(driver(traced).times_waited, 1) << "what is queued is done before the device is asked";
  EXPECT_EQ(recording.why_not_traced, "");
}

TEST_F(DeviceClocks, ACopyOfADeviceThatTracesIsTheDevicesToo) {
  const Tensor host = zeros({4});
  Profile profile;
  profile.start();
  const Tensor there = host.to(traced);
  there.to(kCPU);
  profile.stop();
  const Recording& recording = profile.recording();
  ASSERT_EQ(recording.device_events.size(), 2u);
  EXPECT_EQ(queued_by(recording, 0), "Memcpy Host -> Device");
  EXPECT_EQ(queued_by(recording, 1), "Memcpy Device -> Host");
  EXPECT_DOUBLE_EQ(recording.device_events[0].duration_us, 7000);
}

TEST_F(DeviceClocks, WhatADeviceDidUnaskedIsNobodysAndInAPauseNotShown) {
  Profile profile;
  const auto ran_now = [&](const char* name) {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    traits().ran_else.push_back({.name = name, .stream = 9, .begin_ns = now, .end_ns = now + 2000});
  };
  profile.start();
  run(traced, 1);
  ran_now("first");
  profile.pause();
  ran_now("paused");
  profile.resume();
  ran_now("second");
  profile.pause();
  ran_now("paused again");
  profile.stop();
  const Recording& recording = profile.recording();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < recording.device_events.size(); ++i) {
    if (recording.device_events[i].stream != 9) continue;
    names.push_back(recording.device_events[i].name);
    EXPECT_EQ(queued_by(recording, i), "nobody");
    EXPECT_DOUBLE_EQ(recording.device_events[i].duration_us, 2);
  }
  EXPECT_THAT(names, testing::ElementsAre("first", "second"));
}

TEST_F(DeviceClocks, WhatADeviceTracedLiesAsFarApartAsItSays) {
  Profile profile;
  profile.start();
  run(traced, 1);
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  for (const std::int64_t later_ns : {0, 5'000'500})
    traits().ran_else.push_back({.name = "ran", .stream = 9, .begin_ns = now + later_ns, .end_ns = now + later_ns + 1});
  profile.stop();
  std::vector<double> starts;
  for (const auto& ran : profile.recording().device_events)
    if (ran.stream == 9) starts.push_back(ran.start_us);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_NEAR(starts[1] - starts[0], 5000.5, 1e-3);
}

TEST_F(DeviceClocks, AKernelInAKernelIsTheInnersAlone) {
  Profile profile;
  profile.start();
  int depth = 0;
  traits().during_kernel = [&] {
    if (depth++ == 0) run(traced, 2);
  };
  run(traced, 1);
  profile.stop();
  ASSERT_EQ(profile.recording().device_events.size(), 2u);
  EXPECT_DOUBLE_EQ(profile.recording().device_events[0].duration_us, 1000);
  EXPECT_DOUBLE_EQ(profile.recording().device_events[1].duration_us, 2000);
}

TEST_F(DeviceClocks, ThreadsHaveADeviceTracedOnce) {
  Profile profile;
  profile.start();
  std::thread other([&] { run(traced, 1); });
  other.join();
  run(traced, 1);
  profile.stop();
  EXPECT_EQ(profile.recording().device_events.size(), 2u);
}

TEST_F(DeviceClocks, ADeviceThatCannotBeTracedIsTimedByEventsAndSaysWhy) {
  traits().why_not_traced = "not permitted";
  Profile profile;
  profile.start();
  run(traced, 2);
  zeros({4}).to(traced);
  profile.stop();
  EXPECT_EQ(profile.recording().why_not_traced, "not permitted");
  ASSERT_EQ(profile.recording().device_events.size(), 1u);
  EXPECT_GT(driver(traced).events_made, 0);
  EXPECT_EQ(driver(traced).live_events(), 0u);
}

TEST_F(DeviceClocks, ARecordingThatIsGivenUpEndsTheTrace) {
  {
    Profile profile;
    profile.start();
    run(traced, 1);
    EXPECT_TRUE(dynamic_cast<TracedDriver&>(driver(traced)).is_tracing);
  }
  EXPECT_FALSE(dynamic_cast<TracedDriver&>(driver(traced)).is_tracing);
}

TEST_F(DeviceClocks, AnEventsTotalsAreItsOwnAndThoseOfTheEventsInside) {
  Profile profile({.profile_memory = true});
  profile.start();
  {
    const record_function outer("outer");
    run(clocked, 1);
    Tensor kept;
    {
      const record_function inner("inner");
      run(clocked, 2);
      kept = empty({16}, TensorOptions(clocked));
    }
    kept.reset();
  }
  profile.stop();
  const Event &outer = event_of(profile.recording(), "outer"), &inner = event_of(profile.recording(), "inner");
  EXPECT_DOUBLE_EQ(inner.device_us, 2000);
  EXPECT_DOUBLE_EQ(outer.self_device_us, 1000);
  EXPECT_DOUBLE_EQ(outer.device_us, 3000);
  EXPECT_EQ(inner.device_bytes, 64);
  EXPECT_EQ(outer.self_device_bytes, -64);
  EXPECT_EQ(outer.device_bytes, 0);
  EXPECT_EQ(outer.cpu_bytes, 0);
}

TEST_F(DeviceClocks, TheKindOfDeviceIsNamedWhereThereIsOneAndNeverTheHosts) {
  const auto kind_of = [&](const std::function<void()>& program) {
    Profile profile({.profile_memory = true});
    profile.start();
    program();
    profile.stop();
    return profile.recording().device_kind;
  };
  EXPECT_EQ(kind_of([] { ones({4}); }), "");
  EXPECT_EQ(kind_of([&] { empty({4}, TensorOptions(clocked)); }), "CLOCKED") << "of memory alone, too";
  EXPECT_EQ(kind_of([] { empty({4}, TensorOptions(device("a2z"))); }), "A2Z");
  EXPECT_EQ(kind_of([&] { run(clocked, 1), run(traced, 1); }), "DEVICE") << "of several";
}

}  // namespace
}  // namespace tenon::test
