// What every communicator does alike: arguments are checked, operations are counted.
#include "recording_communicator.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using Recording = test::RecordingCommunicator;

TEST(Communicator, ARequestCarriesWhatTheCallSaid) {
  Recording ranks;
  float values[3] = {};
  ranks.all_reduce({.data = values, .count = 3}, ReduceOp::kMax)->wait();
  ranks.broadcast({.data = values, .count = 2}, /*root=*/3)->wait();
  ASSERT_EQ(ranks.requests.size(), 2U);
  EXPECT_EQ(ranks.requests[0].kind, CommKind::kAllReduce);
  EXPECT_EQ(ranks.requests[0].op, ReduceOp::kMax);
  EXPECT_EQ(ranks.requests[0].output, values);
  EXPECT_EQ(ranks.requests[0].count, 3U);
  EXPECT_EQ(ranks.requests[1].peer, 3);
}

TEST(Communicator, OperationsAndTheirBytesAreCountedByKind) {
  Recording ranks;
  double whole[8] = {}, share[2] = {};
  ranks
      .all_gather({.data = whole, .count = 8, .dtype = Dtype::kFloat64},
                  {.data = share, .count = 2, .dtype = Dtype::kFloat64})
      ->wait();
  ranks.barrier()->wait();
  ranks.barrier()->wait();
  EXPECT_EQ(ranks.stats().calls_of(CommKind::kAllGather), 1);
  EXPECT_EQ(ranks.stats().bytes_of(CommKind::kAllGather), 16);
  EXPECT_EQ(ranks.stats().calls_of(CommKind::kBarrier), 2);
  EXPECT_EQ(ranks.stats().calls_of(CommKind::kAllReduce), 0);
}

TEST(Communicator, AMistakeIsRefusedWithTheRankAndTheNumbers) {
  Recording ranks;
  float values[8] = {};
  double doubles[2] = {};
  const CommBuffer eight{.data = values, .count = 8}, two{.data = values, .count = 2};
  test::expect_error([&] { static_cast<void>(ranks.all_reduce({.data = nullptr, .count = 3}, ReduceOp::kSum)); },
                     "rank 1 of 4: all_reduce: 3 elements behind a null pointer");
  test::expect_error([&] { static_cast<void>(ranks.broadcast(two, 4)); }, "broadcast: there is no rank 4");
  test::expect_error(
      [&] { static_cast<void>(ranks.reduce_scatter({.data = values, .count = 3}, eight, ReduceOp::kSum)); },
      "8 elements in all are not 3 from each of 4 ranks");
  test::expect_error(
      [&] { static_cast<void>(ranks.all_gather(eight, {.data = doubles, .count = 2, .dtype = Dtype::kFloat64})); },
      "the whole is float32, a rank's share float64");
  test::expect_error([&] { static_cast<void>(ranks.send(two, 1)); }, "send: the other rank is this one");
  test::expect_error([&] { static_cast<void>(ranks.receive(two, 2, -1)); }, "the tag -1 is negative");
  EXPECT_TRUE(ranks.requests.empty());
  EXPECT_EQ(ranks.stats().calls_of(CommKind::kBroadcast), 0);
}

TEST(Communicator, AGroupWithoutItsRankOrWithOneTwiceIsRefused) {
  Recording ranks;
  test::expect_error(
      [&] {
        static_cast<void>(ranks.new_group({1, 4}));
      },
      "rank 1 of 4: new_group: there is no rank 4: they are 0 to 3");
  test::expect_error([&] { static_cast<void>(ranks.new_group({1, 2, 1})); }, "rank 1 is in it twice");
  test::expect_error(
      [&] {
        static_cast<void>(ranks.new_group({0, 2}));
      },
      "the group of ranks 0, 2 is without this one");
  test::expect_error([&] { static_cast<void>(ranks.new_group({1, 2})); }, "this communicator cannot be divided");
}

TEST(Communicator, AnErrorKnowsTheRanksAndTheExitCode) {
  const DistributedError error("words", {3, 1}, ExitCode::kOutOfMemory);
  EXPECT_THAT(error.ranks(), testing::ElementsAre(1, 3));
  EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
}

/// Rank 1 of 4, where the others have these colors and keys.
class Divided final : public Communicator {
 public:
  explicit Divided(std::vector<std::int32_t> colors_and_keys) : all_(std::move(colors_and_keys)) {}
  int rank() const override { return 1; }
  int size() const override { return 4; }
  void monitored_barrier(std::chrono::milliseconds) override {}
  void abort(std::string_view, ExitCode) noexcept override {}
  std::vector<int> members;
  int groups = 0;

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override {
    EXPECT_EQ(request.kind, CommKind::kAllGather);
    EXPECT_EQ(request.dtype, Dtype::kInt32);
    std::memcpy(&all_[2], request.input, 2 * sizeof(std::int32_t));
    std::memcpy(request.output, all_.data(), all_.size() * sizeof(std::int32_t));
    return std::make_shared<test::DoneWork>();
  }
  std::shared_ptr<Communicator> make_group(const std::vector<int>& ranks) override {
    members = ranks;
    ++groups;
    return nullptr;
  }

 private:
  std::vector<std::int32_t> all_;
};

TEST(Split, HasTheRanksOfAColorByTheirKeysAndEqualKeysByTheirRanks) {
  Divided by_key({5, 9, 0, 0, 5, -3, 4, 0});
  static_cast<void>(by_key.split(5, 2));
  EXPECT_THAT(by_key.members, testing::ElementsAre(2, 1, 0));
  Divided by_rank({5, 7, 0, 0, 6, 7, 5, 7});
  static_cast<void>(by_rank.split(5, 7));
  EXPECT_THAT(by_rank.members, testing::ElementsAre(0, 1, 3));
  Divided zero({0, 0, 0, 0, 1, 0, 0, 0});
  static_cast<void>(zero.split(0));
  EXPECT_THAT(zero.members, testing::ElementsAre(0, 1, 3)) << "0 is a color as others are";
}

TEST(Split, OfANegativeColorIsNoGroupThoughTheOthersMakeTheirs) {
  Divided ranks({-1, 0, 0, 0, -1, 0, 3, 0});
  static_cast<void>(ranks.split(-1));
  EXPECT_TRUE(ranks.members.empty());
  EXPECT_EQ(ranks.groups, 1) << "every rank takes part in making groups";
}

}  // namespace
}  // namespace tenon
