// The timeline of a simulated device, one kernel or copy after the other: when each begins, how long it takes, what the
// host waits for, and what is added up.
#include "plugins/simulated/round_rates.h"

#include <gtest/gtest.h>

#include <utility>

namespace tenon::test {
namespace {

using SimulatedTimeline = RoundRates;

TEST_F(SimulatedTimeline, AKernelTakesItsOperationsOrItsBytesWhicheverIsLonger) {
  EXPECT_NEAR(time_of({.flops = 2e6}), 2, kRounding);
  EXPECT_NEAR(time_of({.bytes = 5e5}), 5, kRounding);
  EXPECT_NEAR(time_of({.flops = 2e6, .bytes = 5e5}), 5, kRounding);
  EXPECT_NEAR(time_of({.flops = 7e6, .bytes = 5e5}), 7, kRounding);
  EXPECT_NEAR(time_of({.flops = 2e6, .rate = MathRate::kFloat64}), 4, kRounding) << "half as fast";
  EXPECT_NEAR(time_of({.flops = 2e6, .rate = MathRate::kMatrix16}), .5, kRounding);
  have_rates({{"tflops_16", 0.}});
  EXPECT_NEAR(time_of({.flops = 2e6, .rate = MathRate::kMatrix16}), 2, kRounding) << "no units of their own";
}

TEST_F(SimulatedTimeline, ARateThatIsNotSaidTakesNoTime) {
  have({{"mode", std::string("address-only")}, {"kernel_us", 3.}});
  EXPECT_NEAR(time_of({.flops = 2e6, .bytes = 5e5}), 3, kRounding) << "besides its work";
  driver().copy(host(), host(), 1000, CopyKind::kHostToDevice, {});
  EXPECT_EQ(activity().copy_us, 0);
  EXPECT_EQ(activity().copies, 1);
  driver().copy(host(), host(), 1000, CopyKind::kDeviceToDevice, {});
  EXPECT_NEAR(activity().kernel_us, 3, kRounding) << "within the device it is a kernel";
}

TEST_F(SimulatedTimeline, WhatTheDeviceDoesWithItsOwnMemoryIsAKernel) {
  driver().copy(host(), host(), 200'000, CopyKind::kDeviceToDevice, {});
  EXPECT_NEAR(activity().kernel_us, 4, kRounding) << "read and written";
  driver().fill(host(), 0, 300'000, {});
  EXPECT_NEAR(activity().kernel_us, 4 + 3, kRounding) << "written";
  EXPECT_EQ(activity().kernels, 2);
  EXPECT_EQ(activity().copies, 0);
  EXPECT_EQ(activity().flops, 0);
  EXPECT_EQ(activity().copied_bytes, 0);
  EXPECT_NEAR(until_all_is_done(), 7, kRounding);
}

TEST_F(SimulatedTimeline, CopiesOfNothingAreNoWork) {
  for (const CopyKind kind :
       {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice, CopyKind::kPeerToPeer})
    driver().copy(host(), host(), 0, kind, {});
  driver().fill(host(), 0, 0, {});
  EXPECT_EQ(activity().kernels, 0);
  EXPECT_EQ(activity().copies, 0);
}

TEST_F(SimulatedTimeline, EachLinkAndDirectionWorksBesideTheOthers) {
  const StreamRef one = driver().create_stream(0), two = driver().create_stream(0), three = driver().create_stream(0);
  copy_in(one, 10);
  copy_out(two, 20);
  copy_to_peer(three, 30);
  kernel({}, 25);
  EXPECT_NEAR(activity().copy_us, 60, kRounding);
  EXPECT_EQ(activity().copies, 3);
  EXPECT_EQ(activity().copied_bytes, 10'000 + 20'000 + 300'000);
  EXPECT_NEAR(activity().overlapped_us, 10 + 20 + 25, kRounding);
  EXPECT_NEAR(until_all_is_done(), 30, kRounding);
  copy_in(one, 10);
  copy_in(two, 10);
  EXPECT_NEAR(until_all_is_done(), 20, kRounding) << "the same one: one after the other";
  copy_out(one, 10);
  copy_out(two, 15);
  EXPECT_NEAR(until_all_is_done(), 25, kRounding);
  copy_to_peer(one, 10);
  copy_to_peer(two, 5);
  EXPECT_NEAR(until_all_is_done(), 15, kRounding);
}

TEST_F(SimulatedTimeline, AStreamsWorkIsInOrderWhateverItRunsOn) {
  const StreamRef stream = driver().create_stream(0);
  copy_in(stream, 10);
  kernel(stream, 5);
  copy_out(stream, 7);
  EXPECT_EQ(activity().overlapped_us, 0);
  EXPECT_NEAR(until_all_is_done(), 22, kRounding);
}

TEST_F(SimulatedTimeline, ALinkTakesItsLatencyBesidesAndAKernelItsOwn) {
  have_rates({{"link_latency_us", 3.}, {"kernel_us", 2.}});
  copy_in({}, 10);
  EXPECT_NEAR(activity().copy_us, 13, kRounding);
  copy_to_peer({}, 10);
  EXPECT_NEAR(activity().copy_us, 26, kRounding);
  EXPECT_NEAR(time_of({.flops = 1e6}), 3, kRounding);
  EXPECT_NEAR(time_of({}), 2, kRounding);
}

TEST_F(SimulatedTimeline, EverythingThatIsQueuedTakesTheHostALaunchAndBeginsNoSooner) {
  have_rates({{"launch_us", 4.}});
  const double before = virtual_time_us();
  kernel({}, 1);
  EXPECT_NEAR(virtual_time_us() - before, 4, kRounding);
  copy_in({}, 1);
  EXPECT_NEAR(virtual_time_us() - before, 8, kRounding);
  driver().fill(host(), 0, 100'000, {});
  EXPECT_NEAR(virtual_time_us() - before, 12, kRounding);
  driver().synchronize(StreamRef{});
  EXPECT_NEAR(virtual_time_us() - before, 12 + 1, kRounding) << "the last one began when it was queued";
  EXPECT_NEAR(activity().kernel_us + activity().copy_us, 3, kRounding);
}

/// Streams whose next work begins so many microseconds from now.
class SimulatedGaps : public SimulatedTimeline {
 protected:
  /// A stream that waits for the other device so long.
  StreamRef held(double us) {
    KeepsVirtualTime& other = timeline(kOne);
    other.queue_kernel({}, {.flops = us * 1e6});
    const EventRef then = driver(kOne).create_event(false);
    driver(kOne).record(then, {});
    driver(kOne).destroy_event(std::exchange(last_, then));
    const StreamRef stream = driver().create_stream(0);
    driver().wait(stream, then);
    return stream;
  }

 private:
  EventRef last_;
};

TEST_F(SimulatedGaps, TakeWhatFitsAndNothingElse) {
  const StreamRef late = held(10);
  kernel(late, 5);
  kernel({}, 10);
  EXPECT_NEAR(until_all_is_done(), 15, kRounding) << "from 0 to 10, as long as the gap is";
  const StreamRef later = held(10);
  kernel(later, 5);
  kernel({}, 10.5);
  EXPECT_NEAR(until_all_is_done(), 10 + 5 + 10.5, kRounding) << "behind the other one";
}

TEST_F(SimulatedGaps, AreTakenFromTheFirstOnThatIsLongEnough) {
  const StreamRef second = held(10);
  kernel(second, 5);  // 10 to 15
  const StreamRef third = driver().create_stream(0), fourth = driver().create_stream(0);
  const EventRef at_fifteen = driver().create_event(false);
  driver().record(at_fifteen, second);
  driver().wait(third, at_fifteen);
  copy_in(third, 20);  // 15 to 35
  kernel(third, 5);    // 35 to 40
  kernel(fourth, 12);  // too long for 0 to 10
  driver().synchronize(fourth);
  const double there = virtual_time_us();
  driver().synchronize();
  EXPECT_NEAR(virtual_time_us() - there, 40 - 27, kRounding) << "from 15 to 27";
  driver().destroy_event(at_fifteen);
}

TEST_F(SimulatedGaps, BehindWhichWorkIsAddedAreNotTakenTwice) {
  const StreamRef late = held(10);
  kernel(late, 5);
  const StreamRef one = driver().create_stream(0), two = driver().create_stream(0);
  kernel(one, 6);
  kernel(two, 6);  // 4 are left
  kernel({}, 4);
  EXPECT_NEAR(activity().kernel_us, 21, kRounding);
  EXPECT_NEAR(until_all_is_done(), 21, kRounding);
  EXPECT_NEAR(activity().kernel_us, 21, kRounding) << "nothing is lost or counted twice";
}

TEST_F(SimulatedTimeline, OnlyWhatRunsBesideAKernelIsHidden) {
  const StreamRef side = driver().create_stream(0), other = driver().create_stream(0);
  copy_in(side, 10);  // 0 to 10
  kernel({}, 3);      // 0 to 3
  copy_out({}, 2);    // 3 to 5, beside none
  kernel({}, 2);      // 5 to 7
  copy_out({}, 1);    // 7 to 8
  kernel({}, 9);      // 8 to 17
  copy_to_peer(other, 1);
  EXPECT_NEAR(activity().overlapped_us, 3 + 2 + 2 + 1, kRounding);
  driver().synchronize();
  EXPECT_NEAR(activity().overlapped_us, 8, kRounding) << "and when all is done";
  EXPECT_NEAR(activity().kernel_us, 14, kRounding);
  EXPECT_NEAR(activity().copy_us, 14, kRounding);
}

TEST_F(SimulatedTimeline, ActivityAddsUpOverWaits) {
  for (int round = 1; round <= 3; ++round) {
    kernel({}, 2);
    copy_in({}, 3);
    EXPECT_NEAR(activity().kernel_us, 2 * round, kRounding);
    EXPECT_NEAR(activity().copy_us, 3 * round, kRounding);
    EXPECT_EQ(activity().kernels, round);
    EXPECT_EQ(activity().flops, 2e6 * round);
    driver().synchronize();
  }
  timeline().reset_activity();
  EXPECT_EQ(activity().kernel_us + activity().copy_us + activity().flops + activity().copied_bytes, 0);
  EXPECT_EQ(activity().kernels + activity().copies, 0);
}

TEST_F(SimulatedTimeline, WhatIsStillRunningIsCountedFromAResetOnToo) {
  const StreamRef side = driver().create_stream(0);
  kernel({}, 4);
  copy_in({}, 3);
  copy_out(side, 20);
  driver().synchronize(StreamRef{});  // all but the copy on the other stream
  timeline().reset_activity();
  EXPECT_EQ(activity().kernel_us, 0);
  EXPECT_NEAR(activity().copy_us, 20, kRounding);
  EXPECT_EQ(activity().copies, 0) << "it was queued before";
}

TEST_F(SimulatedTimeline, TheHostWaitsForWhatItIsToldTo) {
  const StreamRef side = driver().create_stream(0);
  const EventRef early = driver().create_event(false);
  kernel({}, 10);
  copy_in(side, 5);
  driver().record(early, side);
  copy_in(side, 25);
  const double before = virtual_time_us();
  const auto now = [&] { return virtual_time_us() - before; };
  driver().synchronize(early);
  EXPECT_NEAR(now(), 5, kRounding) << "a point of a stream";
  driver().synchronize(StreamRef{});
  EXPECT_NEAR(now(), 10, kRounding) << "a stream";
  driver().memory().wait(driver().memory().mark(side));
  EXPECT_NEAR(now(), 30, kRounding) << "a ticket";
  kernel(side, 5);
  driver().memory().synchronize();
  EXPECT_NEAR(now(), 35, kRounding) << "all of them, for memory";
  driver().synchronize(early);
  EXPECT_NEAR(now(), 35, kRounding) << "never back";
  driver().destroy_event(early);
}

TEST_F(SimulatedTimeline, EventsMeasureVirtualTime) {
  const EventRef start = driver().create_event(true), end = driver().create_event(true);
  kernel({}, 1000);
  driver().record(start, {});
  kernel({}, 2500);
  driver().record(end, {});
  driver().synchronize(end);
  EXPECT_NEAR(driver().elapsed_ms(start, end), 2.5, kRounding);
  EXPECT_NEAR(driver().elapsed_ms(end, start), -2.5, kRounding);
  driver().record(start, {});
  driver().synchronize(start);
  EXPECT_NEAR(driver().elapsed_ms(start, end), 0, kRounding) << "recorded anew, behind the same work";
  driver().destroy_event(start);
  driver().destroy_event(end);
}

TEST_F(SimulatedTimeline, AnEventOnAStreamWithNothingToDoIsNow) {
  const EventRef start = driver().create_event(true), end = driver().create_event(true);
  kernel({}, 3);
  driver().synchronize();
  advance_virtual_time(virtual_time_us() + 7000);
  driver().record(start, {});
  advance_virtual_time(virtual_time_us() + 4000);
  driver().record(end, {});
  driver().synchronize(end);
  EXPECT_NEAR(driver().elapsed_ms(start, end), 4, kRounding);
  driver().destroy_event(start);
  driver().destroy_event(end);
}

TEST_F(SimulatedTimeline, AStreamThatWaitsForAnEventGoesOnFromThere) {
  const EventRef there = driver().create_event(false);
  const StreamRef side = driver().create_stream(0);
  driver().wait(side, there);  // never recorded: nobody is held up
  copy_out(side, 1);
  EXPECT_NEAR(until_all_is_done(), 1, kRounding);
  kernel({}, 8);
  driver().record(there, {});
  kernel({}, 8);
  copy_in(side, 20);
  driver().wait(side, there);  // long reached when the stream comes to it
  copy_in(side, 1);
  EXPECT_NEAR(until_all_is_done(), 21, kRounding);
  driver().destroy_event(there);
}

TEST_F(SimulatedTimeline, PinnedMemoryIsTheHostsAndItsCallsTakeNoTime) {
  have_rates({{"latency_us", std::int64_t{9}}});
  MemorySource& pinned = *driver().pinned_host_memory();
  const double before = virtual_time_us();
  void* const address = pinned.acquire(4096);
  static_cast<char*>(address)[4095] = 1;
  pinned.release(address, 4096);
  EXPECT_EQ(virtual_time_us(), before);
  EXPECT_EQ(pinned.traits().device, "pinned host memory of simulated:0");
  driver().memory().release(driver().memory().acquire(4096), 4096);
  EXPECT_NEAR(virtual_time_us() - before, 18, kRounding) << "those of the device do";
}

}  // namespace
}  // namespace tenon::test
