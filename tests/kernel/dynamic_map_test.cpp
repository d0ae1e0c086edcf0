// The dynamic map of quantized states, from its description: decades of which each is cut twice as finely.
#include <tenon/kernel/dynamic_map.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::test {
namespace {

/// The middles of the shares of 0.1 to 1 in seven decades, rising; `first` fractions in the smallest.
std::vector<double> middles(int first) {
  std::vector<double> all;
  for (int i = 0; i < 7; ++i) {
    const int fractions = first << i;
    const double decade = std::pow(10.0, i - 6), share = 0.9 / fractions;
    for (int k = 0; k < fractions; ++k) all.push_back(decade * (0.1 + share * k + share / 2));
  }
  return all;
}

TEST(DynamicMap, WithASignHas127NumbersOnEachSideOfZeroAndOne) {
  const auto map = dynamic_map(/*is_signed=*/true);
  const std::vector<double> above = middles(1);
  ASSERT_EQ(map.size(), 256u);
  ASSERT_EQ(above.size(), 127u);
  EXPECT_EQ(map[127], 0);
  for (std::size_t i = 0; i < above.size(); ++i) {
    EXPECT_FLOAT_EQ(map[128 + i], static_cast<float>(above[i]));
    EXPECT_EQ(map[126 - i], -map[128 + i]);
  }
  EXPECT_EQ(map[255], 1);
}

TEST(DynamicMap, WithoutASignHas254NumbersBetweenZeroAndOne) {
  const auto map = dynamic_map(/*is_signed=*/false);
  const std::vector<double> above = middles(2);
  ASSERT_EQ(above.size(), 254u);
  EXPECT_EQ(map[0], 0);
  for (std::size_t i = 0; i < above.size(); ++i) EXPECT_FLOAT_EQ(map[1 + i], static_cast<float>(above[i]));
  EXPECT_EQ(map[255], 1);
}

TEST(DynamicMap, RisesAndStaysWithinOne) {
  for (const bool is_signed : {false, true}) {
    const auto map = dynamic_map(is_signed);
    for (std::size_t k = 1; k < map.size(); ++k) ASSERT_LT(map[k - 1], map[k]) << k;
    EXPECT_GE(map[0], -1);
  }
}

TEST(DynamicThresholds, AreWhereTheNextNumberOfTheMapIsNearer) {
  for (const bool is_signed : {false, true}) {
    const auto map = dynamic_map(is_signed);
    const auto thresholds = dynamic_thresholds(is_signed);
    ASSERT_EQ(thresholds.size(), map.size());
    EXPECT_LT(thresholds[0], -1) << "below all";
    for (std::size_t k = 1; k < map.size(); ++k)
      ASSERT_FLOAT_EQ(thresholds[k], map[k - 1] + (map[k] - map[k - 1]) / 2) << k;
    // What is looked up by them is what a search through the whole map finds.
    for (int i = -1000; i <= 1000; ++i) {
      const float x = static_cast<float>(i) / 1000;
      const auto code = std::upper_bound(thresholds.begin(), thresholds.end(), x) - thresholds.begin() - 1;
      float nearest = 9;
      for (const float number : map) nearest = std::min(nearest, std::abs(number - x));
      ASSERT_GE(code, 0);
      ASSERT_NEAR(std::abs(map[static_cast<std::size_t>(code)] - x), nearest, 1e-7) << x;
    }
  }
}

}  // namespace
}  // namespace tenon::test
