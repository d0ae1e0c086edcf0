// Where a communicator's numbers begin: the first tag, the first root, one element.
#include <tenon/core/error.h>
#include "recording_communicator.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace tenon {
namespace {

TEST(CommunicatorNumbers, TagsAndRootsBeginAtZero) {
  test::RecordingCommunicator ranks(3);
  float value = 0;
  EXPECT_NO_THROW(ranks.send({.data = &value, .count = 1}, /*to=*/0, /*tag=*/0)->wait());
  EXPECT_NO_THROW(ranks.receive({.data = &value, .count = 1}, /*from=*/2, /*tag=*/1)->wait());
  EXPECT_THROW(std::ignore = ranks.send({.data = &value, .count = 1}, /*to=*/0, /*tag=*/-1), Error);
  EXPECT_NO_THROW(ranks.broadcast({.data = &value, .count = 1}, /*root=*/0)->wait());
  EXPECT_THROW(std::ignore = ranks.broadcast({.data = &value, .count = 1}, /*root=*/3), Error);
}

TEST(CommunicatorNumbers, NoElementsNeedNoMemoryAndOneDoes) {
  test::RecordingCommunicator ranks(3);
  EXPECT_NO_THROW(ranks.all_reduce({.data = nullptr, .count = 0}, ReduceOp::kSum)->wait());
  EXPECT_THROW(std::ignore = ranks.all_reduce({.data = nullptr, .count = 1}, ReduceOp::kSum), Error);
}

TEST(CommunicatorNumbers, AGroupOfARankBelowZeroOrBeyondTheLastIsRefused) {
  test::RecordingCommunicator ranks(3);
  test::expect_error([&] { std::ignore = ranks.new_group({1, 3}); }, "no rank 3");
  test::expect_error([&] { std::ignore = ranks.new_group({-1, 1}); }, "no rank -1");
}

}  // namespace
}  // namespace tenon
