// Estimates of memory under a bad allocator: whatever it does is told with its name, the call and the stack, and ends
// nothing but the estimate.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <csignal>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EstimateOfAMutant : public Program {
 protected:
  Said estimate(const std::string& allocator, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"run", "exp.toml", "allocator.name=" + allocator, "--dry-run"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  static std::string buddy(const std::string& flaw) { return fixture("buddy").string() + ":flaw=" + flaw; }
};

TEST_F(EstimateOfAMutant, ThatCrashesNamesPluginCallAndStackWithTheExitCodeOfTheRun) {
  const Said said = estimate(buddy("segfault"));
  EXPECT_EQ(said.code, 128 + SIGSEGV);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'buddy' ("), HasSubstr("buddy.so) crashed in allocate("),
                                HasSubstr("SIGSEGV"), HasSubstr("where it was:\n"), HasSubstr("Buddy::misbehave(")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("[allocator]"), HasSubstr("# no estimate of its memory: allocator 'buddy'")))
      << "the settings are still checked";
}

TEST_F(EstimateOfAMutant, ThatHangsEndsAtTheDeadlineWithItsName) {
  const Said said = estimate(fixture("crasher").string() + ":how=hang,after=20", {"--deadline", "1"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'crasher' ("),
                                HasSubstr("crasher.so) did not come back from allocate("), HasSubstr("within 1 s"),
                                HasSubstr("where it was:\n"), HasSubstr("Crasher::allocate(")));
}

TEST_F(EstimateOfAMutant, ThatThrowsWhatItMayNotNamesTheCall) {
  const Said said = estimate(buddy("throws_42"));
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'buddy' is disqualified: it ended allocate("),
                                HasSubstr("tenon::Error: int, which"), HasSubstr("plugins test")));
}

TEST_F(EstimateOfAMutant, ThatBreaksItsContractIsDisqualifiedBesideItsFigures) {
  const Said said = estimate(buddy("bytes_too_small"));
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: allocator 'buddy' is disqualified: it handed out "),
                                HasSubstr("bytes for a request of")));
  EXPECT_THAT(said.out, HasSubstr("# estimated peak reserved"));
}

TEST_F(EstimateOfAMutant, OfASoundOneSaysNothing) {
  const Said said = estimate(buddy("none"), {"--quiet"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.error, IsEmpty());
}

TEST_F(EstimateOfAMutant, InASweepLosesItsOwnRowAlone) {
  const Said said = tenon({"run", "exp.toml", "--sweep", "--dry-run", "--format", "json",
                           "allocator.name=[\"" + buddy("segfault") + "\", \"" + buddy("none") + "\"]"});
  EXPECT_EQ(said.code, 128 + SIGSEGV) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("cell 1: allocator 'buddy' ("), HasSubstr("crashed in allocate("),
                                Not(HasSubstr("cell 2"))));
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0]["estimated_peak_reserved_bytes"].is_null());
  EXPECT_GT(rows[1]["estimated_peak_reserved_bytes"], 0);
}

// Cells at a time are chosen by an estimate of each.
TEST_F(EstimateOfAMutant, BeforeTheCellsOfASweepHoldsNothingUp) {
  const std::string hangs = fixture("crasher").string() + ":how=hang,after=20";
  const Said said = tenon({"run", "exp.toml", "--sweep", "-j", "2", "--deadline", "1", "--out", "res", "--format",
                           "json", "allocator.name=[\"" + buddy("none") + "\", \"" + hangs + "\"]"});
  EXPECT_EQ(said.code, 1) << said.error;
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["status"], "done");
  EXPECT_EQ(rows[1]["status"], "hung");
}

}  // namespace
}  // namespace tenon::test
