// `tenon plugins test` on each mutant of the buddy allocator: the check that is there for the flaw fails, in words that
// say what is wrong, and what crashes or hangs ends that check alone.
#include "cli/program.h"
#include "plugin/mutants/flaws.h"

#include <tenon/conformance/conformance.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Mutant {
  const char* flaw;
  const char* check;
  const char* words;  ///< in the failure
};

constexpr Mutant kMutants[] = {
    {"shifted_overlap", "never_overlaps", "overlaps the live block ["},
    {"rare_double", "never_overlaps", "overlaps the live block ["},
    {"wrong_merge", "never_overlaps", "overlaps the live block ["},
    {"double_free_elsewhere", "takes_frees_from_other_threads", "overlaps a live one"},
    {"double_free_elsewhere", "survives_dying_threads", "overlaps a live one"},
    {"misaligned", "aligns", "at an alignment of 64"},
    {"ignores_record_use", "respects_streams", "has not got there yet"},
    {"ignores_last_use", "respects_streams", "has not got there yet"},
    {"shared_stream_lists", "respects_streams", "has not got there yet"},
    {"no_sync_before_release", "respects_streams", "went back to the device while stream"},
    {"leaks_a_chunk", "frees_all_at_the_end", "bytes were not given back"},
    {"wrong_release_size", "gives_back_what_it_took", "it was acquired with"},
    {"double_release", "gives_back_what_it_took", "never acquired, or released before"},
    {"bytes_too_small", "serves_every_size", "gave a block of"},
    {"bytes_doubled", "never_overlaps", "overlaps the live block ["},
    {"bytes_doubled", "counts", "were taken from the device"},
    {"drops_request", "keeps_requests", "request.bytes = 0"},
    {"throws_42", "never_overlaps", "allocate threw int"},
    {"throws_from_noexcept", "never_overlaps", "in deallocate("},
    {"throws_out_of_range", "never_overlaps", "threw std::out_of_range (\"map::at\")"},
    {"segfault", "never_overlaps", "SIGSEGV"},
    {"deadlock", "respects_streams", "did not come back within"},
    {"spin", "never_overlaps", "did not come back within"},
    {"recursion", "never_overlaps", "endless recursion"},
    {"never_releases", "retries_before_out_of_memory", "release what is cached"},
    {"null_on_oom", "refuses_huge_sizes", "null address"},
    {"wraps_sizes", "refuses_huge_sizes", "were granted"},
    {"drops_cache_on_oom", "retries_before_out_of_memory", "release what is cached"},
    {"drops_cache_on_oom", "survives_a_small_device", "were not given back"},
    {"counts_before", "survives_a_dead_device", "a block is counted"},
    {"loses_the_retry", "survives_one_failure", "were not given back"},
    {"never_reuses", "reuses_memory", "needs"},
    {"keeps_on_trim", "trims", "still reserved"},
    {"keeps_on_trim", "survives_out_of_memory", "needs"},
    {"trim_lies", "trims", "the source got"},
    {"report_lies", "reports_truly", "cached_bytes"},
    {"host_leak", "needs_no_growing_memory", "the host's memory grows by"},
    {"scribbles", "keeps_payloads", "changed"},
    {"random_placement", "is_deterministic", "differ from allocation"},
    {"gap_in_walk", "shows_its_layout", "where the one before it ends"},
};

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

class KitOnAMutant : public testing::TestWithParam<Mutant> {
 protected:
  Folder folder_;
};

TEST_P(KitOnAMutant, FailsTheCheckThatIsThereForIt) {
  const Said said = kit(folder_, GetParam().flaw, {"--only", GetParam().check, "--deadline", "5"});
  EXPECT_EQ(said.code, 1) << said.out << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr(std::string("  FAILED  ") + GetParam().check), HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(Flaws, KitOnAMutant, testing::ValuesIn(kMutants),
                         [](const auto& param) { return std::string(param.param.flaw) + "_" + param.param.check; });

TEST(KitOnMutants, EachFlawAndEachCheckThatCanFailIsInTheTable) {
  std::set<std::string> flaws = {"none", "slow"}, checks;
  for (const Mutant& mutant : kMutants) {
    flaws.insert(mutant.flaw);
    checks.insert(mutant.check);
  }
  const auto names = conformance::check_names();
  EXPECT_EQ(flaws.size(), kFlaws.size());
  EXPECT_EQ(checks, std::set<std::string>(names.begin(), names.end()));
}

TEST(KitOnMutants, TheSoundOnePassesUnderEveryOptionSet) {
  const Folder folder;
  const std::string buddy = fixture("buddy").string();
  const Said said = tenon_in(folder, {"plugins", "test", buddy, buddy + ":chunk=1MiB", buddy + ":chunk=64MiB"});
  EXPECT_EQ(said.code, 0) << said.out << said.error;
}

// A leak at the end is met by nearly every check.
TEST(KitOnMutants, OneCauseIsOneFailure) {
  const Folder folder;
  const Said said = kit(folder, "leaks_a_chunk", {});
  EXPECT_THAT(said.out, AllOf(HasSubstr(" 1 failed, "), HasSubstr("more for the same cause"),
                              HasSubstr("as in   reuses_memory"), HasSubstr("frees_all_at_the_end: after")));
}

TEST(KitOnMutants, ACrashIsShownWithItsSeedItsCallsAndItsStack) {
  const Folder folder;
  const Said said = kit(folder, "segfault", {"--only", "never_overlaps"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("in allocate("), HasSubstr("the shortest history that does it (seed 47)"),
                              HasSubstr("Buddy::misbehave"), HasSubstr("#0 = allocate 1 bytes")));
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
