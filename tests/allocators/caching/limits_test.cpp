// The share of a device that a process may reserve, and the host's ceiling beside it.
#include <caching/limits.h>

#include <gtest/gtest.h>

namespace tenon::caching {
namespace {

TEST(CachingLimits, AShareIsRoundedAsTheReleaseOfPyTorchRoundsIt) {
  Limits now(Settings{});
  now.set_fraction(0.5, 1001);
  EXPECT_TRUE(now.allows(501));
  EXPECT_FALSE(now.allows(502));
  Limits old(Settings{.compat = Compat::k1_13});
  old.set_fraction(0.5, 1001);
  EXPECT_TRUE(old.allows(500));
  EXPECT_FALSE(old.allows(501));
}

TEST(CachingLimits, TheWholeIsNoLimitButIn113) {
  Limits now(Settings{});
  now.set_fraction(0.5, 1000);
  now.set_fraction(1, 1000);
  EXPECT_TRUE(now.allows(1001));
  Limits old(Settings{.compat = Compat::k1_13});
  old.set_fraction(1, 1000);
  EXPECT_TRUE(old.allows(1000));
  EXPECT_FALSE(old.allows(1001));
}

TEST(CachingLimits, TheLowerOfTheShareAndTheHostsCeilingCounts) {
  Limits limits(Settings{});
  limits.set_fraction(0.5, 1000);
  limits.set_host_limit(400);
  EXPECT_FALSE(limits.allows(401));
  limits.set_host_limit(600);
  EXPECT_FALSE(limits.allows(501));
  limits.set_fraction(1, 1000);
  EXPECT_TRUE(limits.allows(600));
  EXPECT_FALSE(limits.allows(601));
  limits.set_host_limit(0);
  EXPECT_TRUE(limits.allows(5000));
}

TEST(CachingLimits, AShareOfADeviceOfUnknownSizeIsNone) {
  Limits limits(Settings{});
  limits.set_fraction(0.5, 0);
  EXPECT_TRUE(limits.allows(std::size_t{1} << 50));
}

TEST(CachingLimits, GarbageIsCollectedBeyondItsShareOfTheLimitAndNeverWithoutOne) {
  Limits limits(Settings{.garbage_collection_threshold = 0.8});
  EXPECT_FALSE(limits.collects_garbage());
  limits.set_host_limit(1000);
  EXPECT_TRUE(limits.collects_garbage());
  EXPECT_EQ(limits.garbage_limit_bytes(), 800u);
  limits.set_host_limit(0);
  EXPECT_FALSE(limits.collects_garbage());
  Limits none(Settings{});
  none.set_host_limit(1000);
  EXPECT_FALSE(none.collects_garbage());
}

}  // namespace
}  // namespace tenon::caching
