// Figures of rows: medians with their intervals, and what kind a figure is.
#include "replay/support.h"

#include <tenon/replay/results/figure_kind.h>
#include <tenon/replay/results/median.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::replay {
namespace {

TEST(Median, IsTheMiddleOrBetweenTheTwoMiddleOnes) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 5, 3}), 4);
  EXPECT_EQ(median({1, 1, 8, 8}), 4.5);
  EXPECT_EQ(median({8, 2}), 5);
  EXPECT_EQ(median({3, 100, 2, 1, 50}), 3);
}

TEST(Median, ItsIntervalIsInsideTheSamplesAndTheSameEachTime) {
  std::vector<double> samples;
  for (int i = 0; i < 41; ++i) samples.push_back(100 + (i * 17) % 41);
  const Interval interval = bootstrap_median(samples);
  EXPECT_EQ(interval.middle, 120);
  EXPECT_GT(interval.low, 105);
  EXPECT_LT(interval.low, 118);
  EXPECT_GT(interval.high, 122);
  EXPECT_LT(interval.high, 135);
  const Interval again = bootstrap_median(samples);
  EXPECT_EQ(again.low, interval.low);
  EXPECT_EQ(again.high, interval.high);
  const Interval one = bootstrap_median({4});
  EXPECT_EQ(one.low, 4);
  EXPECT_EQ(one.high, 4);
}

TEST(FigureKind, TimesAreMeasuredAndBytesAreNot) {
  for (const char* name : {"allocate_ns.p50", "free_ns.p99", "ns_per_pair", "clock_ns", "seconds", "events_per_second",
                           "harness_seconds", "step_ms"})
    EXPECT_TRUE(is_measured(name)) << name;
  for (const char* name : {"peak_reserved_bytes", "ooms", "excess", "device_calls", "free_bytes"})
    EXPECT_FALSE(is_measured(name)) << name;
}

TEST(FigureKind, OfARowThatRanOutTheSumsOfAllEventsMeanNothing) {
  for (const char* name :
       {"ooms", "first_oom_event", "first_oom_bytes", "events", "frees", "allocations", "streams", "parameters",
        "step_ms", "harness_seconds", "allocate_ns.p50", "free_ns.p50", "ns_per_pair", "clock_ns"})
    EXPECT_FALSE(needs_completion(name)) << name;
  for (const char* name : {"peak_reserved_bytes", "excess", "seconds", "device_calls", "events_per_second"})
    EXPECT_TRUE(needs_completion(name)) << name;
}

TEST(FigureKind, ARowThatRanOutSaysWhere) {
  ReplayRow row;
  EXPECT_EQ(ran_out(row), "");
  row.ooms = 2;
  EXPECT_EQ(ran_out(row), "OOM");
  row.first_oom_event = 41;
  EXPECT_EQ(ran_out(row), "OOM at event 41");
}

}  // namespace
}  // namespace tenon::replay
