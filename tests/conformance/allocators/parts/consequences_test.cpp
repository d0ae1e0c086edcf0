// Which failures may come of which, and what a random history is made of.
#include <tenon/conformance/finding.h>
#include <tenon/conformance/findings/consequences.h>
#include <tenon/conformance/history.h>

#include <tenon/core/units.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace tenon::conformance {
namespace {

TEST(Consequences, AFailureGoesByItsCauseOrByItsCheck) {
  EXPECT_EQ(failure_key("trims", "leak"), "leak");
  EXPECT_EQ(failure_key("trims", ""), "trims");
}

TEST(Consequences, OfTwoOwnersOfAByteAreWhateverComesLater) {
  for (const char* later : {"leak", "signal 11 in trim", "is_deterministic"}) {
    EXPECT_TRUE(may_come_of(later, "overlap")) << later;
    EXPECT_TRUE(may_come_of(later, "outside")) << later;
    EXPECT_FALSE(may_come_of(later, "streams")) << later;
    EXPECT_FALSE(may_come_of("overlap", later)) << later;
  }
}

TEST(Consequences, AreThoseThatWereSeen) {
  EXPECT_TRUE(may_come_of("streams", "bytes"));
  EXPECT_FALSE(may_come_of("leak", "bytes"));
  EXPECT_TRUE(may_come_of("layout", "alignment"));
  EXPECT_FALSE(may_come_of("figures", "alignment"));
  EXPECT_TRUE(may_come_of("trims", "misuse"));
  EXPECT_TRUE(may_come_of("signal 6 in trim", "throw")) << "which begins so";
  EXPECT_FALSE(may_come_of("signal 11 in trim", "throw"));
  EXPECT_TRUE(may_come_of("trims", "reuses_memory"));
  EXPECT_TRUE(may_come_of("retries_before_out_of_memory", "trims"));
  EXPECT_FALSE(may_come_of("reuses_memory", "trims")) << "not the other way round";
  EXPECT_TRUE(may_come_of("figures", "refuses_huge_sizes"));
  EXPECT_TRUE(may_come_of("survives_a_small_device", "survives_out_of_memory"));
  EXPECT_TRUE(may_come_of("leak", "retries_before_out_of_memory"));
}

TEST(RandomHistory, IsTheSameForASeedAndAnotherForTheNext) {
  EXPECT_EQ(make_history(7, 300, 3), make_history(7, 300, 3));
  EXPECT_NE(make_history(7, 300, 3), make_history(8, 300, 3));
  EXPECT_EQ(make_history(7, 300, 3).size(), 300U);
  EXPECT_TRUE(make_history(7, 0, 3).empty());
}

TEST(RandomHistory, HasEveryKindOfOperationAsOftenAsItIsMeant) {
  constexpr int kLength = 20'000;
  std::map<Operation::Kind, int> count;
  std::set<std::uint64_t> streams;
  std::set<std::uint32_t> blocks;
  for (const Operation& op : make_history(1, kLength, 4, 12)) {
    ++count[op.kind];
    streams.insert(op.stream);
    blocks.insert(op.slot);
  }
  const auto percent = [&](Operation::Kind kind) { return 100. * count[kind] / kLength; };
  EXPECT_NEAR(percent(Operation::kAllocate), 50, 1.5);
  EXPECT_NEAR(percent(Operation::kFree), 36, 1.5);
  EXPECT_NEAR(percent(Operation::kUse), 5, .7);
  EXPECT_NEAR(percent(Operation::kComplete), 7, .7);
  EXPECT_NEAR(percent(Operation::kTrim), 2, .5);
  EXPECT_EQ(streams, (std::set<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(blocks.size(), 12U);
  EXPECT_EQ(*blocks.rbegin(), 11U);
}

TEST(RandomHistory, AsksForSizesOfEveryMagnitudeAndForEveryAlignment) {
  std::map<int, int> magnitudes;
  std::set<std::size_t> alignments;
  int allocations = 0, aligned = 0, trims = 0, whole_trims = 0;
  for (const Operation& op : make_history(1, 40'000, 2)) {
    if (op.kind == Operation::kAllocate) {
      ++allocations;
      ASSERT_GE(op.bytes, 1U);
      ASSERT_LE(op.bytes, 32 * MiB);
      int magnitude = 0;
      while (op.bytes >> (magnitude + 1) != 0) ++magnitude;
      ++magnitudes[magnitude];
      aligned += op.bytes % 512 == 0 ? 1 : 0;
      alignments.insert(op.alignment);
    } else if (op.kind == Operation::kTrim) {
      ++trims;
      whole_trims += op.bytes == 0 ? 1 : 0;
      EXPECT_LT(op.bytes, 64 * MiB);
    } else {
      EXPECT_EQ(op.bytes, 0U);
    }
  }
  EXPECT_EQ(alignments, (std::set<std::size_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_NEAR(100. * aligned / allocations, 25, 2) << "sizes at which policies change their mind";
  EXPECT_NEAR(100. * whole_trims / trims, 50, 7);
  magnitudes[9] += aligned;  // 512 is among those that are rounded up to it
  for (int magnitude = 1; magnitude <= 24; ++magnitude)
    EXPECT_GT(magnitudes[magnitude], allocations / 100) << "2^" << magnitude;
  EXPECT_LT(magnitudes[25], allocations / 100) << "32 MiB, as the largest alone";
}

}  // namespace
}  // namespace tenon::conformance
