// Checks with a fixed plot in this process: an allocator that does one thing wrong, and the words for that.
#include "conformance/allocators/parts/keeper.h"
#include "support/has_sanitizer.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace tenon::conformance {
namespace {

using test::checked;
using test::failed;
using test::Habits;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(KitChecks, PassWhatKeepsItsPromises) {
  for (const char* check :
       {"frees_all_at_the_end", "serves_every_size", "aligns", "reuses_memory", "trims", "keeps_payloads",
        "is_deterministic", "refuses_huge_sizes", "survives_out_of_memory", "retries_before_out_of_memory", "counts",
        "reports_truly", "needs_no_growing_memory", "survives_a_small_device", "survives_one_failure"}) {
    const CheckResult result = checked(check, {});
    EXPECT_EQ(result.failure, "") << check;
    EXPECT_EQ(result.name, check);
    EXPECT_EQ(result.not_applicable, "") << check;
  }
}

TEST(KitChecks, ALayoutThatIsNotShownIsNotApplicable) {
  EXPECT_THAT(checked("shows_its_layout", {}).not_applicable, StartsWith("walk() shows no segments"));
}

TEST(KitChecks, SayWhichSizeIsNotServed) {
  const auto small_from = [](std::size_t least) {
    return Habits{.handed_out = [least](Block& block) {
      if (block.request.bytes >= least) block.bytes = block.request.bytes - 1;
    }};
  };
  EXPECT_EQ(failed("serves_every_size", small_from(1)), "1 bytes gave a block of 0");
  EXPECT_EQ(failed("serves_every_size", small_from(4097)), "4097 bytes gave a block of 4096")
      << "beside a power of two";
  EXPECT_EQ(failed("serves_every_size", small_from((std::size_t{1} << 34) + 1)),
            "17179869185 bytes gave a block of 17179869184")
      << "the largest";
  EXPECT_EQ(failed("serves_every_size", small_from((std::size_t{1} << 34) + 2)), "");
  EXPECT_EQ(failed("serves_every_size", {.handed_out =
                                             [](Block& block) {
                                               if (block.request.bytes == 4095) block.bytes = 4094;
                                             }}),
            "4095 bytes gave a block of 4094")
      << "below a power of two";
}

TEST(KitChecks, SayWhichAlignmentIsNotKept) {
  const auto off = [](std::size_t from) {
    return Habits{.handed_out = [from](Block& block) {
      if (block.request.alignment < from) return;
      block.data = static_cast<char*>(block.data) + 32;
      block.bytes -= 32;
    }};
  };
  EXPECT_THAT(failed("aligns", off(64)), StartsWith("1 bytes at an alignment of 64: got 0x"));
  EXPECT_THAT(failed("aligns", off(512)), StartsWith("1 bytes at an alignment of 512: got 0x"));
}

TEST(KitChecks, AnAlignmentIsOfEverySize) {
  EXPECT_THAT(failed("aligns", {.handed_out =
                                    [](Block& block) {
                                      if (block.request.bytes < 3 * MiB) return;
                                      block.data = static_cast<char*>(block.data) + 64;
                                      block.bytes -= 64;
                                    }}),
              StartsWith("3145728 bytes at an alignment of 128: got 0x"));
}

TEST(KitChecks, SayWhatIsLeftAtTheEnd) {
  EXPECT_THAT(failed("frees_all_at_the_end", {.leaks = true}),
              ContainsRegex("^after the allocator was destroyed: [0-9]+ bytes were not given back to the "
                            "device: [0-9]+ segments$"));
}

TEST(KitChecks, BlocksThatAreStillOutGoBackAtTheEndAsThoseThatAreKeptDo) {
  for (const Habits& habits : {Habits{.leaks_live = true}, Habits{.leaks_kept = true}})
    EXPECT_THAT(failed("frees_all_at_the_end", habits), StartsWith("after the allocator was destroyed: "));
}

TEST(KitChecks, MemoryGoesBackWithTheSizeItWasTakenWith) {
  const Habits habits{.gives_back = [](std::size_t bytes) { return bytes + 512; }};
  const Habits at_once{.gives_back = habits.gives_back, .keeps_nothing = true};
  for (const char* check : {"trims", "keeps_payloads", "gives_back_what_it_took"}) {
    const CheckResult result = checked(check, check == std::string("gives_back_what_it_took") ? at_once : habits);
    EXPECT_THAT(result.failure, ContainsRegex("^release\\(0x[0-9a-f]+, [0-9]+\\): it was acquired with [0-9]+ bytes"))
        << check;
  }
}

TEST(KitChecks, InvariantsAreAskedForAfterATrim) {
  bool is_trimmed = false;
  const Habits habits{.says_given =
                          [&](std::size_t given) {
                            is_trimmed = true;
                            return given;
                          },
                      .invariants =
                          [&] {
                            if (is_trimmed) throw Error("a list is broken");
                          }};
  EXPECT_EQ(failed("trims", habits), "an error where none may be: a list is broken");
}

TEST(KitChecks, AnAllocatorServesOnAfterATrim) {
  bool is_empty = false;
  const Habits habits{.asked =
                          [&](const Request&) {
                            if (is_empty) throw Error("nothing is left");
                          },
                      .says_given =
                          [&](std::size_t given) {
                            is_empty = given == 0;
                            return given;
                          }};
  EXPECT_THAT(failed("trims", habits), StartsWith("an error where none may be: nothing is left"));
}

TEST(KitChecks, ATrimLeavesAsMuchAsItMayAndNoMore) {
  EXPECT_THAT(failed("trims", {.to_give = [](std::size_t kept, std::size_t keep) { return keep == 0 ? kept : 0; }}),
              ContainsRegex("nothing is handed out, and after trim\\([0-9]+\\) [0-9]+ bytes are still reserved"));
  EXPECT_THAT(failed("trims", {.to_give = [](std::size_t, std::size_t) { return std::size_t{1}; }}),
              ContainsRegex("[0-9]+ bytes were cached, and trim\\([0-9]+\\) gave [0-9]+ of them back"));
  EXPECT_THAT(failed("trims", {.says_given = [](std::size_t given) { return given + 512; }}),
              ContainsRegex("trim says [0-9]+ bytes, the source got [0-9]+"));
  int calls = 0;
  EXPECT_THAT(failed("trims", {.says_given = [&](std::size_t given) { return ++calls == 6 ? 512 : given; }}),
              HasSubstr("a second trim(0) claims to have given something back"));
}

TEST(KitChecks, MemoryThatDoesNotComeBackRunsOut) {
  EXPECT_THAT(failed("reuses_memory", {.forgets_freed = true}), StartsWith("an error where none may be: "));
}

TEST(KitChecks, PayloadsAreReadToTheLastByte) {
  for (const bool first : {true, false}) {
    Block last;
    const Habits scribbles{.handed_out = [&](Block& block) {
      if (last.data != nullptr && last.bytes > 1024)
        static_cast<unsigned char*>(last.data)[first ? 0 : last.bytes - 1] ^= 1;
      last = block;
    }};
    EXPECT_THAT(failed("keeps_payloads", scribbles), ContainsRegex("the bytes of a live block of [0-9]+ changed"))
        << "seen when it is freed: " << first;
  }
}

TEST(KitChecks, PayloadsAreReadInTheirMiddleAndToTheEndOfTheCheck) {
  Block last;
  const Habits scribbles{.handed_out =
                             [&](Block& block) {
                               if (last.data != nullptr && last.bytes > 4096)
                                 std::memset(static_cast<char*>(last.data) + 2000, 0x55, 61);
                               last = block;
                             },
                         .freed =
                             [&](const Block& block) {
                               if (block.data == last.data) last = {};
                             }};
  EXPECT_THAT(failed("keeps_payloads", scribbles), StartsWith("the bytes of a live block of "));
  std::vector<Block> all;
  int freed_in_a_row = 0;
  const Habits scribbles_late{.handed_out =
                                  [&](Block& block) {
                                    freed_in_a_row = 0;
                                    all.push_back(block);
                                  },
                              .freed =
                                  [&](const Block& block) {
                                    std::erase_if(all, [&](const Block& one) { return one.data == block.data; });
                                    if (++freed_in_a_row != 15) return;  // as only when all is freed
                                    for (const Block& one : all) *static_cast<unsigned char*>(one.data) ^= 1;
                                  }};
  EXPECT_EQ(failed("keeps_payloads", scribbles_late), "the bytes of a live block changed");
}

TEST(KitChecks, WhatCannotBeServedIsOutOfMemoryAndNoOtherError) {
  const auto on_huge = [](const std::function<void(const Request&)>& does) {
    return Habits{.asked = [does](const Request& request) {
      if (request.bytes > 1 * GiB) does(request);
    }};
  };
  EXPECT_THAT(failed("refuses_huge_sizes", on_huge([](const Request&) { throw Error("no"); })),
              StartsWith("18446744073709551615 bytes: 'no"));
  int calls = 0;
  EXPECT_THAT(failed("refuses_huge_sizes", on_huge([&](const Request&) {
                       if (++calls == 6) throw Error("not that either");
                     })),
              StartsWith("2147483648 bytes: 'not that either"))
      << "twice the device is the last";
}

TEST(KitChecks, FiguresOfAPolicyAgreeWithTheLedger) {
  const auto reports = [](const std::function<void(PolicyStats&)>& change) {
    return Habits{.report = [change](PolicyStats& stats, std::size_t) {
      stats.has_pools = true;
      change(stats);
    }};
  };
  EXPECT_THAT(failed("counts", reports([](PolicyStats&) {})),
              StartsWith("the policy reports allocation.all.current as 0, the ledger beside it says "));
}

TEST(KitChecks, WhatIsReportedOfTheCacheCanBeHad) {
  EXPECT_THAT(
      failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t kept) { stats.cached_bytes = kept / 2; }}),
      ContainsRegex("nothing is handed out and [0-9]+ bytes are reserved; report\\(\\) gives cached_bytes "
                    "as [0-9]+"));
  EXPECT_EQ(
      failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t kept) { stats.cached_bytes = kept; }}), "");
  EXPECT_THAT(failed("reports_truly", {.report = [](PolicyStats& stats, std::size_t) { stats.retries = 3; }}),
              HasSubstr("the device refused nothing and got nothing back; report() gives retries as 3"));
}

TEST(KitChecks, RecordsThatOnlyGrowAreFound) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "it has a heap of its own, which the check cannot read";
  EXPECT_THAT(failed("needs_no_growing_memory", {.hoards_records = true}),
              ContainsRegex("the host's memory grows by .* in 48 rounds of the same 200 calls"));
}

TEST(KitChecks, WhatIsKeptOnceOrUntilATrimIsNoGrowth) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "it has a heap of its own, which the check cannot read";
  EXPECT_EQ(failed("needs_no_growing_memory", {.hoards_records = true, .drops_records_on_trim = true}), "");
  int rounds = 0;
  std::vector<std::string> records;
  records.reserve(100);
  const auto grows_in = [&](const std::vector<int>& of) {
    return [&, of](std::size_t given) {
      ++rounds;
      for (const int round : of)
        if (round == rounds) records.emplace_back(5000, 'x');
      return given;
    };
  };
  EXPECT_EQ(failed("needs_no_growing_memory", {.says_given = grows_in({20})}), "");
  rounds = 0;
  EXPECT_EQ(failed("needs_no_growing_memory", {.says_given = grows_in({20, 30})}), "") << "not once more";
  rounds = 0;
  EXPECT_THAT(failed("needs_no_growing_memory", {.says_given = grows_in({20, 30, 70, 80})}),
              ContainsRegex("^the host's memory grows by [0-9.]+ KiB in 48 rounds of the same 200 calls, in 2 of them, "
                            "though all is freed and trimmed after each: what does the allocator keep\\?$"));
}

TEST(KitChecks, TheSecondFailureOfACauseIsToldUnderTheFirst) {
  const Habits leaks{.leaks = true};
  const Report report =
      run(test::keeper(leaks), nullptr,
          {.histories = 1, .history_length = 20, .only = "s", .skip = {"counts"}, .is_isolated = false});
  ASSERT_GT(report.checks.size(), 3U);
  EXPECT_EQ(report.checks[0].name, "frees_all_at_the_end");
  EXPECT_EQ(report.checks[0].state(), "FAILED");
  EXPECT_EQ(report.checks[1].name, "serves_every_size");
  EXPECT_EQ(report.checks[1].state(), "as in");
  EXPECT_EQ(report.checks[1].same_as, "frees_all_at_the_end");
  EXPECT_THAT(report.checks[1].failure, StartsWith("after the allocator was destroyed: "));
}

}  // namespace
}  // namespace tenon::conformance
