// Parts of the communicator mpi that need no other rank: what an operation says and how it ends, what ranks tell each
// other beside the operations, and reductions in the order of ranks.
#include "control.h"
#include "operation.h"
#include "types.h"

#include <tenon/core/half.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace tenon::mpi {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Pair;

Operation operation_of(const CommRequest& request, std::int64_t number, std::int64_t shown, const std::string& group) {
  return Operation(request, number, shown, milliseconds(5000), "rank 2 of 4", group);
}

Operation some_operation() {
  return operation_of({.kind = CommKind::kAllReduce, .count = 1, .dtype = Dtype::kFloat32}, 1, 1, "");
}

TEST(MpiOperation, IsSaidByItsKindItsNumberItsBytesAndItsGroup) {
  const auto text = [](const CommRequest& request, std::int64_t shown, const std::string& group = "") {
    return operation_of(request, 18, shown, group).text();
  };
  EXPECT_EQ(text({.kind = CommKind::kAllReduce, .count = 6553600, .dtype = Dtype::kFloat32}, 17),
            "all_reduce #17 of 26214400 bytes");
  EXPECT_EQ(text({.kind = CommKind::kBroadcast, .count = 3, .dtype = Dtype::kBFloat16}, 2, " among ranks 0, 2"),
            "broadcast #2 of 6 bytes among ranks 0, 2");
  EXPECT_EQ(text({.kind = CommKind::kSend, .count = 2, .dtype = Dtype::kInt64, .peer = 3, .tag = 7}, 5),
            "send of 16 bytes to rank 3 (tag 7)");
  EXPECT_EQ(text({.kind = CommKind::kReceive, .count = 1, .dtype = Dtype::kInt8, .peer = 1}, 5, " among ranks 1, 2"),
            "receive of 1 bytes from rank 1 (tag 0) among ranks 1, 2");
  EXPECT_EQ(text({.kind = CommKind::kBarrier}, 4, " among ranks 2, 3"), "barrier #4 among ranks 2, 3");
  EXPECT_EQ(text({.kind = CommKind::kBarrier}, 0, " among ranks 2, 3"), "new_group among ranks 2, 3")
      << "the program has called no barrier";
}

TEST(MpiOperation, AWaitThatIsTooShortSaysSoAndChangesNothing) {
  Operation operation = some_operation();
  try {
    operation.wait(milliseconds(1));
    FAIL() << "it is not done";
  } catch (const DistributedError& error) {
    EXPECT_THAT(error.what(), MatchesRegex("rank 2 of 4: all_reduce #1 of 4 bytes is not done after [0-9]+\\.[0-9] s: "
                                           "wait again, or longer"));
    EXPECT_THAT(error.ranks(), IsEmpty());
  }
  EXPECT_FALSE(operation.is_completed());
  EXPECT_FALSE(operation.is_awaited());
  operation.finish();
  EXPECT_TRUE(operation.is_completed());
  operation.wait(milliseconds(1));
  operation.wait(milliseconds(0));
}

TEST(MpiOperation, IsAwaitedAsLongAsAThreadWaits) {
  Operation operation = some_operation();
  EXPECT_FALSE(operation.is_awaited());
  std::thread waits([&] { operation.wait(milliseconds(60'000)); });
  while (!operation.is_awaited()) std::this_thread::yield();
  operation.finish();
  waits.join();
  EXPECT_FALSE(operation.is_awaited());
}

TEST(MpiOperation, OfItsEndsTheFirstOneCounts) {
  Operation failed = some_operation();
  failed.fail(DistributedError("rank 1 has ended", {1}, ExitCode::kOutOfMemory));
  failed.fail(DistributedError("something else", {3}));
  EXPECT_TRUE(failed.is_completed());
  for (int times = 0; times < 2; ++times) {
    try {
      failed.wait(milliseconds(0));
      FAIL() << "it has failed";
    } catch (const DistributedError& error) {
      EXPECT_STREQ(error.what(), "rank 1 has ended");
      EXPECT_THAT(error.ranks(), ElementsAre(1));
      EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
    }
  }
  Operation done = some_operation();
  done.finish();
  done.fail(DistributedError("too late", {1}));
  done.wait(milliseconds(0));
}

TEST(MpiOperation, TakesFromItsFirstTurnToItsEndAndIsLateBehindItsTimeout) {
  const auto before = Clock::now();
  Operation operation = some_operation();
  EXPECT_EQ(operation.timeout(), milliseconds(5000));
  EXPECT_GE(operation.deadline(), before + milliseconds(5000));
  EXPECT_LE(operation.deadline(), Clock::now() + milliseconds(5000));
  operation.begun();
  for (const auto begun = Clock::now(); Clock::now() < begun + milliseconds(2);) continue;
  operation.begun();
  operation.finish();
  EXPECT_GE(operation.seconds(), 0.002);
  EXPECT_LE(operation.seconds(), std::chrono::duration<double>(Clock::now() - before).count());
}

TEST(MpiMessage, WordsAreCutWhereTheyDoNotFit) {
  ControlMessage message;
  std::string words(3000, 'x');
  message.set_text(words);
  EXPECT_EQ(std::string(message.text.data()), words.substr(0, message.text.size() - 1));
  message.set_text("less");
  EXPECT_STREQ(message.text.data(), "less");
  const std::string just(message.text.size() - 1, 'y');
  message.set_text(just);
  EXPECT_EQ(message.text.data(), just);
}

TEST(MpiMessage, NamesTheFirst32RanksThatAreToBlame) {
  std::vector<int> ranks(40);
  std::iota(ranks.begin(), ranks.end(), 3);
  ControlMessage message;
  message.set_blamed({5, 1});
  EXPECT_THAT(message.blamed_ranks(), ElementsAre(5, 1));
  message.set_blamed(ranks);
  EXPECT_EQ(message.blamed_ranks(), std::vector<int>(ranks.begin(), ranks.begin() + 32));
  message.set_blamed({});
  EXPECT_THAT(message.blamed_ranks(), IsEmpty());
}

TEST(MpiMessage, TellsWhereARankIs) {
  ControlMessage message;
  message.set_position(
      {.came_to = {{0, 7}, {12, 3}},
       .last = "barrier #3 among ranks 0, 2",
       .awaits = AwaitedOperation{.group = 12, .number = 4, .ranks = {0, 2}, .text = "all_gather #4"}});
  const RankPosition position = message.position(4);
  EXPECT_THAT(position.came_to, ElementsAre(Pair(0, 7), Pair(12, 3)));
  EXPECT_EQ(position.last, "barrier #3 among ranks 0, 2");
  ASSERT_TRUE(position.awaits.has_value());
  EXPECT_EQ(position.awaits->group, 12);
  EXPECT_EQ(position.awaits->number, 4);
  EXPECT_THAT(position.awaits->ranks, ElementsAre(0, 2));
  EXPECT_EQ(position.awaits->text, "all_gather #4");
}

TEST(MpiMessage, OfARankThatWaitsForNothingSaysSo) {
  ControlMessage message;
  message.set_position({.came_to = {}, .last = "nothing", .awaits = {}});
  EXPECT_FALSE(message.position(4).awaits.has_value());
  EXPECT_THAT(message.position(4).came_to, IsEmpty());
  EXPECT_EQ(message.position(4).last, "nothing");
}

// More than a message has place for: of a collective of all ranks it does not have to say which they are.
TEST(MpiMessage, ACollectiveOfAllIsAwaitedFromEachRankAndAMessageFromOne) {
  std::vector<int> all(50);
  std::iota(all.begin(), all.end(), 0);
  ControlMessage collective;
  collective.set_position({.came_to = {{0, 8}},
                           .last = "",
                           .awaits = AwaitedOperation{.group = 0, .number = 9, .ranks = all, .text = "x"}});
  EXPECT_EQ(collective.position(50).awaits->ranks, all);
  ControlMessage receive;
  receive.set_position({.came_to = {{0, 8}},
                        .last = "",
                        .awaits = AwaitedOperation{.group = 0, .number = 0, .ranks = {3}, .text = "y"}});
  EXPECT_THAT(receive.position(50).awaits->ranks, ElementsAre(3));
}

TEST(MpiMessage, OfMoreThanSixteenGroupsTheFirstAreTold) {
  RankPosition position{.came_to = {}, .last = "", .awaits = {}};
  for (std::int64_t group = 0; group < 20; ++group) position.came_to[group] = 100 + group;
  ControlMessage message;
  message.set_position(position);
  std::map<std::int64_t, std::int64_t> told = position.came_to;
  for (std::int64_t group = 16; group < 20; ++group) told.erase(group);
  EXPECT_EQ(message.position(4).came_to, told);
}

template <class T>
std::vector<T> combined(ReduceOp op, Dtype dtype, std::vector<T> into, const std::vector<T>& from) {
  combine(op, dtype, into.data(), from.data(), from.size());
  return into;
}

TEST(MpiReductions, AreThoseOfTheirOperation) {
  const std::vector<float> a = {3, -2, 0.5F, 8}, b = {4, -5, 0.25F, 8};
  EXPECT_THAT(combined(ReduceOp::kSum, Dtype::kFloat32, a, b), ElementsAre(7, -7, 0.75F, 16));
  EXPECT_THAT(combined(ReduceOp::kProduct, Dtype::kFloat32, a, b), ElementsAre(12, 10, 0.125F, 64));
  EXPECT_THAT(combined(ReduceOp::kMin, Dtype::kFloat32, a, b), ElementsAre(3, -5, 0.25F, 8));
  EXPECT_THAT(combined(ReduceOp::kMax, Dtype::kFloat32, a, b), ElementsAre(4, -2, 0.5F, 8));
}

TEST(MpiReductions, OfIntegersGoAroundAndOfMoreElementsThanThereAreTouchNone) {
  EXPECT_THAT(combined<std::uint8_t>(ReduceOp::kSum, Dtype::kUInt8, {200, 1, 9}, {100, 2}), ElementsAre(44, 3, 9));
  EXPECT_THAT(combined<std::int8_t>(ReduceOp::kProduct, Dtype::kInt8, {100, -3}, {3, 5}), ElementsAre(44, -15));
  EXPECT_THAT(combined<std::int64_t>(ReduceOp::kMax, Dtype::kInt64, {INT64_MIN, 5}, {INT64_MAX, -5}),
              ElementsAre(INT64_MAX, 5));
}

TEST(MpiReductions, OfBooleansAreOrAndAnd) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kProduct, ReduceOp::kMin}) {
    std::array<bool, 4> into = {false, false, true, true};
    const std::array<bool, 4> from = {false, true, false, true};
    combine(op, Dtype::kBool, into.data(), from.data(), 4);
    const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
    EXPECT_THAT(into, ElementsAre(false, is_or, is_or, true)) << name_of(op);
  }
}

// 2049 and 257 lie in the middle between two numbers: the even one.
TEST(MpiReductions, Of16BitsAreRoundedOnceEach) {
  const auto sum = [](Dtype dtype, auto into, auto from) {
    combine(ReduceOp::kSum, dtype, &into, &from, 1);
    return static_cast<float>(into);
  };
  EXPECT_EQ(sum(Dtype::kFloat16, Half(2048.0F), Half(1.0F)), 2048.0F);
  EXPECT_EQ(sum(Dtype::kFloat16, Half(2048.0F), Half(3.0F)), 2052.0F);
  EXPECT_EQ(sum(Dtype::kBFloat16, BFloat16(256.0F), BFloat16(1.0F)), 256.0F);
  EXPECT_EQ(sum(Dtype::kBFloat16, BFloat16(256.0F), BFloat16(3.0F)), 260.0F);
}

}  // namespace
}  // namespace tenon::mpi
