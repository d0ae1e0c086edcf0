// What an interval of a ratio lets one say.
#include <tenon/measure/statistics/verdict.h>

#include <gtest/gtest.h>

namespace tenon::measure {
namespace {

TEST(SpeedSentence, NamesTheRangeThatTheIntervalLeaves) {
  EXPECT_EQ(speed_sentence(Interval{0.94, 0.95, 0.96}), "faster by 4 to 6 %");
  EXPECT_EQ(speed_sentence(Interval{1.042, 1.05, 1.058}), "slower by 4 to 6 %");
  EXPECT_EQ(speed_sentence(Interval{1.021, 1.022, 1.024}), "slower by 2.1 to 2.4 %");
  EXPECT_EQ(speed_sentence(Interval{3.2, 3.5, 4.1}), "3 to 4 times as slow");
  EXPECT_EQ(speed_sentence(Interval{0.1, 0.11, 0.125}), "8 to 10 times as fast");
}

TEST(SpeedSentence, SaysThatThereIsNoEvidence) {
  EXPECT_EQ(speed_sentence(Interval{0.99, 1.001, 1.02}), "no evidence of a difference (-1.0 to +2.0 %)");
  EXPECT_EQ(verdict_on(Interval{1, 1.01, 1.02}), Verdict::kNoEvidence) << "an interval that touches 1";
  EXPECT_EQ(speed_sentence(std::nullopt), "too few rounds");
}

TEST(SpeedSentence, CountsTimesBeyondTwiceAndPercentBelow) {
  EXPECT_EQ(speed_sentence(Interval{2, 2.5, 3}), "slower by 100 to 200 %");
  EXPECT_EQ(speed_sentence(Interval{2.01, 2.5, 3}), "2 to 3 times as slow");
  EXPECT_EQ(speed_sentence(Interval{0.4, 0.45, 0.5}), "faster by 50 to 60 %");
  EXPECT_EQ(speed_sentence(Interval{0.4, 0.45, 0.499}), "2.0 to 2.5 times as fast");
  EXPECT_EQ(speed_sentence(Interval{1.0501, 1.0501, 1.0501}), "slower by 5.01 to 5.01 %") << "no more digits than two";
  EXPECT_EQ(speed_sentence(Interval{0.9999, 1, 1.0001}), "no evidence of a difference (0.0 to 0.0 %)");
}

TEST(Verdict, NeedsAnIntervalThatLeavesOneOut) {
  EXPECT_EQ(verdict_on(std::nullopt), Verdict::kTooFew);
  EXPECT_EQ(verdict_on(Interval{0.9, 0.95, 0.999}), Verdict::kLess);
  EXPECT_EQ(verdict_on(Interval{0.9, 0.95, 1}), Verdict::kNoEvidence);
  EXPECT_EQ(verdict_on(Interval{1.001, 1.01, 1.02}), Verdict::kMore);
}

}  // namespace
}  // namespace tenon::measure
