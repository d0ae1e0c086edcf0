// Shrinking: what is left of a long history when only a few of its operations matter, and how many hangs that takes;
// and how what is left is shown.
#include <tenon/conformance/findings/history_text.h>
#include <tenon/conformance/findings/repeats.h>
#include <tenon/conformance/shrink.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tenon::conformance {
namespace {

constexpr std::size_t kLarge = 9 << 20;

/// Three hundred allocations and frees; one of them is large.
Operations long_history() {
  Operations history;
  for (std::uint32_t i = 0; i < 100; ++i) {
    history.push_back({.slot = i, .bytes = i == 70 ? kLarge : 1000 + i, .alignment = 256, .stream = i % 3});
    history.push_back({.kind = Operation::kUse, .slot = i, .stream = 1});
    if (i % 2 == 0) history.push_back({.kind = Operation::kFree, .slot = i, .stream = 0});
  }
  return history;
}

/// An allocator that hangs in a large request while another block is live.
struct Hanging {
  int hangs = 0, confirmations = 0;
  double too_short = 0;  ///< with less than this for a call, everything looks like a hang
  Finding operator()(const Operations& history, const Limits& limits) {
    confirmations += limits.is_trial ? 0 : 1;
    int live = 0;
    bool hung = limits.is_trial && limits.call_seconds < too_short;
    for (const Operation& op : history) {
      if (op.kind == Operation::kAllocate) {
        hung = hung || (op.bytes >= kLarge / 2 && live > 0);
        ++live;
      }
      live -= op.kind == Operation::kFree ? 1 : 0;
    }
    hangs += hung ? 1 : 0;
    return hung ? Finding("hang in allocate", "allocate did not come back") : Finding();
  }
};

std::optional<Shrunk> shrunk(Hanging& allocator) {
  return shrink(
      long_history(), "hang in allocate",
      [&](const Operations& history, const Limits& limits) { return allocator(history, limits); }, 60);
}

TEST(Shrink, LeavesTheTwoOperationsThatMatterAfterFewHangs) {
  Hanging allocator;
  const auto left = shrunk(allocator);
  ASSERT_TRUE(left);
  EXPECT_EQ(to_string(left->history),
            "    #0 = allocate 1 bytes, alignment 64, stream 0\n"
            "    #1 = allocate 4718592 bytes, alignment 64, stream 0\n");
  EXPECT_LT(allocator.hangs, 40);
}

TEST(Shrink, FindsTheSmallestSizeThatDoesIt) {
  Operations history;
  for (std::uint32_t i = 0; i < 3; ++i) history.push_back({.slot = i, .bytes = 3'333'333 + i, .alignment = 64});
  const auto left = shrink(
      history, "overlap",
      [](const Operations& candidate, const Limits&) {
        const bool is_wrong = std::ranges::any_of(
            candidate, [](const Operation& op) { return op.kind == Operation::kAllocate && op.bytes > 100'000; });
        return is_wrong ? Finding("overlap", "two blocks share a byte") : Finding();
      },
      60);
  ASSERT_TRUE(left);
  EXPECT_EQ(to_string(left->history), "    #0 = allocate 100001 bytes, alignment 64, stream 0\n");
}

TEST(Shrink, ATrimKeepsNothingWhereThatDoesIt) {
  const auto left = shrink(
      {{.kind = Operation::kTrim, .bytes = 5000, .stream = 3}}, "trim",
      [](const Operations& candidate, const Limits&) {
        return candidate.empty() ? Finding() : Finding("trim", "it kept too much");
      },
      60);
  ASSERT_TRUE(left);
  EXPECT_EQ(to_string(left->history), "    trim, 0 bytes may stay\n");
}

TEST(Shrink, TriesNothingOnceItsTimeIsOver) {
  const Operations history(5, {.bytes = 5000, .alignment = 64});
  int trials = 0;
  const auto left = shrink(
      history, "overlap",
      [&](const Operations&, const Limits& limits) {
        trials += limits.is_trial ? 1 : 0;
        return Finding("overlap", "it overlaps");
      },
      0);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history, history);
  EXPECT_EQ(trials, 0);
}

TEST(Shrink, MakesSureOfWhatShortTrialsTook) {
  Hanging allocator{.too_short = 0.2};
  const auto left = shrunk(allocator);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history.size(), 2U);
  EXPECT_GE(allocator.confirmations, 2);
}

TEST(Shrink, GivesNothingWhereTheHistoryDoesNotDoItAgain) {
  const auto left = shrink(
      long_history(), "hang in allocate", [](const Operations&, const Limits&) { return Finding(); }, 60);
  EXPECT_FALSE(left);
}

// No single operation may be missing, since frees and allocations have to be as many; three times are enough.
TEST(Shrink, LeavesOutWholeGroupsOfWhatRepeats) {
  Operations history;
  for (std::uint32_t i = 0; i < 49; ++i) {
    history.push_back({.slot = i, .bytes = 1});
    history.push_back({.kind = Operation::kComplete, .stream = 1});
    history.push_back({.kind = Operation::kTrim});
  }
  const auto left = shrink(
      history, "figures",
      [](const Operations& candidate, const Limits&) {
        const auto count = [&](Operation::Kind kind) { return std::ranges::count(candidate, kind, &Operation::kind); };
        const bool is_even = count(Operation::kAllocate) == count(Operation::kComplete) &&
                             count(Operation::kComplete) == count(Operation::kTrim);
        return is_even && count(Operation::kTrim) >= 3 ? Finding("figures", "they differ") : Finding();
      },
      60);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history.size(), 9U) << to_string(left->history);
  EXPECT_EQ(folded_lines(left->history).size(), 4U);
}

// They fill a chunk to the last byte: none may be missing or smaller.
TEST(Shrink, MakesOneAllocationOfManyThatFillAPlace) {
  Operations history;
  for (std::uint32_t i = 0; i < 20; ++i) history.push_back({.slot = i, .bytes = 1000 + 7000 * i});
  const auto taken = [](const Operations& candidate) {
    std::size_t bytes = 0;
    for (const Operation& op : candidate) bytes += (op.bytes + 511) / 512 * 512;
    return bytes;
  };
  const std::size_t full = taken(history);
  const auto left = shrink(
      history, "overlap",
      [&](const Operations& candidate, const Limits&) {
        return taken(candidate) == full ? Finding("overlap", "it overlaps") : Finding();
      },
      60);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->history.size(), 1U) << to_string(left->history);
  EXPECT_EQ(taken(left->history), full);
}

Operations allocations(std::uint32_t first, std::uint32_t count) {
  Operations history;
  for (std::uint32_t i = 0; i < count; ++i) history.push_back({.slot = first + i, .bytes = 1});
  return history;
}

TEST(HistoryText, FoldsEqualOperationsAndBlocksInARow) {
  Operations history = allocations(0, 985);
  history.insert(history.end(), 3, {.kind = Operation::kComplete, .stream = 1});
  EXPECT_EQ(history_text(history),
            "    #0 to #984 = allocate 1 bytes, alignment 64, stream 0  ×985\n"
            "    stream 1 gets there  ×3");
}

TEST(HistoryText, FoldsAGroupThatRepeats) {
  Operations history;
  for (int i = 0; i < 500; ++i) {
    history.push_back({.slot = 7, .bytes = 512});
    history.push_back({.kind = Operation::kFree, .slot = 7});
  }
  history.push_back({.kind = Operation::kTrim});
  EXPECT_EQ(history_text(history),
            "    ×500:\n"
            "      #7 = allocate 512 bytes, alignment 64, stream 0\n"
            "      free #7, last used on stream 0\n"
            "    trim, 0 bytes may stay");
}

/// One block that stays, then so many times a block that comes, is used elsewhere and goes while the next one came.
Operations sliding(std::uint32_t times) {
  Operations history = {{.slot = 0, .bytes = 7}, {.slot = 1, .bytes = 1}};
  for (std::uint32_t i = 1; i <= times; ++i) {
    history.push_back({.slot = i + 1, .bytes = 1});
    history.push_back({.kind = Operation::kUse, .slot = i, .stream = 1});
    history.push_back({.kind = Operation::kFree, .slot = i});
  }
  return history;
}

TEST(HistoryText, FoldsAGroupThatBeginsAfterOtherOperations) {
  EXPECT_EQ(history_text(sliding(49)),
            "    #0 = allocate 7 bytes, alignment 64, stream 0\n"
            "    #1 = allocate 1 bytes, alignment 64, stream 0\n"
            "    ×49, with the next block each time:\n"
            "      #2 = allocate 1 bytes, alignment 64, stream 0\n"
            "      #1 is also used on stream 1\n"
            "      free #1, last used on stream 0");
}

TEST(HistoryText, FoldsAGroupInWhichOneBlockStaysAndOthersDoNot) {
  Operations history;
  for (std::uint32_t i = 0; i < 12; ++i) {
    history.push_back({.slot = 1 + 2 * i, .bytes = 512});
    history.push_back({.slot = 2 + 2 * i, .bytes = 64});
    history.push_back({.kind = Operation::kUse, .slot = 0, .stream = 1});
  }
  EXPECT_EQ(history_text(history),
            "    ×12:\n"
            "      #1, #3 … #23 = allocate 512 bytes, alignment 64, stream 0\n"
            "      #2, #4 … #24 = allocate 64 bytes, alignment 64, stream 0\n"
            "      #0 is also used on stream 1");
}

TEST(HistoryText, FoldsWhatDiffersInSizesAloneWhereItIsTooLongToBeRead) {
  Operations history;
  for (std::uint32_t i = 0; i < 49; ++i) {
    history.push_back({.slot = 0, .bytes = 1000 + i});
    history.push_back({.kind = Operation::kFree, .slot = 0});
  }
  EXPECT_EQ(history_text(history),
            "    ×49:\n"
            "      #0 = allocate 1000 to 1048 bytes, alignment 64, stream 0\n"
            "      free #0, last used on stream 0");
}

// A slot is used again and again in a random history: numbers that follow from that hide what repeats.
TEST(HistoryText, NumbersBlocksSoThatWhatRepeatsIsSeen) {
  Operations history;
  for (std::uint32_t i = 0; i < 30; ++i) {
    const std::uint32_t slot = i * i % 11;
    history.push_back({.slot = slot, .bytes = 1});
    history.push_back({.kind = Operation::kFree, .slot = slot});
  }
  EXPECT_GT(folded_lines(history).size(), 30U);
  EXPECT_EQ(folded_lines(numbered_for_reading(history)).size(), 3U);
}

TEST(HistoryText, LeavesOutTheMiddleAloneOfWhatIsTooLong) {
  Operations history;
  for (std::uint32_t i = 0; i < 100; ++i) history.push_back({.slot = i * i, .bytes = 1 + i * i});
  const std::string text = history_text(history, 10);
  EXPECT_EQ(std::ranges::count(text, '\n'), 10);
  EXPECT_TRUE(text.starts_with("    #0 = allocate 1 bytes")) << text;
  EXPECT_NE(text.find("\n    … 90 lines more …\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("#9801 = allocate 9802 bytes, alignment 64, stream 0")) << text;
}

TEST(HistoryText, ShowsABlockThatIsTheSameOrNotAsItIs) {
  const Operations history = {{.slot = 0, .bytes = 1}, {.slot = 1, .bytes = 1}, {.slot = 3, .bytes = 1}};
  EXPECT_EQ(history_text(history) + "\n", to_string(history));
}

}  // namespace
}  // namespace tenon::conformance
