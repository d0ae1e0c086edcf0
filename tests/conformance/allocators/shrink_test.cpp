// Shrinking: what is left of a long history when only a few of its operations matter, and how many hangs that takes;
// and how what is left is shown.
#include <tenon/conformance/findings/history_text.h>
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
