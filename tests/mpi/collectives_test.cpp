// The operations of the plugin mpi, over four real ranks.
#include "comm/ranks.h"
#include "support/expect_error.h"

#include <tenon/core/half.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace tenon::test {
namespace {

template <class T>
CommBuffer buffer(std::vector<T>& values) {
  return {.data = values.data(), .count = values.size(), .dtype = dtype_of<T>};
}

int rank() { return ranks()->rank(); }
int size() { return ranks()->size(); }

TEST(MpiCollectives, FourRanksMeet) {
  EXPECT_EQ(size(), 4);
  EXPECT_GE(rank(), 0);
  EXPECT_LT(rank(), 4);
  EXPECT_EQ(ranks()->device_kind(), "");
}

template <class T>
void all_reduces_to(ReduceOp op, float of_ranks_1_to_4) {
  std::vector<T> values(5, T(static_cast<float>(rank() + 1)));
  ranks()->all_reduce(buffer(values), op)->wait();
  for (const T& value : values) EXPECT_EQ(static_cast<float>(value), of_ranks_1_to_4) << name_of(dtype_of<T>);
}

template <class T>
void all_reduces() {
  all_reduces_to<T>(ReduceOp::kSum, 10);
  all_reduces_to<T>(ReduceOp::kProduct, 24);
  all_reduces_to<T>(ReduceOp::kMin, 1);
  all_reduces_to<T>(ReduceOp::kMax, 4);
}

TEST(MpiCollectives, AllReduceKnowsEveryDtypeAndOperation) {
  all_reduces<std::uint8_t>();
  all_reduces<std::int8_t>();
  all_reduces<std::int16_t>();
  all_reduces<std::int32_t>();
  all_reduces<std::int64_t>();
  all_reduces<Half>();
  all_reduces<BFloat16>();
  all_reduces<float>();
  all_reduces<double>();
}

TEST(MpiCollectives, OfBooleansSumAndMaxAreOrProductAndMinAreAnd) {
  for (const auto& [op, expected] : {std::pair{ReduceOp::kSum, true},
                                     {ReduceOp::kMax, true},
                                     {ReduceOp::kProduct, false},
                                     {ReduceOp::kMin, false}}) {
    bool value = rank() == 2;
    ranks()->all_reduce({.data = &value, .count = 1, .dtype = Dtype::kBool}, op)->wait();
    EXPECT_EQ(value, expected) << name_of(op);
  }
}

TEST(MpiCollectives, InTheOrderOfRanksEveryDtypeGivesTheSame) {
  OtherRanks ordered("mpi:timeout=60,order=rank");
  all_reduces<std::uint8_t>();
  all_reduces<std::int64_t>();
  all_reduces<Half>();
  all_reduces<BFloat16>();
  all_reduces<double>();
  std::vector<float> short_one = {static_cast<float>(rank())};  // fewer elements than ranks
  ranks()->all_reduce(buffer(short_one), ReduceOp::kSum)->wait();
  EXPECT_EQ(short_one[0], 6);
}

/// What a rank brings along: the same on whoever asks.
std::vector<float> values_of(int of_rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(of_rank) + 1);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random() % 10'000), static_cast<int>(random() % 20));
  return values;
}

TEST(MpiCollectives, TheOrderOfRanksGivesTheBitsOfALoopOverThem) {
  OtherRanks ordered("mpi:timeout=60,order=rank");
  constexpr std::size_t kCount = 100'003;
  std::vector<float> expected = values_of(0, kCount);
  for (int other = 1; other < size(); ++other) {
    const std::vector<float> more = values_of(other, kCount);
    for (std::size_t i = 0; i < kCount; ++i) expected[i] += more[i];
  }
  std::vector<float> values = values_of(rank(), kCount);
  ranks()->all_reduce(buffer(values), ReduceOp::kSum)->wait();
  EXPECT_EQ(std::memcmp(values.data(), expected.data(), kCount * sizeof(float)), 0);

  std::vector<float> whole = values_of(rank(), 4000), share(1000);
  std::vector<float> sum = values_of(0, 4000);
  for (int other = 1; other < size(); ++other) {
    const std::vector<float> more = values_of(other, 4000);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  ranks()->reduce_scatter(buffer(share), buffer(whole), ReduceOp::kSum)->wait();
  EXPECT_EQ(std::memcmp(share.data(), sum.data() + 1000 * rank(), 1000 * sizeof(float)), 0);
}

TEST(MpiCollectives, BroadcastGivesTheRootsValues) {
  for (int root = 0; root < size(); ++root) {
    std::vector<double> values(1000, rank());
    ranks()->broadcast(buffer(values), root)->wait();
    EXPECT_EQ(values, std::vector<double>(1000, root));
  }
}

TEST(MpiCollectives, AllGatherJoinsInTheOrderOfRanks) {
  std::vector<std::int32_t> share = {rank(), 10 * rank()}, whole(8, -1);
  ranks()->all_gather(buffer(whole), buffer(share))->wait();
  EXPECT_EQ(whole, (std::vector<std::int32_t>{0, 0, 1, 10, 2, 20, 3, 30}));
}

TEST(MpiCollectives, AllGatherTakesAShareThatLiesInItsPlace) {
  std::vector<std::int32_t> whole(4, -1);
  whole[static_cast<std::size_t>(rank())] = 7 * rank();
  ranks()
      ->all_gather(buffer(whole),
                   {.data = &whole[static_cast<std::size_t>(rank())], .count = 1, .dtype = Dtype::kInt32})
      ->wait();
  EXPECT_EQ(whole, (std::vector<std::int32_t>{0, 7, 14, 21}));
}

TEST(MpiCollectives, ReduceScatterLeavesEachRankItsPart) {
  std::vector<float> whole(8), share(2);
  std::iota(whole.begin(), whole.end(), static_cast<float>(rank()));
  ranks()->reduce_scatter(buffer(share), buffer(whole), ReduceOp::kSum)->wait();
  const float first = 4.0F * 2 * static_cast<float>(rank()) + 6;
  EXPECT_EQ(share, (std::vector<float>{first, first + 4}));
}

TEST(MpiCollectives, SendAndReceivePairUpByTag) {
  std::vector<std::int64_t> first = {100 + rank()}, second = {200 + rank()}, got_first(1), got_second(1);
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  auto receives_second = ranks()->receive(buffer(got_second), before, /*tag=*/2);
  auto receives_first = ranks()->receive(buffer(got_first), before, /*tag=*/1);
  auto sends_first = ranks()->send(buffer(first), next, 1);
  auto sends_second = ranks()->send(buffer(second), next, 2);
  for (const auto& work : {receives_first, receives_second, sends_first, sends_second}) work->wait();
  EXPECT_EQ(got_first[0], 100 + before);
  EXPECT_EQ(got_second[0], 200 + before);
}

TEST(MpiCollectives, AReceiveThatWaitsHoldsNothingUp) {
  std::vector<std::int32_t> got(1), value = {1};
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  auto receives = ranks()->receive(buffer(got), before);
  ranks()->all_reduce(buffer(value), ReduceOp::kSum)->wait();
  EXPECT_EQ(value[0], 4);
  EXPECT_FALSE(receives->is_completed());
  std::vector<std::int32_t> mine = {rank()};
  ranks()->barrier()->wait();
  auto sends = ranks()->send(buffer(mine), next);
  receives->wait();
  sends->wait();
  EXPECT_EQ(got[0], before);
}

TEST(MpiCollectives, ManyAreUnderWayAtOnceAndEndInTheirOrder) {
  std::vector<std::vector<float>> buckets(40, std::vector<float>(5000, 1.0F));
  std::vector<std::shared_ptr<Work>> works;
  for (auto& bucket : buckets) works.push_back(ranks()->all_reduce(buffer(bucket), ReduceOp::kSum));
  works.back()->wait();
  for (std::size_t i = 0; i < works.size(); ++i) {
    EXPECT_TRUE(works[i]->is_completed()) << i;
    EXPECT_EQ(buckets[i].front(), 4);
    EXPECT_EQ(buckets[i].back(), 4);
  }
  EXPECT_GT(works.back()->seconds(), 0);
}

TEST(MpiCollectives, NothingIsAsGoodAsSomething) {
  std::vector<float> none;
  ranks()->all_reduce(buffer(none), ReduceOp::kSum)->wait();
  ranks()->broadcast(buffer(none), 0)->wait();
}

TEST(MpiCollectives, WhatMpiCannotCountIsRefused) {
  float value = 0;
  expect_error([&] { ranks()->all_reduce({.data = &value, .count = std::size_t{1} << 31}, ReduceOp::kSum)->wait(); },
               "all_reduce of 2147483648 elements: MPI counts no more than 2147483647 in one call");
}

TEST(MpiCollectives, ATagThatMpiDoesNotHaveIsRefused) {
  float value = 0;
  const int other = ranks()->rank() == 0 ? 1 : 0;
  expect_error([&] { ranks()->send({.data = &value, .count = 1}, other, 1'000'000'001)->wait(); },
               "send: the tag 1000000001 is above 1000000000, the largest one over MPI");
}

TEST(MpiCollectives, AMonitoredBarrierThatAllComeToPasses) { ranks()->monitored_barrier(std::chrono::seconds(30)); }

// MPI uses the number of a closed communicator again: what came after a rank's last word was heard in the next one, and
// ranks that it was slow in had "closed its communicator".
TEST(MpiCollectives, ACommunicatorThatIsClosedAtOnceLeavesNothingToTheNext) {
  for (int i = 0; i < 40; ++i) {
    { const OtherRanks closed_at_once("mpi:timeout=60"); }
    if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ASSERT_NO_THROW(ranks()->barrier({})->wait()) << "round " << i;
  }
}

TEST(MpiCollectives, AProcessHasOneCommunicatorAtATime) {
  EXPECT_EQ(ranks()->size(), 4);
  OtherRanks again("mpi:timeout=60");
  std::vector<float> values = {1};
  ranks()->all_reduce(buffer(values), ReduceOp::kSum)->wait();
  EXPECT_EQ(values[0], 4);
}

}  // namespace
}  // namespace tenon::test
