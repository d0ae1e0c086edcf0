// Deadlines of processes that are waited for.
#include <tenon/core/process/waited_time.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

using namespace std::chrono_literals;

TEST(WaitedTime, IsTheSumOfTheTicks) {
  const WaitedTime::Clock::time_point start{};
  WaitedTime waited(start);
  EXPECT_DOUBLE_EQ(waited.lap(start + 50ms), 0.05);
  EXPECT_DOUBLE_EQ(waited.lap(start + 150ms), 0.1);
  EXPECT_DOUBLE_EQ(waited.seconds(), 0.15);
}

TEST(WaitedTime, AnHourForWhichTheProcessWasStoppedCountsAsOneLongTick) {
  const WaitedTime::Clock::time_point start{};
  WaitedTime waited(start);
  waited.lap(start + 50ms);
  EXPECT_DOUBLE_EQ(waited.lap(start + 1h), WaitedTime::kLongestTickSeconds);
  waited.lap(start + 1h + 50ms);
  EXPECT_DOUBLE_EQ(waited.seconds(), 0.1 + WaitedTime::kLongestTickSeconds);
}

}  // namespace
}  // namespace tenon
