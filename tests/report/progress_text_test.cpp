// What a progress line says.
#include <tenon/report/text/progress_text.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

TEST(ProgressText, EstimatesFromTheShareThatIsDone) {
  EXPECT_EQ(progress_text("reading a.pickle", 0.25, 5), "reading a.pickle: 25 %, 15 s left");
  EXPECT_EQ(progress_text("replaying", 1, 90), "replaying: 100 %, 0 s left");
}

TEST(ProgressText, ClaimsNothingBeforeTheSpeedIsKnown) {
  EXPECT_EQ(progress_text("replaying", 0, 5), "replaying: 0 %");
  EXPECT_EQ(progress_text("replaying", 0.5, 0.1), "replaying: 50 %");
  EXPECT_EQ(progress_text("replaying", 1.7, 0.1), "replaying: 100 %") << "a share is at most all";
}

TEST(ProgressText, OfLimitedWorkNeverExceedsTheLimit) {
  EXPECT_EQ(limited_progress_text("tuning", 3, 12), "tuning: 25 %, at most 9 s left");
  EXPECT_EQ(limited_progress_text("tuning", 20, 12), "tuning: about to end");
}

TEST(ProgressText, DurationsHaveTwoUnitsAtMost) {
  EXPECT_EQ(format_duration(8.4), "8 s");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(7500), "2 h 5 min");
}

}  // namespace
}  // namespace tenon::test
