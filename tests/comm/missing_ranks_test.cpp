// Who is to blame where ranks wait for each other, and what is said where they come with different things.
#include <tenon/comm/missing_ranks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Positions = std::vector<std::optional<RankPosition>>;

constexpr std::int64_t kAll = 0, kLeft = 7, kRight = 8;

std::string text_of(int rank) { return "rank " + std::to_string(rank); }

AwaitedOperation of_all(std::int64_t number) {
  return {.group = kAll, .number = number, .ranks = {0, 1, 2, 3}, .text = "all_reduce #" + std::to_string(number)};
}
AwaitedOperation of_pair(std::int64_t group, std::vector<int> ranks) {
  return {.group = group, .number = 5, .ranks = std::move(ranks), .text = "all_reduce #5 of a pair"};
}
RankPosition at(std::int64_t number, std::optional<AwaitedOperation> awaits = {}) {
  return {.came_to = {{kAll, number}, {kLeft, 4}, {kRight, 4}}, .last = "barrier #1", .awaits = std::move(awaits)};
}

TEST(MissingRanks, WhoHasNotComeAndDoesNotWaitIsToBlame) {
  const MissingRanks found = missing_ranks(of_all(2), 0, {at(2), at(2), at(1), at(2)}, &text_of);
  EXPECT_THAT(found.ranks, ElementsAre(2));
  EXPECT_THAT(found.reasons, ElementsAre("rank 2 has not come to it and hangs elsewhere; its last was barrier #1"));
}

TEST(MissingRanks, WhoDoesNotAnswerIsToBlame) {
  const MissingRanks found = missing_ranks(of_all(2), 0, {at(2), std::nullopt, at(2), at(2)}, &text_of);
  EXPECT_THAT(found.ranks, ElementsAre(1));
  EXPECT_THAT(found.reasons, ElementsAre(HasSubstr("does not answer")));
}

TEST(MissingRanks, WhoWasStoppedAndGoesOnIsToBlameWhereAllHaveCome) {
  Positions positions = {at(2), at(2), at(2), at(2)};
  positions[1]->answered_after = std::chrono::milliseconds(20);
  EXPECT_THAT(missing_ranks(of_all(2), 0, positions, &text_of).ranks, IsEmpty());
  positions[3]->answered_after = std::chrono::milliseconds(1500);
  const MissingRanks found = missing_ranks(of_all(2), 0, positions, &text_of);
  EXPECT_THAT(found.ranks, ElementsAre(3));
  EXPECT_THAT(found.reasons, ElementsAre("rank 3 has come by now, and did not answer for 1.5 s: it was stopped, or had "
                                         "no processor"));
  positions[2] = at(1);
  EXPECT_THAT(missing_ranks(of_all(2), 0, positions, &text_of).ranks, ElementsAre(2));
}

TEST(MissingRanks, ARankThatWaitsInAGroupLeadsToTheOneThatItWaitsFor) {
  Positions positions = {at(2), at(2), at(1, of_pair(kRight, {2, 3})), at(1)};
  positions[2]->came_to[kRight] = 5;
  const MissingRanks found = missing_ranks(of_all(2), 0, positions, &text_of);
  EXPECT_THAT(found.ranks, ElementsAre(3));
  EXPECT_THAT(found.reasons, ElementsAre(HasSubstr("rank 3 has not come to it")));
  // Asked by a rank whose own group is complete but for one that waits elsewhere.
  const MissingRanks beyond =
      missing_ranks(of_pair(kLeft, {0, 2}), 0, {at(2), at(2), at(1, of_pair(kRight, {2, 3})), at(1)}, &text_of);
  EXPECT_THAT(beyond.ranks, ElementsAre(3));
  EXPECT_THAT(beyond.reasons,
              ElementsAre(HasSubstr("rank 3 has not come to all_reduce #5 of a pair, which rank 2 waits "
                                    "for, and hangs elsewhere")));
}

TEST(MissingRanks, RanksThatWaitForEachOtherAreAllNamed) {
  const MissingRanks found =
      missing_ranks(of_pair(kLeft, {0, 1}), 0, {at(1), at(1, of_all(2)), at(2), at(2)}, &text_of);
  EXPECT_THAT(found.ranks, ElementsAre(1));
  EXPECT_THAT(found.reasons.back(), HasSubstr("rank 1 itself waits for all_reduce #2: they wait for each other"));
}

TEST(MissingRanks, WhereAllHaveComeNobodyIs) {
  EXPECT_THAT(missing_ranks(of_all(2), 1, {at(2), at(2), at(3), at(2)}, &text_of).ranks, IsEmpty());
}

TEST(Disagreement, ThoseWhoAreFewerAreToBlameAndAllAreToldWithSizeAndDtype) {
  const CollectiveSignature usual{.kind = CommKind::kAllReduce, .dtype = Dtype::kFloat32, .count = 10};
  CollectiveSignature other = usual;
  other.count = 9;
  const auto error = disagreement("all_reduce #3", {{0, usual}, {1, usual}, {2, other}});
  ASSERT_TRUE(error);
  EXPECT_THAT(error->ranks(), ElementsAre(2));
  EXPECT_THAT(error->what(),
              HasSubstr("all_reduce #3 is not the same on all ranks: ranks 0, 1: all_reduce of 10 float32 "
                        "(sum); rank 2: all_reduce of 9 float32 (sum): call the same operations"));
  EXPECT_FALSE(disagreement("all_reduce #3", {{0, usual}, {1, usual}}));
}

TEST(Disagreement, OfTwoBothAreNamed) {
  const CollectiveSignature one{.kind = CommKind::kBroadcast, .dtype = Dtype::kInt64, .root = 1, .count = 8};
  const CollectiveSignature two{.kind = CommKind::kAllGather, .dtype = Dtype::kInt64, .count = 8};
  const auto error = disagreement("broadcast #1", {{0, one}, {1, two}});
  ASSERT_TRUE(error);
  EXPECT_THAT(error->ranks(), ElementsAre(0, 1));
  EXPECT_THAT(error->what(),
              HasSubstr("rank 0: broadcast of 8 int64 from rank 1; rank 1: all_gather of 8 int64 of each "
                        "rank"));
}

TEST(Disagreement, WhatDoesNotHaveToBeTheSameIsNoPartOfASignature) {
  CommRequest gather{.kind = CommKind::kAllGather, .count = 4, .op = ReduceOp::kMax, .peer = 3};
  CommRequest same = gather;
  same.op = ReduceOp::kSum;
  same.peer = 0;
  EXPECT_EQ(CollectiveSignature::of(gather), CollectiveSignature::of(same));
}

TEST(MissingRanks, NobodyHasComeToAnOperationWithoutANumber) {
  const AwaitedOperation receive{.group = kAll, .number = 0, .ranks = {1}, .text = "a receive"};
  EXPECT_THAT(missing_ranks(receive, 0, {at(2), at(2)}, &text_of).ranks, ElementsAre(1));
}

TEST(CollectiveSignature, OnlyABroadcastHasARoot) {
  EXPECT_EQ(CollectiveSignature::of({.kind = CommKind::kBroadcast, .peer = 3}).root, 3);
  EXPECT_EQ(CollectiveSignature::of({.kind = CommKind::kAllReduce, .peer = 3}).root, 0);
}

}  // namespace
}  // namespace tenon
