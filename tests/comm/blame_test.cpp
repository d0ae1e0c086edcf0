// Words and limits of who is missing, of who differs and of what was agreed.
#include <tenon/comm/agreement.h>
#include <tenon/comm/missing_ranks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string name_of_rank(int rank) { return "rank " + std::to_string(rank); }

AwaitedOperation awaited(std::int64_t number, std::vector<int> ranks, std::int64_t group = 0) {
  return {.group = group, .number = number, .ranks = std::move(ranks), .text = "barrier #" + std::to_string(number)};
}
RankPosition came_to(std::int64_t number) { return {.came_to = {{0, number}}, .last = "broadcast #1", .awaits = {}}; }

TEST(Blame, OnlyRanksOfTheOperationAreAsked) {
  EXPECT_THAT(missing_ranks(awaited(2, {0, 2}), 0, {came_to(2), came_to(1), came_to(2)}, &name_of_rank).ranks,
              IsEmpty());
  EXPECT_THAT(missing_ranks(awaited(2, {0, 2}), 0, {came_to(2), std::nullopt, came_to(1)}, &name_of_rank).ranks,
              ElementsAre(2));
}

TEST(Blame, WhoAsksIsNotMissingItself) {
  EXPECT_THAT(missing_ranks(awaited(2, {0, 1}), 0, {came_to(1), came_to(2)}, &name_of_rank).ranks, IsEmpty());
  EXPECT_THAT(missing_ranks(awaited(2, {0, 1}), 1, {came_to(1), came_to(2)}, &name_of_rank).ranks, ElementsAre(0));
}

TEST(Blame, OneThatHasComeToNothingInAGroupHasNotComeToItsFirst) {
  EXPECT_THAT(missing_ranks(awaited(1, {0, 1}, 5), 0, {came_to(9), came_to(9)}, &name_of_rank).ranks, ElementsAre(1));
}

TEST(Blame, SeveralAreNamedEachOnceAndWithAReason) {
  const MissingRanks found =
      missing_ranks(awaited(3, {0, 1, 2, 3, 3}), 0, {came_to(3), std::nullopt, came_to(2), came_to(1)}, &name_of_rank);
  EXPECT_THAT(found.ranks, ElementsAre(1, 2, 3));
  EXPECT_THAT(found.reasons, ElementsAre("rank 1 does not answer: it is stopped, cut off or dead",
                                         "rank 2 has not come to it and hangs elsewhere; its last was broadcast #1",
                                         "rank 3 has not come to it and hangs elsewhere; its last was broadcast #1"));
}

TEST(Blame, OneThatDoesNotAnswerIsNamedOnceThoughTwoWaitForIt) {
  RankPosition waits = came_to(1);
  waits.awaits = awaited(7, {1, 2}, 4);
  EXPECT_THAT(missing_ranks(awaited(2, {0, 1, 2}), 0, {came_to(2), waits, std::nullopt}, &name_of_rank).ranks,
              ElementsAre(2));
}

TEST(Blame, WhereSomebodyHangsThoseWhoWaitForItAreNotToBlame) {
  RankPosition waits = came_to(1);
  waits.awaits = awaited(7, {1, 3}, 4);
  const MissingRanks found =
      missing_ranks(awaited(2, {0, 1, 2, 3}), 0, {came_to(2), waits, came_to(2), came_to(2)}, &name_of_rank);
  EXPECT_THAT(found.ranks, ElementsAre(3));
  EXPECT_THAT(found.reasons, ElementsAre("rank 3 has not come to barrier #7, which rank 1 waits for, and hangs "
                                         "elsewhere; its last was broadcast #1"));
}

TEST(Blame, ThoseWhoWaitForEachOtherAreSaidSoBehindTheLast) {
  RankPosition one = came_to(1), two = came_to(1);
  one.awaits = awaited(7, {1, 2}, 4);
  two.awaits = awaited(8, {1, 2}, 5);
  const MissingRanks found = missing_ranks(awaited(2, {0, 1, 2}), 0, {came_to(2), one, two}, &name_of_rank);
  EXPECT_THAT(found.ranks, ElementsAre(1, 2));
  EXPECT_THAT(found.reasons,
              ElementsAre("rank 1 itself waits for barrier #7",
                          "rank 2 itself waits for barrier #8: they wait for each other; every rank calls its "
                          "operations in the same order"));
}

TEST(Blame, AnAnswerAfterThreeTenthsOfASecondIsSlow) {
  std::vector<std::optional<RankPosition>> positions = {came_to(2), came_to(2), std::nullopt};
  positions[1]->answered_after = std::chrono::milliseconds(299);
  EXPECT_THAT(missing_ranks(awaited(2, {0, 1}), 0, positions, &name_of_rank).ranks, IsEmpty());
  positions[1]->answered_after = std::chrono::milliseconds(300);
  const MissingRanks found = missing_ranks(awaited(2, {0, 1}), 0, positions, &name_of_rank);
  EXPECT_THAT(found.ranks, ElementsAre(1));
  EXPECT_THAT(found.reasons, ElementsAre(HasSubstr("did not answer for 0.3 s")));
}

TEST(Blame, ASlowAnswerIsNoReasonWhereRanksWaitForEachOther) {
  RankPosition waits = came_to(1);
  waits.awaits = awaited(7, {1}, 4);
  std::vector<std::optional<RankPosition>> positions = {came_to(2), waits, came_to(2)};
  positions[2]->answered_after = std::chrono::seconds(2);
  EXPECT_THAT(missing_ranks(awaited(2, {0, 1, 2}), 0, positions, &name_of_rank).ranks, ElementsAre(1));
}

TEST(CollectiveSignature, IsSaidInWordsOfItsKind) {
  const auto text = [](CommKind kind) {
    return CollectiveSignature{.kind = kind, .dtype = Dtype::kFloat32, .op = ReduceOp::kMax, .root = 2, .count = 10}
        .text();
  };
  EXPECT_EQ(text(CommKind::kAllReduce), "all_reduce of 10 float32 (max)");
  EXPECT_EQ(text(CommKind::kReduceScatter), "reduce_scatter of 10 float32 (max) for each rank");
  EXPECT_EQ(text(CommKind::kAllGather), "all_gather of 10 float32 of each rank");
  EXPECT_EQ(text(CommKind::kBroadcast), "broadcast of 10 float32 from rank 2");
  EXPECT_EQ(text(CommKind::kBarrier), "barrier");
  EXPECT_EQ(text(CommKind::kSend), "send of 10 float32");
  EXPECT_EQ(text(CommKind::kReceive), "receive of 10 float32");
}

TEST(CollectiveSignature, HasTheOperationOfReductionsAlone) {
  const auto op = [](CommKind kind) { return CollectiveSignature::of({.kind = kind, .op = ReduceOp::kMin}).op; };
  EXPECT_EQ(op(CommKind::kAllReduce), ReduceOp::kMin);
  EXPECT_EQ(op(CommKind::kReduceScatter), ReduceOp::kMin);
  for (const CommKind other : {CommKind::kBroadcast, CommKind::kAllGather, CommKind::kBarrier})
    EXPECT_EQ(op(other), ReduceOp::kSum) << name_of(other);
  const auto whole = CollectiveSignature::of({.kind = CommKind::kAllGather, .count = 4, .dtype = Dtype::kInt8});
  EXPECT_EQ(whole.count, 4U);
  EXPECT_EQ(whole.dtype, Dtype::kInt8);
}

TEST(RankCamps, AreSaidInTheOrderOfTheirFirstRanksAndTheSmallerOnesAreToBlame) {
  const RankCamps found = camps_of({{0, "a"}, {1, "b"}, {2, "a"}, {3, "c"}, {4, "b"}, {5, "a"}});
  EXPECT_EQ(found.text, "ranks 0, 2, 5: a; ranks 1, 4: b; rank 3: c");
  EXPECT_THAT(found.fewer, ElementsAre(1, 4, 3));
  EXPECT_EQ(found.count, 3U);
}

TEST(RankCamps, WhereTwoAreTheLargestAllAreToBlame) {
  EXPECT_THAT(camps_of({{0, "a"}, {1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}}).fewer, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(camps_of({{0, "a"}, {1, "a"}}).fewer, IsEmpty());
  EXPECT_EQ(camps_of({{0, "a"}, {1, "a"}}).count, 1U);
  EXPECT_EQ(camps_of({}).count, 0U);
}

CollectiveSignature counting(std::uint64_t count) {
  return {.kind = CommKind::kAllReduce, .dtype = Dtype::kFloat32, .count = count};
}

TEST(AgreementMemory, KeepsTheLast64AndAllThatAreNotAgreedOn) {
  Agreement alone(0, 1, [](int, const CollectiveSignature&) {});
  EXPECT_FALSE(alone.own(0));
  EXPECT_FALSE(alone.own(1));
  for (std::uint64_t number = 1; number <= 100; ++number) {
    alone.announce(counting(number));
    ASSERT_TRUE(alone.advance());
  }
  EXPECT_EQ(alone.announced(), 100);
  EXPECT_EQ(alone.agreed(), 100);
  EXPECT_EQ(alone.own(100), counting(100));
  EXPECT_EQ(alone.own(37), counting(37));
  EXPECT_FALSE(alone.own(36));
  EXPECT_FALSE(alone.own(101));
  Agreement waits(0, 2, [](int, const CollectiveSignature&) {});
  for (std::uint64_t number = 1; number <= 100; ++number) waits.announce(counting(number));
  EXPECT_TRUE(waits.advance());
  EXPECT_EQ(waits.agreed(), 0);
  EXPECT_EQ(waits.own(1), counting(1)) << "it is still to be compared";
}

TEST(AgreementMemory, WhoDiffersIsKnownFromThenOnAndNothingGoesOn) {
  std::vector<int> told;
  Agreement first(0, 3, [&](int to, const CollectiveSignature&) { told.push_back(to); });
  first.announce(counting(5));
  EXPECT_THAT(told, ElementsAre(1, 2));
  first.hear(2, counting(5));
  EXPECT_TRUE(first.advance());
  EXPECT_FALSE(first.other());
  first.hear(1, counting(6));
  EXPECT_FALSE(first.advance());
  ASSERT_TRUE(first.other());
  EXPECT_EQ(first.other()->first, 1);
  EXPECT_EQ(first.other()->second, counting(6));
  first.hear(1, counting(5));
  EXPECT_FALSE(first.advance());
  EXPECT_EQ(first.agreed(), 0);
}

TEST(AgreementMemory, ThoseFurtherOffAreToldOnceTheNearOnesHaveSaidTheSame) {
  std::vector<int> told;
  Agreement first(0, 20, [&](int to, const CollectiveSignature&) { told.push_back(to); });
  first.announce(counting(5));
  EXPECT_THAT(told, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  told.clear();
  for (int before = 14; before < 20; ++before) first.hear(before, counting(5));
  EXPECT_TRUE(first.advance());
  EXPECT_THAT(told, IsEmpty()) << "rank 13 is still to be heard";
  first.hear(13, counting(5));
  EXPECT_TRUE(first.advance());
  EXPECT_TRUE(first.advance());
  EXPECT_THAT(told, ElementsAre(8, 16)) << "once";
  first.hear(12, counting(5));
  first.hear(4, counting(5));
  EXPECT_TRUE(first.advance());
  EXPECT_EQ(first.agreed(), 1);
}

}  // namespace
}  // namespace tenon
