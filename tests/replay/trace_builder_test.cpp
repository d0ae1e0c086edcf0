// TraceBuilder: slots, sums, and how much it takes.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/trace/trace_builder.h>

#include <gmock/gmock.h>

#include <string>
#include <utility>

namespace tenon::replay {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

TEST(TraceBuilder, LiveBytesMayReach2To62AndNoMore) {
  TraceBuilder builder("history");
  EXPECT_FALSE(builder.would_overflow(kMost));
  EXPECT_TRUE(builder.would_overflow(kMost + 1));
  EXPECT_TRUE(builder.would_overflow(~std::uint64_t{0}));
  const std::uint32_t block = builder.allocate(100, 0);
  EXPECT_FALSE(builder.would_overflow(kMost - 100));
  EXPECT_TRUE(builder.would_overflow(kMost - 99));
  builder.free(block);
  EXPECT_FALSE(builder.would_overflow(kMost)) << "what was freed does not count";
}

TEST(TraceBuilder, TheSumOfAllRequestsStaysCountable) {
  TraceBuilder builder("history");
  builder.free(builder.allocate(kMost, 0));
  EXPECT_FALSE(builder.would_overflow(1)) << "2^62 in all";
  builder.free(builder.allocate(1, 0));
  EXPECT_TRUE(builder.would_overflow(1)) << "more than that in all";
}

TEST(TraceBuilder, ATraceThatIsDoneKeepsRoomForAQuarterMoreEventsAtMost) {
  for (const std::size_t count : {0U, 1U, 4U, 5U, 500U, 512U, 513U, 800U, 819U, 820U, 1000U}) {
    TraceBuilder builder("t");
    while (builder.trace().events.size() < count) builder.empty_cache();
    const std::size_t grown = builder.trace().events.capacity();
    EXPECT_EQ(std::move(builder).finish().events.capacity(), grown > count + count / 4 ? count : grown) << count;
  }
}

TEST(TraceBuilder, TheLastSlotThatWasFreedIsTakenFirst) {
  TraceBuilder builder("history");
  const std::uint32_t a = builder.allocate(1, 0), b = builder.allocate(2, 0), c = builder.allocate(3, 0);
  builder.free(a);
  builder.free(c);
  EXPECT_EQ(builder.allocate(4, 0), c);
  EXPECT_EQ(builder.allocate(5, 0), a);
  builder.free(b, /*deferred=*/true);
  const std::uint32_t fresh = builder.allocate(6, 0);
  EXPECT_NE(fresh, b) << "its free is not complete";
  builder.free_completed(b);
  EXPECT_EQ(builder.allocate(7, 0), b);
  const Trace trace = std::move(builder).finish();
  EXPECT_EQ(trace.slot_count, 4u);
}

TEST(TraceBuilder, ThePeakIsTheFirstTimeThatItIsReached) {
  TraceBuilder builder("folder/history.trace");
  const std::uint32_t a = builder.allocate(10, 0);  // event 0
  const std::uint32_t b = builder.allocate(20, 0);  // 1: 30 live
  builder.free(a);                                  // 2
  builder.allocate(10, 0);                          // 3: 30 again
  builder.free(b, true);                            // 4: a deferred free no longer lives
  const Trace trace = std::move(builder).finish();
  EXPECT_EQ(trace.name, "history.trace");
  EXPECT_EQ(trace.path, "folder/history.trace");
  EXPECT_EQ(trace.facts.peak_requested_bytes, 30u);
  EXPECT_EQ(trace.facts.peak_event, 1u);
  EXPECT_EQ(trace.facts.total_requested_bytes, 40u);
  EXPECT_EQ(trace.facts.max_request_bytes, 20u);
  EXPECT_EQ(trace.facts.end_live_bytes, 10u);
  EXPECT_EQ(trace.facts.allocations, 3u);
  EXPECT_EQ(trace.facts.frees, 2u);
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  EXPECT_EQ(trace.facts.events, 5u);
}

TEST(TraceBuilder, TakesAsManyStreamsAsAnEventCanName) {
  TraceBuilder builder("history");
  for (std::uint64_t stream = 0; stream < 65535; ++stream) builder.free(builder.allocate(1, stream));
  EXPECT_NO_THROW(builder.allocate(1, 65534)) << "one that is known";
  EXPECT_THROW(builder.allocate(1, 65535), TraceError);
}

TEST(TraceBuilder, WhatComesBeforeTheFirstTimeOrPurposeGetsTheOneThatIsKnown) {
  TraceBuilder builder("history");
  builder.allocate(1, 0);
  builder.at(70);
  builder.meant_for(Purpose::kGradient);
  builder.allocate(2, 0);
  builder.at(90);
  builder.allocate(3, 0);
  const Trace trace = std::move(builder).finish();
  EXPECT_THAT(trace.columns.times_us, testing::ElementsAre(70, 70, 90));
  EXPECT_THAT(trace.columns.purposes, testing::ElementsAre(Purpose::kOther, Purpose::kGradient, Purpose::kGradient));
}

}  // namespace
}  // namespace tenon::replay
