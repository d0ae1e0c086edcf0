// The follower of `planned`: which block of a plan a request is, near its place and far from it.
#include <planned/follower.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::planned {
namespace {

packing::Plan plan_of_sizes(const std::vector<std::uint64_t>& sizes) {
  packing::Plan plan;
  for (const std::uint64_t bytes : sizes) plan.blocks.push_back({.bytes = bytes, .size = bytes});
  return plan;
}

std::optional<std::size_t> ask(Follower& follower, std::uint64_t bytes) { return follower.follow({.bytes = bytes}); }

/// Blocks of 100, 101, … bytes.
std::vector<std::uint64_t> rising(std::size_t count) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < count; ++i) sizes.push_back(100 + i);
  return sizes;
}

TEST(Follower, OfSeveralBlocksNearByTheNearestIsTheRequest) {
  Follower follower(plan_of_sizes({1, 2, 7, 3, 4, 7, 5}), 8);
  for (const std::uint64_t bytes : {1, 2, 3}) ASSERT_TRUE(ask(follower, bytes));  // now before the fourth
  EXPECT_EQ(ask(follower, 7), 5U) << "one ahead; the other is two behind";
  EXPECT_EQ(ask(follower, 7), 2U) << "the one that is left";
  EXPECT_EQ(ask(follower, 7), std::nullopt) << "all have been served";
}

TEST(Follower, OfTwoBlocksThatAreAsNearTheEarlierIsTheRequest) {
  Follower follower(plan_of_sizes({1, 2, 7, 3, 4, 9, 7}), 8);
  for (const std::uint64_t bytes : {1, 2, 3}) ASSERT_TRUE(ask(follower, bytes));
  EXPECT_EQ(ask(follower, 7), 2U);
}

TEST(Follower, NothingBeyondTheWindowIsNearBy) {
  Follower follower(plan_of_sizes(rising(10)), 3);
  EXPECT_EQ(ask(follower, 104), std::nullopt);
  EXPECT_EQ(ask(follower, 103), 3U);
  EXPECT_EQ(ask(follower, 100), std::nullopt) << "four behind";
  EXPECT_EQ(ask(follower, 101), 1U);
}

TEST(Follower, BehindSixRequestsInARowItKnowsItsPlaceAgain) {
  Follower follower(plan_of_sizes(rising(40)), 3);
  for (std::uint64_t bytes = 120; bytes < 125; ++bytes) EXPECT_EQ(ask(follower, bytes), std::nullopt) << bytes;
  EXPECT_EQ(ask(follower, 125), 25U);
  EXPECT_EQ(ask(follower, 126), 26U);
}

}  // namespace
}  // namespace tenon::planned
