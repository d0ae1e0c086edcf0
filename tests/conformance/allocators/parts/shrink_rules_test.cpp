// Shrinking, rule by rule: which numbers are made simple, for how long it is tried, and with which limits; and the
// lines that a short history is told in.
#include <tenon/conformance/findings/history_text.h>
#include <tenon/conformance/findings/repeats.h>
#include <tenon/conformance/shrink.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tenon::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Operation block(std::uint32_t slot, std::size_t bytes, std::uint64_t stream = 0, std::size_t alignment = 64) {
  return {.slot = slot, .bytes = bytes, .alignment = alignment, .stream = stream};
}
bool is_allocation(const Operation& op) { return op.kind == Operation::kAllocate; }

/// What is left of a history that goes wrong where this holds.
std::string left_of(const Operations& history, const std::function<bool(const Operations&)>& is_wrong) {
  const auto left = shrink(
      history, "overlap",
      [&](const Operations& candidate, const Limits&) {
        return is_wrong(candidate) ? Finding("overlap", "two blocks share a byte") : Finding();
      },
      60);
  return left ? to_string(left->history) : "nothing";
}

TEST(ShrinkRules, AStreamOrAnAlignmentStaysWhereItMattersAlone) {
  const Operations history = {block(3, 700, 2, 256), block(4, 700, 1, 512)};
  EXPECT_EQ(left_of(history,
                    [](const Operations& ops) {
                      return std::ranges::any_of(ops, [](const Operation& op) { return op.stream == 2; }) &&
                             std::ranges::any_of(ops, [](const Operation& op) { return op.alignment == 512; });
                    }),
            "    #0 = allocate 1 bytes, alignment 64, stream 2\n"
            "    #1 = allocate 1 bytes, alignment 512, stream 0\n");
}

TEST(ShrinkRules, ASizeIsOneOrHalfAKiBOrTheSmallestThatDoesIt) {
  const auto wrong_from = [](std::size_t bytes) {
    return [bytes](const Operations& ops) {
      return std::ranges::any_of(ops, [=](const Operation& op) { return is_allocation(op) && op.bytes >= bytes; });
    };
  };
  EXPECT_EQ(left_of({block(0, 5000)}, wrong_from(1)), "    #0 = allocate 1 bytes, alignment 64, stream 0\n");
  EXPECT_EQ(left_of({block(0, 5000)}, wrong_from(300)), "    #0 = allocate 512 bytes, alignment 64, stream 0\n");
  EXPECT_EQ(left_of({block(0, 5000)}, wrong_from(513)), "    #0 = allocate 513 bytes, alignment 64, stream 0\n");
  EXPECT_EQ(left_of({block(0, 500)}, wrong_from(300)), "    #0 = allocate 300 bytes, alignment 64, stream 0\n");
}

/// Goes wrong where so many blocks are at least as large.
std::function<bool(const Operations&)> many_large(std::ptrdiff_t count, std::size_t bytes) {
  return [=](const Operations& ops) {
    return std::ranges::count_if(ops, [=](const Operation& op) { return is_allocation(op) && op.bytes >= bytes; }) >=
           count;
  };
}

TEST(ShrinkRules, OfManyOperationsEqualSizesAreReadFasterThanSmallOnes) {
  for (const std::uint32_t count : {7U, 8U}) {
    Operations history;
    for (std::uint32_t i = 0; i < count; ++i) history.push_back(block(i, 9000 + 2000 * i));
    const std::string left = left_of(history, many_large(static_cast<std::ptrdiff_t>(count), 3000));
    EXPECT_EQ(std::ranges::count(left, '\n'), count);
    EXPECT_THAT(left, HasSubstr(count == 8 ? " 4096 bytes" : " 3000 bytes"));
    EXPECT_THAT(left, Not(HasSubstr(count == 8 ? " 3000 bytes" : " 4096 bytes")));
  }
}

TEST(ShrinkRules, IsHeldToTheCauseAlone) {
  const Operations history = {block(0, 100), block(1, 100)};
  const HistoryRun run = [](const Operations& ops, const Limits&) {
    return ops.size() == 2 ? Finding("overlap", "it overlaps") : Finding("leak", "it leaks");
  };
  EXPECT_FALSE(shrink(history, "leak", run, 60)) << "the history does something else";
  const auto left = shrink(history, "overlap", run, 60);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history.size(), 2U) << "fewer do something else";
  EXPECT_EQ(left->finding.text, "it overlaps");
}

TEST(ShrinkRules, WhatTrialsAllGotWrongLeavesTheHistoryAsItWas) {
  const Operations history = {block(0, 100), block(1, 200), block(2, 300)};
  const auto left = shrink(
      history, "hang in allocate",
      [&](const Operations& ops, const Limits& limits) {
        return limits.is_trial || ops == history ? Finding("hang in allocate", std::to_string(ops.size())) : Finding();
      },
      60);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history, history);
  EXPECT_EQ(left->finding.text, "3");
}

TEST(ShrinkRules, TrialsOfAHangAreShortAndOthersAreNot) {
  for (const bool is_hang : {true, false}) {
    const std::string cause = is_hang ? "hang in trim" : "signal 11 in trim";
    std::vector<double> of_trials, of_others;
    static_cast<void>(shrink(
        {block(0, 100), block(1, 200)}, cause,
        [&](const Operations&, const Limits& limits) {
          (limits.is_trial ? of_trials : of_others).push_back(limits.call_seconds);
          return Finding(cause, "it does not come back");
        },
        60));
    ASSERT_FALSE(of_trials.empty());
    EXPECT_EQ(std::ranges::count(of_trials, is_hang ? 0.02 : 0.25), static_cast<std::ptrdiff_t>(of_trials.size()));
    EXPECT_THAT(of_others, ElementsAre(1, 1)) << "at both ends";
  }
}

TEST(ShrinkRules, LongerTrialsGetWhatIsLeftOfTheTime) {
  Operations history;
  for (std::uint32_t i = 0; i < 250; ++i) history.push_back(block(i, 1000 + 7 * i));
  int short_trials = 0, long_trials = 0;
  const auto left = shrink(
      history, "hang in allocate",
      [&](const Operations& ops, const Limits& limits) {
        if (limits.is_trial) {
          ++(limits.call_seconds < 0.1 ? short_trials : long_trials);
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        const std::size_t least = limits.is_trial ? 100 : 200;  // trials get it wrong
        return ops.size() >= least ? Finding("hang in allocate", "it does not come back") : Finding();
      },
      0.2);
  ASSERT_TRUE(left);
  EXPECT_GT(short_trials, 2);
  EXPECT_EQ(long_trials, 0) << "which is nothing";
  EXPECT_EQ(left->history, history);
}

TEST(FoldedLines, TwoOfTheSameAreOneLineAndTwoBlocksInARowAreNot) {
  const Operation reached{.kind = Operation::kComplete, .stream = 1};
  EXPECT_THAT(folded_lines({reached, reached}), ElementsAre("stream 1 gets there  ×2"));
  EXPECT_EQ(folded_lines({block(0, 1), block(1, 1)}).size(), 2U);
  EXPECT_THAT(folded_lines({block(5, 1), block(4, 1), block(3, 1)}),
              ElementsAre("#5, #4 … #3 = allocate 1 bytes, alignment 64, stream 0  ×3"));
  EXPECT_THAT(folded_lines({block(0, 1), block(2, 1, 0, 128), block(4, 1)}).size(), 3U) << "another alignment";
}

TEST(FoldedLines, ARunEndsWhereItsStepChanges) {
  Operations history;
  for (const std::uint32_t slot : {0U, 1U, 2U, 4U, 6U, 8U}) history.push_back(block(slot, 1));
  EXPECT_THAT(folded_lines(history), ElementsAre("#0 to #2 = allocate 1 bytes, alignment 64, stream 0  ×3",
                                                 "#4, #6 … #8 = allocate 1 bytes, alignment 64, stream 0  ×3"));
}

TEST(FoldedLines, AGroupWithoutBlocksHasNoNextOne) {
  Operations history;
  for (int i = 0; i < 3; ++i) {
    history.push_back({.kind = Operation::kComplete, .stream = 1});
    history.push_back({.kind = Operation::kTrim, .bytes = 512});
  }
  EXPECT_THAT(folded_lines(history), ElementsAre("×3:", "  stream 1 gets there", "  trim, 512 bytes may stay"));
}

TEST(FoldedLines, AsManyAsFitAreShownAndOfMoreTheMiddleIsLeftOut) {
  Operations history;
  for (std::uint32_t i = 0; i < 10; ++i) history.push_back(block(i * i, 1 + i * i, i * 3));
  const std::string whole = history_text(history, 10);
  EXPECT_EQ(std::ranges::count(whole, '\n'), 9);
  EXPECT_THAT(whole, Not(HasSubstr("lines more")));
  history.push_back(block(1000, 7, 99));
  EXPECT_THAT(history_text(history, 10), HasSubstr("\n    … 1 lines more …\n"));
}

// With the lowest free numbers again it would be a longer group.
TEST(FoldedLines, BlocksThatFollowEachOtherAreNumberedOn) {
  Operations history;
  for (std::uint32_t i = 0; i < 20; ++i) {
    history.push_back(block(i * 5 % 11, 1));
    if (i >= 2) history.push_back({.kind = Operation::kFree, .slot = (i - 2) * 5 % 11});
  }
  const std::vector<std::string> lines = folded_lines(numbered_for_reading(history));
  EXPECT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines, testing::Contains("×17, with the next block each time:"));
}

}  // namespace
}  // namespace tenon::conformance
