// PyTorch's rounding at the borders of its rules, in both releases that differ.
#include <caching/rounding.h>
#include <tenon/core/units.h>

#include <gtest/gtest.h>

namespace tenon::caching {
namespace {

Settings with_divisions(std::uint32_t divisions, Compat compat = Compat::kCurrent) {
  Settings settings{.compat = compat};
  settings.roundup_divisions.fill(divisions);
  return settings;
}

TEST(Rounding, WithoutDivisionsIsToTheNextMultipleOf512) {
  const Settings settings;
  for (const std::size_t bytes : {1, 511, 512}) EXPECT_EQ(round_size(settings, bytes), 512u);
  EXPECT_EQ(round_size(settings, 513), 1024u);
  EXPECT_EQ(round_size(settings, 1024), 1024u);
  EXPECT_EQ(round_size(settings, 1025), 1536u);
  EXPECT_EQ(round_size(settings, 1 * GiB + 1), 1 * GiB + 512);
}

TEST(Rounding, OneDivisionIsNoneSince2AndLeavesSizesAsTheyAreIn113) {
  EXPECT_EQ(round_size(with_divisions(1), 5 * MiB + 1), 5 * MiB + 512);
  EXPECT_EQ(round_size(with_divisions(1), 700), 1024u);
  const Settings old = with_divisions(1, Compat::k1_13);
  EXPECT_EQ(round_size(old, 5 * MiB + 1), 5 * MiB + 1);
  EXPECT_EQ(round_size(old, 512), 512u);
  EXPECT_EQ(round_size(old, 511), 512u) << "the least block";
  EXPECT_EQ(round_size(with_divisions(0, Compat::k1_13), 700), 1024u) << "off";
}

TEST(Rounding, In113SizesOfOneDivisionStayAlignedWhereTheHostMayTouchThem) {
  Settings old = with_divisions(1, Compat::k1_13);
  old.least_alignment = 64;
  EXPECT_EQ(round_size(old, 5 * MiB + 1), 5 * MiB + 64);
}

TEST(Rounding, DivisionsApplyAboveOneLeastBlockForEach) {
  const Settings four = with_divisions(4);
  EXPECT_EQ(round_size(four, 4 * 512 - 511), 2048u) << "by 512";
  EXPECT_EQ(round_size(four, 4 * 512), 2048u);
  EXPECT_EQ(round_size(four, 4 * 512 + 1), 2560u) << "by a quarter of 2 KiB";
  EXPECT_EQ(round_size(four, 4097), 5120u) << "by a quarter of 4 KiB";
  EXPECT_EQ(round_size(four, 4096), 4096u) << "a power of two stays";
  EXPECT_EQ(round_size(four, 7169), 8192u);
}

TEST(Rounding, ADivisionCountThatIsNoPowerOfTwoCountsAsThePowerBelowIt) {
  for (const std::uint32_t divisions : {4u, 5u, 7u})
    EXPECT_EQ(round_size(with_divisions(divisions), 5 * MiB + 1), 6 * MiB) << divisions;
  EXPECT_EQ(round_size(with_divisions(3), 5 * MiB + 1), 6 * MiB);
  EXPECT_EQ(round_size(with_divisions(8), 5 * MiB + 1), 5 * MiB + 512 * KiB);
}

TEST(Rounding, EveryPowerOfTwoHasItsDivisionsBelowTheFirstAndBeyondTheLastTheNearest) {
  Settings settings;
  for (std::uint32_t i = 0; i < 16; ++i) settings.roundup_divisions[i] = i % 2 == 0 ? 2 : 0;
  // In [2^(20+i), 2^(21+i)): halves of a power, or multiples of 512.
  EXPECT_EQ(round_size(settings, 1 * MiB + 1), 1 * MiB + 512 * KiB);
  EXPECT_EQ(round_size(settings, 2 * MiB - 1), 2 * MiB);
  EXPECT_EQ(round_size(settings, 2 * MiB + 1), 2 * MiB + 512);
  EXPECT_EQ(round_size(settings, 4 * MiB - 1), 4 * MiB);
  EXPECT_EQ(round_size(settings, 4 * MiB + 1), 6 * MiB);
  EXPECT_EQ(round_size(settings, 600 * KiB), 768 * KiB) << "as [1 MiB, 2 MiB)";
  EXPECT_EQ(round_size(settings, 3 * 1024), 3072u);
  const std::size_t last = std::size_t{1} << 35;
  EXPECT_EQ(round_size(settings, last + 1), last + 512);
  EXPECT_EQ(round_size(settings, 2 * last + 1), 2 * last + 512) << "as the last";
}

TEST(Rounding, In113WhatIsLargerThanTheBypassIsRoundedTo512) {
  Settings old = with_divisions(2, Compat::k1_13);
  old.roundup_bypass_bytes = 5 * MiB;
  EXPECT_EQ(round_size(old, 5 * MiB), 6 * MiB);
  EXPECT_EQ(round_size(old, 5 * MiB + 1), 5 * MiB + 512);
}

TEST(Rounding, SegmentsAreOf2And20MiBOrOfWholeMultiplesOf2) {
  Settings settings;
  EXPECT_EQ(segment_size(settings, 512), 2 * MiB);
  EXPECT_EQ(segment_size(settings, 1 * MiB), 2 * MiB);
  EXPECT_EQ(segment_size(settings, 1 * MiB + 512), 20 * MiB);
  EXPECT_EQ(segment_size(settings, 10 * MiB - 512), 20 * MiB);
  EXPECT_EQ(segment_size(settings, 10 * MiB), 10 * MiB);
  EXPECT_EQ(segment_size(settings, 10 * MiB + 512), 12 * MiB);
  settings.large_segment_bytes = 64 * MiB;
  EXPECT_EQ(segment_size(settings, 10 * MiB - 512), 64 * MiB);
  EXPECT_EQ(segment_size(settings, 10 * MiB), 10 * MiB);
}

}  // namespace
}  // namespace tenon::caching
