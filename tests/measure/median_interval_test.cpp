// Intervals: which order statistics they are, and how often they cover what they should.
#include <tenon/measure/statistics/median_interval.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::measure {
namespace {

std::vector<double> count_to(int last) {
  std::vector<double> values;
  for (int i = last; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(MedianInterval, IsWhatTablesOfTheSignTestSay) {
  // 20 samples: the 6th and the 15th for 95 %, the 4th and the 17th for 99 % (Conover, table A3).
  const auto at_95 = median_interval(count_to(20), 0.95);
  ASSERT_TRUE(at_95);
  EXPECT_EQ(at_95->low, 6);
  EXPECT_EQ(at_95->middle, 10.5);
  EXPECT_EQ(at_95->high, 15);
  const auto at_99 = median_interval(count_to(20), 0.99);
  ASSERT_TRUE(at_99);
  EXPECT_EQ(at_99->low, 4);
  EXPECT_EQ(at_99->high, 17);
}

TEST(MedianInterval, OfThousandsOfSamplesIsNoSinglePoint) {
  const auto interval = median_interval(count_to(2000), 0.95);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 956);  // 1000 less 1.96 standard deviations, sqrt(2000) / 2 each
  EXPECT_EQ(interval->high, 1045);
}

TEST(MedianInterval, OfTooFewSamplesThereIsNone) {
  EXPECT_EQ(samples_for(0.95), 6u);
  EXPECT_EQ(samples_for(0.99), 8u);
  EXPECT_FALSE(median_interval(count_to(5), 0.95));
  const auto six = median_interval(count_to(6), 0.95);
  ASSERT_TRUE(six);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
}

TEST(MedianInterval, CoversTheMedianOfASkewedDistributionAsOftenAsItSays) {
  std::mt19937 random(7);
  std::exponential_distribution<double> draw(1);  // its median is log 2
  int missed = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> samples(20);
    for (double& sample : samples) sample = draw(random);
    const auto interval = median_interval(samples, 0.95);
    missed += interval->low > std::log(2) || interval->high < std::log(2) ? 1 : 0;
  }
  EXPECT_LE(missed, 120);
  EXPECT_GE(missed, 30) << "an interval that is far too wide";
}

TEST(ShiftInterval, FindsAShiftBetweenSamplesThatAreNoPairs) {
  std::mt19937 random(8);
  std::normal_distribution<double> draw(100, 1);
  std::vector<double> before(20), same(20), slower(20);
  for (double& value : before) value = draw(random);
  for (double& value : same) value = draw(random);
  for (double& value : slower) value = draw(random) + 5;
  const auto none = shift_interval(before, same, 0.99);
  const auto five = shift_interval(before, slower, 0.99);
  ASSERT_TRUE(none && five);
  EXPECT_LT(none->low, 0);
  EXPECT_GT(none->high, 0);
  EXPECT_GT(five->low, 3);
  EXPECT_LT(five->high, 7);
  EXPECT_FALSE(shift_interval({1, 2}, {3, 4}, 0.95));
}

}  // namespace
}  // namespace tenon::measure
