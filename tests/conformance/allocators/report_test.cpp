// What a report of the kit says: its heading, the sum of its checks, a line of each, and the speed.
#include <tenon/conformance/conformance.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::conformance {
namespace {

CheckResult result_of(const std::string& name, const std::string& failure = {}) {
  CheckResult result;
  result.name = name;
  result.promise = "what " + name + " promises";
  result.failure = failure;
  return result;
}

TEST(KitReport, IsHeadedByTheAllocatorItsOptionsAndTheSeed) {
  Report report{.allocator = "mine", .options = "chunk=1MiB", .seed = 47};
  EXPECT_EQ(report.heading(), "mine:chunk=1MiB, seed 47\n");
  report.options.clear();
  EXPECT_EQ(report.heading(), "mine, seed 47\n");
}

TEST(KitReport, CountsEachCheckOnce) {
  Report report{.allocator = "mine"};
  EXPECT_FALSE(report.passed()) << "nothing was checked";
  report.checks = {result_of("a"), result_of("b"), result_of("c")};
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.summary(), "3 passed, 0 failed\n");
  report.checks[1].not_applicable = "it has none";
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.summary(), "2 passed, 0 failed, 1 not applicable\n");
  report.checks.push_back(result_of("d", "it broke"));
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.summary(), "2 passed, 1 failed, 1 not applicable\n");
  report.checks.push_back(result_of("e", "it broke"));
  report.checks.back().may_come_of = "d";
  EXPECT_EQ(report.summary(), "2 passed, 1 failed, 1 not applicable, 1 that may come of that\n");
  report.checks.push_back(result_of("f", "it broke"));
  report.checks.back().same_as = "d";
  report.left_out = 7;
  EXPECT_EQ(report.summary(),
            "2 passed, 1 failed, 1 not applicable, 1 more for the same cause, 1 that may come of it, 7 not run\n");
}

TEST(KitReport, HasALineOfEachCheckWithTheFailureBelowTheFirstOfItsCause) {
  EXPECT_EQ(result_of("aligns").line(), "  passed  aligns                           what aligns promises\n");
  CheckResult failed = result_of("trims", "it kept 5 bytes");
  EXPECT_EQ(failed.line(), "  FAILED  trims                            what trims promises\n    it kept 5 bytes\n");
  EXPECT_TRUE(failed.is_first_of_its_cause());
  failed.same_as = "aligns";
  EXPECT_FALSE(failed.is_first_of_its_cause());
  EXPECT_EQ(failed.line(), "  as in   trims                            aligns: it kept 5 bytes\n");
  EXPECT_FALSE(result_of("aligns").is_first_of_its_cause()) << "it passed";
}

TEST(KitReport, IsAllOfThatWithWhatWasSaidMeanwhile) {
  Report report{.allocator = "mine", .seed = 3};
  report.checks = {result_of("aligns"), result_of("trims", "it died")};
  report.checks[1].said = "double free\n";
  report.speed = Speed{.pair_ns = 71, .yardstick_ns = 52, .yardstick = "caching"};
  EXPECT_EQ(report.text(),
            "mine, seed 3\n"
            "  passed  aligns                           what aligns promises\n"
            "  FAILED  trims                            what trims promises\n"
            "    it died\n"
            "double free\n"
            "1 passed, 1 failed\n"
            "speed: an allocation and its free take 71 ns; caching 52 ns (1.4 times)\n");
  report.speed->pair_ns = 30'000;
  EXPECT_NE(report.text().find("\nwarning: slow: an allocation and its free take 30 us; caching 52 ns (576.9 times)\n"),
            std::string::npos)
      << report.text();
}

TEST(KitsSpeed, IsInMicrosecondsFromTenOn) {
  EXPECT_EQ(Speed{.pair_ns = 9999}.text(), "an allocation and its free take 9999 ns");
  EXPECT_EQ(Speed{.pair_ns = 10'000}.text(), "an allocation and its free take 10 us");
  EXPECT_EQ((Speed{.pair_ns = 12'340, .yardstick_ns = 0, .yardstick = "caching"}.text()),
            "an allocation and its free take 12.34 us")
      << "of a yardstick that has no figure nothing is said";
}

TEST(KitsSpeed, IsAbsurdWhereItShowsInAnyProgramAndIsNotTheMachines) {
  EXPECT_FALSE((Speed{.pair_ns = 20'000, .yardstick_ns = 10}.is_absurd())) << "an operator takes as long";
  EXPECT_TRUE((Speed{.pair_ns = 20'001, .yardstick_ns = 10}.is_absurd()));
  EXPECT_FALSE((Speed{.pair_ns = 30'000, .yardstick_ns = 300}.is_absurd())) << "so slow a machine";
  EXPECT_TRUE((Speed{.pair_ns = 30'001, .yardstick_ns = 300}.is_absurd()));
}

}  // namespace
}  // namespace tenon::conformance
