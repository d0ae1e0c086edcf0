// `tenon plugins test` on each mutant of the buddy allocator: the check that is there for the flaw fails, in words that
// say what is wrong, and what crashes or hangs ends that check alone.
#include "cli/program.h"
#include "plugin/mutants/findings.h"
#include "plugin/mutants/flaws.h"
#include "support/json.h"

#include <tenon/conformance/conformance.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Slowness is not a failure, and takes its time.
std::vector<Flaw> flaws_with_a_failure() {
  std::vector<Flaw> flaws(kFlaws.begin(), kFlaws.end());
  std::erase_if(flaws, [](const Flaw& flaw) { return flaw.name == "slow"; });
  return flaws;
}

Said kit(const Folder& folder, const std::string& flaw, std::vector<std::string> more) {
  std::vector<std::string> words = {"plugins", "test", fixture("buddy").string() + ":flaw=" + flaw};
  words.insert(words.end(), more.begin(), more.end());
  return tenon_in(folder, words);
}

/// Of the shortest history in what the kit said, which ends with the summary.
std::ptrdiff_t history_lines(const std::string& out) {
  const auto from = out.find("the shortest history that does it"), to = out.find(" passed, ", from);
  if (from == std::string::npos || to == std::string::npos) return PTRDIFF_MAX;
  return std::count(out.begin() + static_cast<std::ptrdiff_t>(from), out.begin() + static_cast<std::ptrdiff_t>(to),
                    '\n') -
         1;
}

class KitOnAMutant : public testing::TestWithParam<KitFinding> {
 protected:
  Folder folder_;
};

TEST_P(KitOnAMutant, FailsTheCheckThatIsThereForIt) {
  const Said said = kit(folder_, GetParam().flaw, {"--only", GetParam().check, "--deadline", "5"});
  EXPECT_EQ(said.code, 1) << said.out << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr(std::string("  FAILED  ") + GetParam().check), HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(Flaws, KitOnAMutant, testing::ValuesIn(kKitFindings),
                         [](const auto& param) { return std::string(param.param.flaw) + "_" + param.param.check; });

TEST(KitOnMutants, EachFlawAndEachCheckThatCanFailIsInTheTable) {
  std::set<std::string> flaws = {"none", "slow"}, checks;
  for (const KitFinding& mutant : kKitFindings) {
    flaws.insert(mutant.flaw);
    checks.insert(mutant.check);
  }
  const auto names = conformance::check_names();
  EXPECT_EQ(flaws.size(), kFlaws.size());
  EXPECT_EQ(checks, std::set<std::string>(names.begin(), names.end()));
}

/// The rows of the table in README.md, from what is tested here.
std::string table() {
  const auto found = [](const auto& findings, std::string_view flaw, auto words) {
    std::string text;
    for (const auto& finding : findings)
      if (finding.flaw == flaw) text += (text.empty() ? "" : "; ") + words(finding);
    return text.empty() ? std::string("-") : text;
  };
  std::string text;
  for (const Flaw& flaw : kFlaws) {
    const std::string kit = found(kKitFindings, flaw.name, [](const KitFinding& finding) {
      return "`" + std::string(finding.check) + "`: " + finding.words;
    });
    const std::string replay = found(kReplayFindings, flaw.name, [](const ReplayFinding& finding) {
      return (finding.is_of_exhaustion ? std::string("`--capacity ") + kSmallCapacity + "`: " : "") + finding.words;
    });
    text += "| `" + std::string(flaw.name) + "` | " + std::string(flaw.what) + " | " + kit + " | " + replay + " |\n";
  }
  return text;
}

TEST(KitOnMutants, TheTableBesideThemIsWhatIsTested) {
  const std::string page = read_bytes(TENON_SOURCE_DIR "/tests/plugin/mutants/README.md");
  EXPECT_THAT(page, HasSubstr("|---|---|---|---|\n" + table() + "\n"));
}

TEST(KitOnMutants, TheSoundOnePassesUnderEveryOptionSet) {
  const Folder folder;
  const std::string buddy = fixture("buddy").string();
  const Said said = tenon_in(folder, {"plugins", "test", buddy, buddy + ":chunk=1MiB", buddy + ":chunk=64MiB"});
  EXPECT_EQ(said.code, 0) << said.out << said.error;
}

class WholeKitOnAMutant : public testing::TestWithParam<Flaw> {};

/// The checks behind lines that begin so.
std::vector<std::string> checks_after(const std::string& out, const std::string& word) {
  std::vector<std::string> checks;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, check;
    if (line.starts_with("  " + word) && words >> first >> check) checks.push_back(check);
  }
  return checks;
}

// What else goes wrong for the same reason is told under the first failure.
TEST_P(WholeKitOnAMutant, HasOneFailureForOneCause) {
  const Folder folder;
  const Said said = kit(folder, std::string(GetParam().name), {"--deadline", "5"});
  const bool is_sound = GetParam().name == "none";
  EXPECT_EQ(said.code, is_sound ? 0 : 1);
  EXPECT_THAT(checks_after(said.out, "FAILED"), testing::SizeIs(is_sound ? 0 : 1)) << said.out;
}

INSTANTIATE_TEST_SUITE_P(Flaws, WholeKitOnAMutant, testing::ValuesIn(flaws_with_a_failure()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(KitOnMutants, WhatMayComeOfAFailureNamesIt) {
  const Folder folder;
  const Said said = kit(folder, "bytes_doubled", {"--deadline", "5"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("  FAILED  never_overlaps"),
                              HasSubstr("never_overlaps, and may come of it: the bytes of a live block"),
                              HasSubstr(" 1 failed, "), HasSubstr(" that may come of it")));
  const Said rows = kit(folder, "bytes_doubled", {"--deadline", "5", "--format", "json"});
  bool is_told = false;
  const auto document = parse_json(rows.out);
  for (const auto& row : document["rows"])
    is_told |= row["check"] == "keeps_payloads" && row["may_come_of"] == "never_overlaps";
  EXPECT_TRUE(is_told) << rows.out;
}

// A leak at the end is met by nearly every check.
TEST(KitOnMutants, OneCauseIsOneFailure) {
  const Folder folder;
  const Said said = kit(folder, "leaks_a_chunk", {});
  EXPECT_THAT(said.out, AllOf(HasSubstr(" 1 failed, "), HasSubstr("more for the same cause"),
                              HasSubstr("as in   reuses_memory"), HasSubstr("frees_all_at_the_end: after"),
                              HasSubstr("bytes were not given back to the device: 1 segment")));
}

TEST(KitOnMutants, ACrashIsShownWithItsSeedItsCallsAndItsStack) {
  const Folder folder;
  const Said said = kit(folder, "segfault", {"--only", "never_overlaps"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("in allocate("), HasSubstr("the shortest history that does it (seed 47)"),
                              HasSubstr("Buddy::misbehave"), HasSubstr("    #0 to #29 = allocate 1 bytes")));
}

// One sleeps for ever, one computes for ever.
TEST(KitOnMutants, AHangIsShownWithItsSeedItsStackAndAHandfulOfCalls) {
  const Folder folder;
  const Said asleep = kit(folder, "deadlock", {"--only", "respects_streams", "--deadline", "5"});
  EXPECT_THAT(asleep.out, AllOf(HasSubstr("deallocate("), HasSubstr("did not come back within"),
                                HasSubstr("Buddy::deallocate"), HasSubstr("it (seed 47):\n    #0 = allocate 1 bytes")));
  EXPECT_LE(history_lines(asleep.out), 10) << asleep.out;
  const Said busy = kit(folder, "spin", {"--only", "respects_streams", "--deadline", "5"});
  EXPECT_THAT(busy.out, AllOf(HasSubstr("Buddy::take_from"), HasSubstr("it (seed 47):\n    #0 = allocate 1 bytes")));
  EXPECT_LE(history_lines(busy.out), 10) << busy.out;
}

TEST(KitOnMutants, ASlowOneIsWarnedOf) {
  const Folder folder;
  const Said said = kit(folder, "slow", {"--only", "keeps_requests"});
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_THAT(said.out, AllOf(HasSubstr("warning: slow: an allocation and its free take"), HasSubstr("caching")));
}

}  // namespace
}  // namespace tenon::test
