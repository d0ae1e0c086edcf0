// What an implementation is asked for, operation by operation, and what is counted of each.
#include "recording_communicator.h"
#include "support/expect_error.h"

#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Requests : testing::Test {
  test::RecordingCommunicator ranks{3};
  double whole[6] = {}, share[2] = {};
  const CommBuffer six{.data = whole, .count = 6, .dtype = Dtype::kFloat64};
  const CommBuffer two{.data = share, .count = 2, .dtype = Dtype::kFloat64};
  const CommOptions patient{.timeout = std::chrono::milliseconds(77), .stream = {}};

  /// What the only one was, which the implementation got with that patience.
  CommRequest only(const std::shared_ptr<Work>& work) {
    work->wait();
    EXPECT_EQ(ranks.requests.size(), 1U);
    const CommRequest request = ranks.requests.at(0);
    EXPECT_EQ(request.options.timeout, patient.timeout);
    ranks.requests.clear();
    return request;
  }
  void expect_counted(CommKind kind, std::int64_t bytes) {
    for (int other = 0; other < kCommKindCount; ++other) {
      const bool is_it = other == static_cast<int>(kind);
      EXPECT_EQ(ranks.stats().calls[other], is_it ? 1 : 0) << name_of(static_cast<CommKind>(other));
      EXPECT_EQ(ranks.stats().bytes[other], is_it ? bytes : 0) << name_of(static_cast<CommKind>(other));
    }
  }
};

TEST_F(Requests, AllReduceReadsAndWritesItsBuffer) {
  const CommRequest asked = only(ranks.all_reduce(six, ReduceOp::kMin, patient));
  EXPECT_EQ(asked.kind, CommKind::kAllReduce);
  EXPECT_EQ(asked.output, whole);
  EXPECT_EQ(asked.input, whole);
  EXPECT_EQ(asked.count, 6U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  EXPECT_EQ(asked.op, ReduceOp::kMin);
  expect_counted(CommKind::kAllReduce, 48);
}

TEST_F(Requests, BroadcastNamesItsRoot) {
  const CommRequest asked = only(ranks.broadcast(two, 2, patient));
  EXPECT_EQ(asked.kind, CommKind::kBroadcast);
  EXPECT_EQ(asked.output, share);
  EXPECT_EQ(asked.input, share);
  EXPECT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  EXPECT_EQ(asked.peer, 2);
  expect_counted(CommKind::kBroadcast, 16);
}

TEST_F(Requests, AllGatherCountsTheShareThatARankBrings) {
  const CommRequest asked = only(ranks.all_gather(six, two, patient));
  EXPECT_EQ(asked.kind, CommKind::kAllGather);
  EXPECT_EQ(asked.output, whole);
  EXPECT_EQ(asked.input, share);
  EXPECT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  expect_counted(CommKind::kAllGather, 16);
}

TEST_F(Requests, ReduceScatterAsksForTheShareAndCountsTheWhole) {
  const CommRequest asked = only(ranks.reduce_scatter(two, six, ReduceOp::kProduct, patient));
  EXPECT_EQ(asked.kind, CommKind::kReduceScatter);
  EXPECT_EQ(asked.output, share);
  EXPECT_EQ(asked.input, whole);
  EXPECT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  EXPECT_EQ(asked.op, ReduceOp::kProduct);
  expect_counted(CommKind::kReduceScatter, 48);
}

TEST_F(Requests, ASendOnlyReads) {
  const CommRequest asked = only(ranks.send(two, 2, 5, patient));
  EXPECT_EQ(asked.kind, CommKind::kSend);
  EXPECT_EQ(asked.input, share);
  EXPECT_EQ(asked.output, nullptr);
  EXPECT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  EXPECT_EQ(asked.peer, 2);
  EXPECT_EQ(asked.tag, 5);
  expect_counted(CommKind::kSend, 16);
}

TEST_F(Requests, AReceiveOnlyWrites) {
  const CommRequest asked = only(ranks.receive(two, 0, 6, patient));
  EXPECT_EQ(asked.kind, CommKind::kReceive);
  EXPECT_EQ(asked.output, share);
  EXPECT_EQ(asked.input, nullptr);
  EXPECT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.dtype, Dtype::kFloat64);
  EXPECT_EQ(asked.peer, 0);
  EXPECT_EQ(asked.tag, 6);
  expect_counted(CommKind::kReceive, 16);
}

TEST_F(Requests, ABarrierHasNoElements) {
  const CommRequest asked = only(ranks.barrier(patient));
  EXPECT_EQ(asked.kind, CommKind::kBarrier);
  EXPECT_EQ(asked.count, 0U);
  expect_counted(CommKind::kBarrier, 0);
}

TEST_F(Requests, OfManyAreCountedTogether) {
  for (int i = 0; i < 3; ++i) ranks.all_reduce(two, ReduceOp::kSum)->wait();
  EXPECT_EQ(ranks.stats().calls_of(CommKind::kAllReduce), 3);
  EXPECT_EQ(ranks.stats().bytes_of(CommKind::kAllReduce), 48);
}

TEST_F(Requests, EveryOperationRefusesElementsWithoutMemory) {
  const CommBuffer none{.data = nullptr, .count = 2, .dtype = Dtype::kFloat64};
  const CommBuffer no_whole{.data = nullptr, .count = 6, .dtype = Dtype::kFloat64};
  const auto refused = [](const std::string& kind, std::size_t count) {
    return ThrowsMessage<Error>(HasSubstr("rank 1 of 3: " + kind + ": " + std::to_string(count) +
                                          " elements behind a null pointer: give their memory, or no elements"));
  };
  EXPECT_THAT([&] { std::ignore = ranks.all_reduce(none, ReduceOp::kSum); }, refused("all_reduce", 2));
  EXPECT_THAT([&] { std::ignore = ranks.broadcast(none, 0); }, refused("broadcast", 2));
  EXPECT_THAT([&] { std::ignore = ranks.all_gather(six, none); }, refused("all_gather", 2));
  EXPECT_THAT([&] { std::ignore = ranks.all_gather(no_whole, two); }, refused("all_gather", 6));
  EXPECT_THAT([&] { std::ignore = ranks.reduce_scatter(none, six, ReduceOp::kSum); }, refused("reduce_scatter", 2));
  EXPECT_THAT([&] { std::ignore = ranks.reduce_scatter(two, no_whole, ReduceOp::kSum); }, refused("reduce_scatter", 6));
  EXPECT_THAT([&] { std::ignore = ranks.send(none, 0); }, refused("send", 2));
  EXPECT_THAT([&] { std::ignore = ranks.receive(none, 0); }, refused("receive", 2));
  EXPECT_TRUE(ranks.requests.empty());
}

TEST_F(Requests, SharesThatDoNotMakeTheWholeAreRefusedWithWhatWould) {
  const CommBuffer one{.data = share, .count = 1, .dtype = Dtype::kFloat64};
  test::expect_error([&] { std::ignore = ranks.all_gather(six, one); },
                     "rank 1 of 3: all_gather: 6 elements in all are not 1 from each of 3 ranks: the whole has 3");
  test::expect_error([&] { std::ignore = ranks.reduce_scatter(one, six, ReduceOp::kSum); },
                     "reduce_scatter: 6 elements in all are not 1 from each of 3 ranks: the "
                     "whole has 3");
  const CommBuffer floats{.data = share, .count = 2, .dtype = Dtype::kFloat32};
  test::expect_error([&] { std::ignore = ranks.reduce_scatter(floats, six, ReduceOp::kSum); },
                     "reduce_scatter: the whole is float64, a rank's share float32: convert");
  test::expect_error([&] { std::ignore = ranks.all_gather(six, floats); },
                     "all_gather: the whole is float64, a rank's share float32: convert");
  EXPECT_TRUE(ranks.requests.empty());
}

TEST_F(Requests, RanksThatAreNoneAreRefusedByThoseThatThereAre) {
  for (const int other : {-1, 3}) {
    const std::string words = "there is no rank " + std::to_string(other) + ": they are 0 to 2";
    test::expect_error([&] { std::ignore = ranks.broadcast(two, other); }, "broadcast: " + words);
    test::expect_error([&] { std::ignore = ranks.send(two, other); }, "send: " + words);
    test::expect_error([&] { std::ignore = ranks.receive(two, other); }, "receive: " + words);
  }
  test::expect_error([&] { std::ignore = ranks.receive(two, 1); },
                     "receive: the other rank is this one: copy the values instead");
  test::expect_error([&] { std::ignore = ranks.send(two, 0, -2); },
                     "send: the tag -2 is negative: tags are numbers from 0");
}

TEST(CommunicatorNames, AreThoseOfTheOperations) {
  EXPECT_EQ(name_of(ReduceOp::kSum), "sum");
  EXPECT_EQ(name_of(ReduceOp::kProduct), "product");
  EXPECT_EQ(name_of(ReduceOp::kMin), "min");
  EXPECT_EQ(name_of(ReduceOp::kMax), "max");
  EXPECT_EQ(name_of(CommKind::kAllReduce), "all_reduce");
  EXPECT_EQ(name_of(CommKind::kBroadcast), "broadcast");
  EXPECT_EQ(name_of(CommKind::kAllGather), "all_gather");
  EXPECT_EQ(name_of(CommKind::kReduceScatter), "reduce_scatter");
  EXPECT_EQ(name_of(CommKind::kSend), "send");
  EXPECT_EQ(name_of(CommKind::kReceive), "receive");
  EXPECT_EQ(name_of(CommKind::kBarrier), "barrier");
}

TEST(Communicator, WhatAnImplementationDoesNotSayIsTheHostsMemoryAndThatNobodyHasEnded) {
  test::RecordingCommunicator ranks(3);
  EXPECT_EQ(ranks.device_kind(), "");
  EXPECT_FALSE(ranks.has_ended(0));
  EXPECT_EQ(ranks.barrier()->seconds(), 0);
}

TEST(Communicator, AnErrorIsARanksOwnWordsUntilAnotherHeardThem) {
  DistributedError error("words", {2});
  EXPECT_EQ(error.said_by(), -1);
  EXPECT_EQ(error.exit_code(), ExitCode::kFailed);
  error.set_said_by(0);
  EXPECT_EQ(error.said_by(), 0);
}

}  // namespace
}  // namespace tenon
