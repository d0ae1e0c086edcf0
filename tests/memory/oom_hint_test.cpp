// What a user is told would have helped, and that it is never something that is on already.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string hint_after(AllocatorStack& stack, std::size_t bytes) {
  try {
    stack.allocate({.bytes = bytes});
  } catch (const OutOfMemory& error) {
    return error.info().hint;
  }
  return "it fitted";
}

TEST(OomHint, ForMemoryCachedInPiecesTooSmallIsExpandableSegments) {
  AddressOnlySource source({.capacity_bytes = 100 * MiB});
  const auto stack = test::make_stack(source, {}, {.pools = true});
  std::vector<Block> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(stack->allocate({.bytes = 10 * MiB}));
  for (const Block& block : blocks) stack->deallocate(block);
  EXPECT_EQ(hint_after(*stack, 50 * MiB),
            "90.0 MiB are cached in blocks too small or for other streams: allocator 'expandable' would have fitted");
  EXPECT_THAT(hint_after(*stack, 90 * MiB), HasSubstr("allocator 'expandable' could join them"))
      << "its pages leave no room for the promise";
}

TEST(OomHint, ForARequestLargerThanTheDeviceSaysSo) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = test::make_stack(source);
  EXPECT_EQ(hint_after(*stack, 11 * MiB), "the request alone is larger than the device");
}

TEST(OomHint, ForAFullDeviceNamesThePurposeThatHoldsMost) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = test::make_stack(source);
  const Block activations = stack->allocate({.bytes = 6 * MiB, .purpose = Purpose::kActivation});
  const Block parameters = stack->allocate({.bytes = 3 * MiB, .purpose = Purpose::kParameter});
  EXPECT_EQ(hint_after(*stack, 2 * MiB),
            "6.00 MiB of the live bytes are of purpose 'activation': a smaller batch or checkpointing takes less");
  stack->deallocate(activations);
  stack->deallocate(parameters);
}

/// Enough is reserved and free, but in pieces.
const OutOfMemoryInfo kPieces{.requested_bytes = 5 * MiB,
                              .allocated_bytes = 0,
                              .reserved_bytes = 9 * MiB,
                              .device_free_bytes = 1 * MiB,
                              .capacity_bytes = 10 * MiB,
                              .largest_free_bytes = 1 * MiB};

// What a replay of the failure may overrule.
TEST(OomHint, TheCauseIsToldByTheFigures) {
  EXPECT_EQ(oom_cause(kPieces), OomCause::kPieces);
  OutOfMemoryInfo other = kPieces;
  other.allocated_bytes = 9 * MiB;
  EXPECT_EQ(oom_cause(other), OomCause::kFull);
  other.requested_bytes = 11 * MiB;
  EXPECT_EQ(oom_cause(other), OomCause::kTooLarge);
  other = kPieces;
  other.limit_bytes = 4 * MiB;
  EXPECT_EQ(oom_cause(other), OomCause::kLimit);
}

TEST(OomHint, ForALimitSaysWhatItIsWhatIsNeededAndWhatWouldDo) {
  OutOfMemoryInfo info = kPieces;
  info.limit_bytes = 4 * MiB;
  info.requested_bytes = 5 * MiB + 512 * KiB;
  EXPECT_EQ(oom_hint(info, {.stats = MemoryStats{}}),
            "the limit of 4.00 MiB is below the 5.50 MiB that this step needs: a limit of at least 6.00 MiB would have "
            "let it pass");
}

TEST(OomHint, NeverSuggestsWhatIsOnAlready) {
  MemoryStats stats;
  EXPECT_THAT(oom_hint(kPieces, {.stats = stats, .has_virtual_memory = true}), HasSubstr("expandable"));
  EXPECT_THAT(oom_hint(kPieces, {.stats = stats, .has_virtual_memory = true, .is_expandable = true}),
              Not(HasSubstr("expandable")));
  EXPECT_THAT(oom_hint(kPieces, {.stats = stats}), HasSubstr("max_split_size"));
  EXPECT_THAT(oom_hint(kPieces, {.stats = stats, .splits_all_sizes = false}), Not(HasSubstr("max_split_size")));
}

TEST(OomHint, WhereTheDeviceHasEnoughFreeSaysWhatItWasAskedFor) {
  const OutOfMemoryInfo info{.requested_bytes = 3 * MiB,
                             .allocated_bytes = 45 * MiB,
                             .reserved_bytes = 45 * MiB,
                             .device_free_bytes = 12 * MiB,
                             .capacity_bytes = 60 * MiB};
  MemoryStats stats;
  EXPECT_EQ(oom_hint(info, {.stats = stats, .refused_bytes = 20 * MiB}),
            "the device was asked for a segment of 20.0 MiB, more than it has free");
  EXPECT_EQ(oom_hint(info, {.stats = stats}), "");
  OutOfMemoryInfo unknown = info;
  unknown.capacity_bytes = 0;
  EXPECT_EQ(oom_hint(unknown, {.stats = stats, .refused_bytes = 20 * MiB}), "") << "of how much nobody says";
  OutOfMemoryInfo full = info;
  full.device_free_bytes = 2 * MiB;
  EXPECT_EQ(oom_hint(full, {.stats = stats, .refused_bytes = 20 * MiB}), "") << "that is reason enough";
}

TEST(OomOthers, SaysHowMuchOfAFullDeviceIsInOtherHandsAndWhose) {
  const OutOfMemoryInfo full{.requested_bytes = 2 * GiB,
                             .allocated_bytes = 4 * GiB,
                             .reserved_bytes = 4 * GiB,
                             .device_free_bytes = 1 * GiB,
                             .capacity_bytes = 8 * GiB};
  EXPECT_EQ(oom_others(full, ""), "3.00 GiB of the device are in other hands");
  EXPECT_EQ(oom_others(full, "process 7 (python) has 2.90 GiB"),
            "3.00 GiB of the device are in other hands: process 7 (python) has 2.90 GiB");
  OutOfMemoryInfo alone = full;
  alone.capacity_bytes = 5 * GiB;
  EXPECT_EQ(oom_others(alone, "process 7"), "") << "all of it is this allocator's, or free";
  OutOfMemoryInfo limited = full;
  limited.limit_bytes = 4 * GiB;
  EXPECT_EQ(oom_others(limited, "process 7"), "") << "the limit decides";
}

}  // namespace
}  // namespace tenon
