// The model of memory: names of actions, sums over blocks, a walk as a snapshot lists it.
#include <tenon/memory/snapshot.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(SnapshotModel, ActionsComeBackFromTheirNames) {
  for (std::size_t i = 0; i < kHistoryActions; ++i) {
    const auto action = static_cast<HistoryAction>(i);
    EXPECT_EQ(action_of(name_of(action)), action) << name_of(action);
  }
  EXPECT_EQ(name_of(HistoryAction::kFreeRequested), "free_requested");
  EXPECT_EQ(action_of("user_defined"), HistoryAction::kOther);
}

TEST(SnapshotModel, AnAddressIsMadeOfAPointerOrANumber) {
  int here = 0;
  const Address of_pointer = &here;
  const Address of_number = reinterpret_cast<std::uintptr_t>(&here);
  EXPECT_TRUE(of_pointer == of_number);
  EXPECT_TRUE(of_pointer == &here);
  EXPECT_EQ(of_pointer + 8, reinterpret_cast<std::uintptr_t>(&here) + 8);
}

TEST(SnapshotModel, ASegmentSumsItsBlocksByState) {
  const Segment segment{{.bytes = 4096},
                        {{0, 1024, 1000, BlockState::kActive, 0},
                         {1024, 512, 300, BlockState::kAwaitingStream, 0},
                         {1536, 2560, 0, BlockState::kFree, 0}}};
  EXPECT_EQ(segment.allocated_bytes(), 1024u);
  EXPECT_EQ(segment.active_bytes(), 1536u);
  EXPECT_EQ(segment.requested_bytes(), 1300u);
}

TEST(SnapshotModel, WhatIsNotMappedCutsASegmentInTwo) {
  SegmentCollector collector;
  collector.segment({.address = 8192, .bytes = 3072, .stream = {5}, .is_expandable = true});
  collector.block({8192, 1024, 1000, BlockState::kActive, 0});
  collector.block({9216, 1024, 0, BlockState::kUnmapped, 0});
  collector.block({10240, 1024, 0, BlockState::kFree, 0});
  collector.block({11264, 1024, 7, BlockState::kActive, 0});
  collector.segment({.address = 4096, .bytes = 512});
  collector.block({4096, 512, 0, BlockState::kFree, 0});
  const std::vector<Segment> shown = collector.take();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].blocks.size(), 4u) << "kept as it was shown";
  const std::vector<Segment> mapped = mapped_segments(shown);
  ASSERT_EQ(mapped.size(), 3u);
  EXPECT_EQ(mapped[0].address, 4096u) << "by address";
  EXPECT_EQ(mapped[1].address, 8192u);
  EXPECT_EQ(mapped[1].bytes, 1024u);
  EXPECT_EQ(mapped[2].address, 10240u);
  EXPECT_EQ(mapped[2].bytes, 2048u);
  EXPECT_EQ(mapped[2].stream.id, 5u);
  EXPECT_TRUE(mapped[2].is_expandable);
}

}  // namespace
}  // namespace tenon
