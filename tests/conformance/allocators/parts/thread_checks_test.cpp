// The checks with several threads: which of them take and free, on which streams, and what is found.
#include "conformance/allocators/parts/keeper.h"

#include <tenon/core/error.h>

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <thread>

namespace tenon::conformance {
namespace {

using test::failed;
using test::Habits;
using testing::ContainsRegex;

// Its calls are serialised by the host: what is seen here needs no lock.
struct Seen {
  std::set<std::thread::id> takers, freers;
  std::set<std::uint64_t> streams;
  std::map<void*, std::thread::id> taken_by;
  int freed_by_others = 0;
  int trims = 0;
  std::int64_t live = 0;

  Habits habits() {
    return {.handed_out =
                [this](Block& block) {
                  takers.insert(std::this_thread::get_id());
                  streams.insert(block.request.stream.id);
                  taken_by[block.cookie] = std::this_thread::get_id();
                  ++live;
                },
            .freed =
                [this](const Block& block) {
                  freers.insert(std::this_thread::get_id());
                  freed_by_others += taken_by.at(block.cookie) != std::this_thread::get_id() ? 1 : 0;
                  --live;
                },
            .says_given =
                [this](std::size_t given) {
                  ++trims;
                  return given;
                }};
  }
};

TEST(ThreadChecks, BlocksOfFourThreadsAreFreedByOthersOnOneStream) {
  Seen seen;
  EXPECT_EQ(failed("takes_frees_from_other_threads", seen.habits()), "");
  EXPECT_GE(seen.takers.size(), 4U);
  EXPECT_GT(seen.freers.size(), 1U);
  EXPECT_EQ(seen.streams, (std::set<std::uint64_t>{0}));
  EXPECT_GT(seen.freed_by_others, 10);
  EXPECT_GT(seen.trims, 0);
  EXPECT_EQ(seen.live, 0) << "all is given back";
}

TEST(ThreadChecks, DyingThreadsHaveStreamsOfTheirOwnAndLeaveBlocksBehind) {
  Seen seen;
  EXPECT_EQ(failed("survives_dying_threads", seen.habits()), "");
  EXPECT_EQ(seen.streams, (std::set<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_GT(seen.freed_by_others, 10);
  EXPECT_EQ(seen.live, 0);
}

TEST(ThreadChecks, ABlockThatOverlapsALiveOneIsFound) {
  const Habits swells{.handed_out = [](Block& block) { block.bytes += std::size_t{1} << 40; }};
  for (const char* check : {"takes_frees_from_other_threads", "survives_dying_threads"})
    EXPECT_THAT(failed(check, swells), ContainsRegex("^a block of [0-9]+ bytes overlaps a live one$")) << check;
}

TEST(ThreadChecks, InvariantsAreAskedForWhenTheThreadsAreGone) {
  for (const char* check : {"takes_frees_from_other_threads", "survives_dying_threads"})
    EXPECT_EQ(failed(check, {.invariants = [] { throw Error("a list is broken"); }}),
              "check_invariants(): a list is broken")
        << check;
}

TEST(ThreadChecks, WhatIsKeptAtTheEndIsALeak) {
  EXPECT_THAT(failed("takes_frees_from_other_threads", {.leaks = true}),
              ContainsRegex("^after the allocator was destroyed: [0-9]+ bytes were not given back"));
}

}  // namespace
}  // namespace tenon::conformance
