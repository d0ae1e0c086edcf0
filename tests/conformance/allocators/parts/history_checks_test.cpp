// The checks that play random histories: how many, of which kind, and what each of them looks for.
#include "conformance/allocators/parts/keeper.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

namespace tenon::conformance {
namespace {

using test::checked;
using test::failed;
using test::Habits;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(HistoryChecks, PlaySoManyHistoriesOfThatLengthWithSoManyBlocks) {
  int made = 0, calls = 0, live = 0, most_live = 0;
  const Habits counts{.made = [&] { ++made, live = 0; },
                      .asked =
                          [&](const Request&) {
                            ++calls;
                            most_live = std::max(most_live, ++live);
                          },
                      .freed = [&](const Block&) { --live; }};
  EXPECT_EQ(failed("never_overlaps", counts, {.histories = 5, .history_length = 40, .history_blocks = 2}), "");
  EXPECT_EQ(made, 5);
  EXPECT_GT(calls, 5);
  EXPECT_LE(calls, 5 * 40);
  EXPECT_EQ(most_live, 2);
  made = 0;
  EXPECT_EQ(failed("is_deterministic", counts, {.histories = 5, .history_length = 40}), "");
  EXPECT_EQ(made, 2 * 5) << "each twice";
}

TEST(HistoryChecks, EachHistoryHasTheNextSeed) {
  int made = 0;
  const Habits second_overlaps{.made = [&] { ++made; },
                               .handed_out =
                                   [&](Block& block) {
                                     if (made == 2) block.bytes += std::size_t{1} << 40;
                                   }};
  // The shrinker does not meet it again: what is told is the whole history.
  EXPECT_THAT(failed("never_overlaps", second_overlaps, {.seed = 100, .histories = 5, .history_length = 10}),
              ContainsRegex("^allocate\\([0-9]+\\) gave .*, which the source did not supply\n"
                            "  what led there \\(seed 101\\):\n    #0 = allocate [0-9]+ bytes"));
}

/// Which checks find it.
std::set<std::string> finders_of(const Habits& habits) {
  std::set<std::string> finders;
  for (const char* check : {"never_overlaps", "respects_streams", "keeps_requests", "gives_back_what_it_took",
                            "shows_its_layout", "is_deterministic"})
    if (!failed(check, habits, {.histories = 2, .history_length = 80}).empty()) finders.insert(check);
  return finders;
}
using Names = std::set<std::string>;

TEST(HistoryChecks, EachLooksForItsOwnCauseAlone) {
  EXPECT_EQ(finders_of({.handed_out = [](Block& block) { block.bytes = 1; }}), Names{"shows_its_layout"})
      << "the host counts more bytes asked for than handed out";
  EXPECT_EQ(finders_of({.handed_out = [](Block& block) { block.bytes += std::size_t{1} << 40; }}),
            Names{"never_overlaps"});
  EXPECT_EQ(finders_of({.handed_out =
                            [](Block& block) {
                              block.request.purpose =
                                  block.request.purpose == Purpose::kData ? Purpose::kOther : Purpose::kData;
                            }}),
            Names{"keeps_requests"});
  EXPECT_EQ(finders_of({.gives_back = [](std::size_t bytes) { return bytes + 512; }, .keeps_nothing = true}),
            Names{"gives_back_what_it_took"});
  EXPECT_EQ(finders_of({.invariants = [] { throw Error("a list is broken"); }}), Names{"shows_its_layout"});
  EXPECT_EQ(finders_of({.leaks = true}), Names{});
}

TEST(HistoryChecks, ARequestThatIsLostIsToldWithItsField) {
  EXPECT_THAT(failed("keeps_requests", {.handed_out = [](Block& block) { block.request.bytes += 5; }}),
              ContainsRegex("^the block says request.bytes = 6, the request had 1: allocate\\(\\) fills in "
                            "Block::request\n  the shortest history that does it \\(seed 47\\):\n"
                            "    #0 = allocate 1 bytes, alignment 64, stream 0"));
}

TEST(HistoryChecks, ALayoutThatIsShownIsHeldToTheBlocksThatLive) {
  const CheckResult shown = checked("shows_its_layout", {.shows_layout = true});
  EXPECT_EQ(shown.failure, "");
  EXPECT_EQ(shown.not_applicable, "");
  EXPECT_THAT(
      failed("shows_its_layout", {.handed_out = [](Block& block) { block.data = static_cast<char*>(block.data) + 64; },
                                  .shows_layout = true}),
      StartsWith("walk does not show block #"));
}

TEST(HistoryChecks, SayFromWhichAllocationOnTwoRunsDiffer) {
  int made = 0, asked = 0;
  const auto wanders = [&](int in, int from) {
    made = 0;
    return Habits{.made = [&] { ++made, asked = 0; },
                  .handed_out =
                      [&, in, from](Block& block) {
                        if (made == in && ++asked > from) block.data = static_cast<char*>(block.data) + 64;
                      }};
  };
  EXPECT_EQ(failed("is_deterministic", wanders(2, 3), {.seed = 9, .histories = 3, .history_length = 60}),
            "two runs of one history (seed 9) differ from allocation 3 on");
  EXPECT_EQ(failed("is_deterministic", wanders(3, 0), {.seed = 9, .histories = 3, .history_length = 60}),
            "two runs of one history (seed 10) differ from allocation 0 on");
}

TEST(HistoryChecks, EachCallToTheSourceFailsOnce) {
  int made = 0, acquired = 0;
  const Habits counts{.made = [&] { ++made; },
                      .acquires =
                          [&] {
                            if (made == 1) ++acquired;
                          }};
  for (const char* check : {"survives_one_failure", "survives_a_dead_device"}) {
    made = acquired = 0;
    EXPECT_EQ(failed(check, counts, {.histories = 2, .history_length = 60}), "");
    EXPECT_GT(acquired, 5);
    EXPECT_EQ(made, 1 + acquired) << check << " after a run in which none does";
  }
}

TEST(HistoryChecks, SayWhichCallFailedAndWhetherTheOthersBehindItDid) {
  const KitOptions few{.histories = 2, .history_length = 20};
  bool is_refused = false;
  const Habits shifts{.made = [&] { is_refused = false; },
                      .handed_out =
                          [&](Block& block) {
                            if (is_refused) block.data = static_cast<char*>(block.data) + 32;
                          },
                      .refused = [&](const Request&) { is_refused = true; }};
  EXPECT_THAT(failed("survives_one_failure", shifts, few),
              ContainsRegex("^allocate\\(1\\) gave \\[0x[0-9a-f]+, 0x[0-9a-f]+\\), which the source did not supply\n"
                            "  when call 0 to the source fails\n  the shortest history that does it \\(seed 47\\):\n"
                            "    #0 = allocate 1 bytes, alignment 64, stream 0$"));
  const Habits weak{.made = [&] { is_refused = false; },
                    .refused = [&](const Request&) { is_refused = true; },
                    .invariants =
                        [&] {
                          if (is_refused) throw Error("a list is broken");
                        }};
  EXPECT_THAT(failed("survives_a_dead_device", weak, few),
              StartsWith("check_invariants(): a list is broken\n  when call 0 to the source fails and every later one\n"
                         "  the shortest history that does it (seed 47):\n"
                         "    #0 = allocate 1 bytes, alignment 64, stream 0"));
}

TEST(HistoryChecks, ALostDeviceFailsInItsWaitsTooWhereThatIsAskedFor) {
  bool was_refused = false;
  // It waits before it asks the device, and has no answer to a wait that fails.
  const Habits waits{.answers = [&](MemorySource& source, const Request&) -> std::optional<Block> {
    try {
      source.synchronize();
    } catch (const Error&) {
      was_refused = true;
    }
    return std::nullopt;
  }};
  EXPECT_EQ(failed("survives_one_failure", waits), "");
  EXPECT_FALSE(was_refused);
  KitOptions lost{.histories = 2, .history_length = 4};
  lost.lose_device = true;
  static_cast<void>(failed("survives_one_failure", waits, lost));
  EXPECT_TRUE(was_refused);
}

TEST(HistoryChecks, WhatLeavesACallThatIsNoErrorOfTenonsIsToldByItsType) {
  const Habits foreign{.asked = [](const Request&) { throw std::runtime_error("what is that?"); }};
  EXPECT_THAT(failed("never_overlaps", foreign),
              StartsWith("allocate threw std::runtime_error (\"what is that?\"); an allocator may throw only "
                         "tenon::OutOfMemory and tenon::Error\n  the shortest history that does it (seed 47):\n"
                         "    #0 = allocate 1 bytes, alignment 64, stream 0"));
}

TEST(HistoryChecks, WhatIsFoundAtTheEndIsToldSo) {
  EXPECT_EQ(failed("survives_a_small_device", {.leaks = true}),
            "after the allocator was destroyed: 512 bytes were not given back to the device: 1 segment\n"
            "  the shortest history that does it (seed 47):\n"
            "    #0 = allocate 1 bytes, alignment 64, stream 0\n"
            "    then blocks are freed, and the allocator is destroyed");
}

}  // namespace
}  // namespace tenon::conformance
