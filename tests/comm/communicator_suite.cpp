// The conformance suite of communicators: what every one promises, over four ranks, on the memory that it takes.
// A program of ranks links it and says with ranks() which one is meant.
#include "comm/ranks.h"

#include <tenon/comm/rank_environment.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

namespace tenon::test::communicator_suite {
namespace {

int rank() { return ranks()->rank(); }
int size() { return ranks()->size(); }

Device device() {
  const std::string kind = ranks()->device_kind();
  return kind.empty() ? Device(kCPU) : Device(DeviceType::named(kind), rank_environment().local_rank);
}

/// On the communicator's device.
Tensor filled(std::int64_t count, double value, Dtype dtype = kFloat32) {
  return tenon::full({count}, value, TensorOptions(kFloat64)).to(dtype).to(device());
}

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor host = tensor.to(kCPU).to(kFloat64);
  std::vector<double> values;
  for (std::int64_t i = 0; i < host.numel(); ++i) values.push_back(host[i].item<double>());
  return values;
}

CommBuffer buffer(const Tensor& tensor) {
  return {.data = tensor.data_ptr(), .count = static_cast<std::size_t>(tensor.numel()), .dtype = tensor.scalar_type()};
}

TEST(CommunicatorSuite, FourRanksMeet) {
  ASSERT_EQ(size(), 4);
  EXPECT_EQ(rank(), rank_environment().rank);
}

TEST(CommunicatorSuite, AllReduceKnowsEveryOperationOnEveryDtype) {
  const std::pair<ReduceOp, double> expected[] = {
      {ReduceOp::kSum, 10}, {ReduceOp::kProduct, 24}, {ReduceOp::kMin, 1}, {ReduceOp::kMax, 4}};
  for (const Dtype dtype : {kUInt8, kInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for (const auto& [op, value] : expected) {
      const Tensor values = filled(5, rank() + 1, dtype);
      distributed::all_reduce(*ranks(), values, op)->wait();
      EXPECT_EQ(values_of(values), std::vector<double>(5, value)) << name_of(dtype) << " " << name_of(op);
    }
  }
}

TEST(CommunicatorSuite, OfBooleansSumAndMaxAreOrProductAndMinAreAnd) {
  for (const auto& [op, expected] :
       {std::pair{ReduceOp::kSum, 1.0}, {ReduceOp::kMax, 1.0}, {ReduceOp::kProduct, 0.0}, {ReduceOp::kMin, 0.0}}) {
    const Tensor value = filled(1, rank() == 2 ? 1 : 0, kBool);
    distributed::all_reduce(*ranks(), value, op)->wait();
    EXPECT_EQ(values_of(value)[0], expected) << name_of(op);
  }
}

TEST(CommunicatorSuite, BroadcastGivesTheRootsValuesOfAnyDtype) {
  for (int root = 0; root < size(); ++root) {
    for (const Dtype dtype : {kBool, kInt16, kFloat64}) {
      const Tensor values = filled(1000, rank() == root ? 1 : 0, dtype);
      distributed::broadcast(*ranks(), values, root)->wait();
      EXPECT_EQ(values_of(values), std::vector<double>(1000, 1)) << root;
    }
  }
}

TEST(CommunicatorSuite, AllGatherJoinsInTheOrderOfRanks) {
  const Tensor share = filled(2, rank(), kInt32), whole = filled(8, -1, kInt32);
  distributed::all_gather_into_tensor(*ranks(), whole, share)->wait();
  EXPECT_EQ(values_of(whole), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(CommunicatorSuite, AllGatherTakesAShareThatLiesInItsPlace) {
  const Tensor whole = filled(8, 10 + rank());
  distributed::all_gather_into_tensor(*ranks(), whole, whole.narrow(0, 2 * rank(), 2))->wait();
  EXPECT_EQ(values_of(whole), (std::vector<double>{10, 10, 11, 11, 12, 12, 13, 13}));
}

TEST(CommunicatorSuite, ReduceScatterLeavesEachRankItsPart) {
  const Tensor whole = tenon::arange(8, TensorOptions(kFloat32)).to(device()) + rank(), share = filled(2, 0);
  distributed::reduce_scatter_tensor(*ranks(), share, whole)->wait();
  EXPECT_EQ(values_of(share), (std::vector<double>{8.0 * rank() + 6, 8.0 * rank() + 10}));
}

TEST(CommunicatorSuite, ReceivesMayBeginBeforeTheSendsThatTheyWaitFor) {
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  const Tensor from_before = filled(3, -1), from_next = filled(2, -1);
  const Tensor to_next = filled(3, 100 + rank()), to_before = filled(2, 200 + rank());
  std::vector<std::shared_ptr<Work>> works;
  works.push_back(ranks()->receive(buffer(from_before), before));
  works.push_back(ranks()->receive(buffer(from_next), next));
  works.push_back(ranks()->send(buffer(to_next), next));
  works.push_back(ranks()->send(buffer(to_before), before));
  for (const auto& work : works) work->wait();
  EXPECT_EQ(values_of(from_before), std::vector<double>(3, 100 + before));
  EXPECT_EQ(values_of(from_next), std::vector<double>(2, 200 + next));
}

TEST(CommunicatorSuite, ManyAreUnderWayAtOnceAndEndInTheirOrder) {
  std::vector<Tensor> buckets;
  std::vector<std::shared_ptr<Work>> works;
  for (int i = 0; i < 20; ++i) buckets.push_back(filled(3000, 1));
  for (const Tensor& bucket : buckets) works.push_back(distributed::all_reduce(*ranks(), bucket));
  works.back()->wait();
  for (std::size_t i = 0; i < works.size(); ++i) {
    EXPECT_TRUE(works[i]->is_completed()) << i;
    EXPECT_EQ(buckets[i].to(kCPU)[2999].item<float>(), 4);
  }
  EXPECT_GT(works.back()->seconds(), 0);
}

TEST(CommunicatorSuite, WhatWasComputedBeforeIsSentAndWhatComesAfterSeesTheResult) {
  Tensor x = filled(4096, 1);
  for (int i = 0; i < 5; ++i) {
    x = x * 2 + 1;
    distributed::all_reduce(*ranks(), x)->wait();
    x = x / 4;
  }
  EXPECT_EQ(values_of(x)[4095], 63);
}

TEST(CommunicatorSuite, AWaitThatIsTooShortSaysSoAndMayBeRepeated) {
  const auto beside = ranks()->split(0);
  const Tensor values = filled(4, 1);
  if (rank() != 0) beside->barrier()->wait();  // they come once rank 0 has waited in vain
  const auto work = distributed::all_reduce(*ranks(), values);
  if (rank() == 0) {
    EXPECT_THAT([&] { work->wait(std::chrono::milliseconds(1)); },
                testing::Throws<DistributedError>(
                    testing::AllOf(testing::Property(&DistributedError::ranks, testing::IsEmpty()),
                                   testing::Property(&Error::what, testing::HasSubstr("wait again, or longer")))));
    EXPECT_FALSE(work->is_completed());
    beside->barrier()->wait();
  }
  work->wait();
  EXPECT_EQ(values_of(values), std::vector<double>(4, 4));
}

TEST(CommunicatorSuite, ABarrierEndsWhenAllHaveComeToIt) {
  for (int i = 0; i < 3; ++i) ranks()->barrier()->wait();
  ranks()->monitored_barrier(std::chrono::seconds(30));
}

TEST(CommunicatorSuite, CountsWhatWentThrough) {
  const CommStats before = ranks()->stats();
  const Tensor values = filled(10, 1);
  distributed::all_reduce(*ranks(), values)->wait();
  EXPECT_EQ(ranks()->stats().calls_of(CommKind::kAllReduce) - before.calls_of(CommKind::kAllReduce), 1);
  EXPECT_EQ(ranks()->stats().bytes_of(CommKind::kAllReduce) - before.bytes_of(CommKind::kAllReduce), 40);
}

TEST(CommunicatorSuite, NothingIsAsGoodAsSomething) {
  const Tensor none = filled(0, 0);
  distributed::all_reduce(*ranks(), none)->wait();
  distributed::broadcast(*ranks(), none, 0)->wait();
}

/// On each rank of `group` the sum of what its ranks bring along.
double summed(Communicator& group, double value) {
  const Tensor values = filled(3, value);
  distributed::all_reduce(group, values)->wait();
  return values_of(values)[2];
}

TEST(CommunicatorSuite, ASplitGivesTheRanksOfEachColorInTheOrderOfTheirKeys) {
  const auto group = ranks()->split(/*color=*/rank() % 2, /*key=*/-rank());
  ASSERT_EQ(group->size(), 2);
  EXPECT_EQ(group->rank(), rank() < 2 ? 1 : 0);
  EXPECT_EQ(group->device_kind(), ranks()->device_kind());
  EXPECT_EQ(summed(*group, rank()), rank() % 2 == 0 ? 2 : 4);
  const Tensor root = filled(2, 10 + rank());
  distributed::broadcast(*group, root, /*root=*/0)->wait();
  EXPECT_EQ(values_of(root)[0], rank() % 2 == 0 ? 12 : 13);
  const Tensor whole = filled(2, -1), own = filled(1, rank());
  distributed::all_gather_into_tensor(*group, whole, own)->wait();
  EXPECT_EQ(values_of(whole), rank() % 2 == 0 ? (std::vector<double>{2, 0}) : (std::vector<double>{3, 1}));
  group->barrier()->wait();
}

TEST(CommunicatorSuite, EqualKeysKeepTheOrderOfRanksAndANegativeColorIsInNoGroup) {
  const auto group = ranks()->split(rank() == 1 ? -1 : 0);
  if (rank() == 1) {
    EXPECT_EQ(group, nullptr);
    return;
  }
  ASSERT_EQ(group->size(), 3);
  EXPECT_EQ(group->rank(), rank() == 0 ? 0 : rank() - 1);
  EXPECT_EQ(summed(*group, 1), 3);
}

TEST(CommunicatorSuite, GroupsAndTheirWholeAreUsedSideBySide) {
  const auto rows = ranks()->split(rank() / 2), columns = ranks()->split(rank() % 2);
  std::vector<Tensor> values;
  std::vector<std::shared_ptr<Work>> works;
  for (int i = 0; i < 3; ++i) {
    for (Communicator* const one : {rows.get(), columns.get(), ranks().get()}) {
      values.push_back(filled(100, rank() + 1));
      works.push_back(distributed::all_reduce(*one, values.back()));
    }
  }
  for (const auto& work : works) work->wait();
  for (std::size_t i = 0; i < values.size(); i += 3) {
    EXPECT_EQ(values_of(values[i])[99], rank() / 2 == 0 ? 3 : 7);
    EXPECT_EQ(values_of(values[i + 1])[99], rank() % 2 == 0 ? 4 : 6);
    EXPECT_EQ(values_of(values[i + 2])[99], 10);
  }
}

TEST(CommunicatorSuite, RanksOfAGroupSendToEachOther) {
  const auto pair = ranks()->split(rank() / 2);
  const Tensor mine = filled(4, 50 + rank()), others = filled(4, -1);
  const auto received = pair->receive(buffer(others), 1 - pair->rank());
  const auto sent = pair->send(buffer(mine), 1 - pair->rank());
  sent->wait();
  received->wait();
  EXPECT_EQ(values_of(others), std::vector<double>(4, 50 + (rank() ^ 1)));
}

TEST(CommunicatorSuite, AGroupIsDividedAgainAndOutlivesTheOneItCameFrom) {
  std::shared_ptr<Communicator> inner;
  {
    const auto three = ranks()->split(rank() == 3 ? 1 : 0);
    inner = three->split(three->rank() == 0 ? 0 : 1);
  }
  EXPECT_EQ(inner->size(), rank() == 1 || rank() == 2 ? 2 : 1);
  EXPECT_EQ(summed(*inner, 1), inner->size());
}

TEST(CommunicatorSuite, GroupsAreDividedAsOftenAsOneLikes) {
  std::shared_ptr<Communicator> group = ranks()->split(0);
  for (int level = 0; level < 4; ++level) {
    const auto halves = group->split(rank() / 2);
    group = group->split(0);
    EXPECT_EQ(summed(*group, 1), 4) << level;
    EXPECT_EQ(summed(*halves, rank()), rank() < 2 ? 1 : 5) << level;
  }
}

TEST(CommunicatorSuite, EveryRankMayNameItsGroup) {
  const std::vector<int> mine = rank() < 2 ? std::vector<int>{1, 0} : std::vector<int>{2, 3};
  const auto group = ranks()->new_group(mine);
  EXPECT_EQ(group->rank(), rank() < 2 ? 1 - rank() : rank() - 2);
  EXPECT_EQ(summed(*group, rank()), rank() < 2 ? 1 : 5);
}

}  // namespace
}  // namespace tenon::test::communicator_suite
