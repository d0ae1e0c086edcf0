// Which blocks lie in the way of a request.
#include <tenon/memory/history/pinned_hole.h>

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

Segment segment_of(std::uint64_t address, std::vector<std::pair<std::size_t, bool>> blocks) {
  Segment segment;
  segment.address = address;
  for (const auto& [bytes, is_live] : blocks) {
    segment.blocks.push_back({.address = address,
                              .bytes = bytes,
                              .requested_bytes = is_live ? bytes : 0,
                              .state = is_live ? BlockState::kActive : BlockState::kFree});
    segment.bytes += bytes;
    address += bytes;
  }
  return segment;
}

TEST(PinnedHole, IsTheStretchThatTheFewestBytesInUseKeepFromARequest) {
  const std::vector<Segment> segments = {
      segment_of(1000, {{600, false}, {300, true}, {700, false}}),
      segment_of(5000, {{600, false}, {10, true}, {200, false}, {5, true}, {400, false}})};
  const PinnedHole hole = pinned_hole(segments, 1200);
  EXPECT_EQ(hole.address, 5000U);
  EXPECT_EQ(hole.bytes, 1215U);
  EXPECT_EQ(hole.free_bytes, 1200U);
  ASSERT_EQ(hole.pins.size(), 2U);
  EXPECT_EQ(hole.pins[0].address, 5600U);
  EXPECT_EQ(hole.pins[1].bytes, 5U);
}

TEST(PinnedHole, BeginsAndEndsWithFreeBlocks) {
  const PinnedHole hole =
      pinned_hole({segment_of(0, {{50, true}, {100, false}, {20, true}, {100, false}, {70, true}})}, 200);
  EXPECT_EQ(hole.address, 50U);
  EXPECT_EQ(hole.bytes, 220U);
  ASSERT_EQ(hole.pins.size(), 1U);
}

TEST(PinnedHole, IsPinnedAtOneSideAloneWhereABlockLiesBesideTheBoundsOfASegment) {
  const std::vector<Segment> segments = {segment_of(0, {{100, true}, {900, false}}),
                                         segment_of(5000, {{600, false}, {300, true}, {700, false}}),
                                         segment_of(9000, {{930, false}, {70, true}, {990, true}})};
  const PinnedHole hole = pinned_hole(segments, 1000);
  EXPECT_EQ(hole.address, 9000U);
  EXPECT_EQ(hole.bytes, 1000U);
  EXPECT_EQ(hole.free_bytes, 930U);
  ASSERT_EQ(hole.pins.size(), 1U);
  EXPECT_EQ(hole.pins[0].bytes, 70U);
  EXPECT_EQ(pinned_hole({segments[0]}, 1000).free_bytes, 900U) << "before it";
  EXPECT_EQ(pinned_hole({segments[0]}, 1000).pins.size(), 1U);
}

TEST(PinnedHole, TakesTheFreeBlocksBesideItToo) {
  const PinnedHole hole = pinned_hole({segment_of(0, {{100, false}, {20, true}, {100, false}})}, 110);
  EXPECT_EQ(hole.bytes, 220U);
  EXPECT_EQ(hole.free_bytes, 200U);
}

TEST(PinnedHole, IsFreeByHalfWhereABlockInUseIsAtItsBound) {
  EXPECT_EQ(pinned_hole({segment_of(0, {{500, true}, {500, false}})}, 1000).bytes, 1000U);
  const std::vector<Segment> mostly_in_use = {segment_of(0, {{501, true}, {499, false}}),
                                              segment_of(2000, {{600, false}, {1, true}})};
  EXPECT_EQ(pinned_hole(mostly_in_use, 1000).address, 2000U) << "the segment where most is free";
}

TEST(PinnedHole, WithoutAStretchOfThatSizeItIsTheSegmentWhereMostIsFreeWithAllThatKeepsItFromGoingBack) {
  const PinnedHole hole = pinned_hole({segment_of(0, {{1, true}, {100, false}, {1, true}, {100, false}}),
                                       segment_of(900, {{150, false}, {9, true}}), segment_of(2000, {{300, false}})},
                                      1000);
  EXPECT_EQ(hole.bytes, 202U);
  EXPECT_EQ(hole.free_bytes, 200U);
  EXPECT_EQ(hole.pins.size(), 2U);
}

TEST(PinnedHole, IsNoneWhereMemoryIsFull) {
  // Nothing is in the way of 40: what is free is too little, and what is in use is all the rest.
  const std::vector<Segment> full = {segment_of(0, {{150, true}, {150, true}, {150, true}, {120, true}, {30, false}})};
  EXPECT_EQ(pinned_hole(full, 40).bytes, 0U);
  EXPECT_EQ(pinned_hole(full, 1000).bytes, 0U);
  EXPECT_TRUE(pinned_hole(full, 40).pins.empty());
}

TEST(PinnedHole, IsEmptyWhereNothingIsFree) {
  EXPECT_EQ(pinned_hole({segment_of(0, {{100, true}})}, 10).bytes, 0U);
  EXPECT_EQ(pinned_hole({}, 10).bytes, 0U);
}

}  // namespace
}  // namespace tenon
