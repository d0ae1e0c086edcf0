// What the kit says of its findings: which state a check has and why, and a history told in the fewest lines.
#include <tenon/conformance/conformance.h>
#include <tenon/conformance/findings/repeats.h>

#include <gmock/gmock.h>

#include <vector>

namespace tenon::conformance {
namespace {

using testing::ElementsAre;

TEST(CheckResult, SaysItsPromiseOrWhyItIsNotKept) {
  CheckResult check;
  check.name = "reports";
  check.promise = "figures are right";
  EXPECT_EQ(check.state(), "passed");
  EXPECT_EQ(check.remark(), "figures are right");
  check.not_applicable = "it has none";
  EXPECT_EQ(check.state(), "n/a");
  EXPECT_EQ(check.remark(), "it has none");
  check.failure = "they are wrong";
  check.may_come_of = "overlaps";
  EXPECT_EQ(check.state(), "after");
  EXPECT_EQ(check.remark(), "overlaps, and may come of it: they are wrong");
  check.same_as = "streams";
  EXPECT_EQ(check.state(), "as in");
  EXPECT_EQ(check.remark(), "streams: they are wrong");
}

Operation allocate(std::uint32_t slot, std::size_t bytes = 512) {
  return {.kind = Operation::kAllocate, .slot = slot, .bytes = bytes};
}
Operation release(std::uint32_t slot) { return {.kind = Operation::kFree, .slot = slot}; }

/// {at, length, times} of each.
std::vector<std::vector<std::size_t>> told(const Operations& history, bool sizes_may_differ = false) {
  std::vector<std::vector<std::size_t>> all;
  for (const Repeat& repeat : repeats_of(history, sizes_may_differ))
    all.push_back({repeat.at, repeat.length, repeat.times});
  return all;
}
using Row = std::vector<std::size_t>;

TEST(Repeats, AGroupIsCountedWhereItComesThreeTimes) {
  Operations history;
  for (std::uint32_t i = 0; i < 3; ++i)
    history.insert(history.end(), {allocate(i), allocate(i + 10, 4096), release(i)});
  EXPECT_THAT(told(history), ElementsAre(Row{0, 3, 3}));
  history.resize(6);
  EXPECT_EQ(told(history).size(), 6u) << "two are read as fast as a count";
}

TEST(Repeats, OneOperationThatComesAgainIsOneLine) {
  EXPECT_THAT(told({allocate(0), allocate(1), allocate(2), allocate(3), release(0)}),
              ElementsAre(Row{0, 1, 4}, Row{4, 1, 1}));
  EXPECT_THAT(told({allocate(0), allocate(1, 1024), allocate(2, 2048)}).size(), 3u);
  EXPECT_THAT(told({allocate(0), allocate(1, 1024), allocate(2, 2048)}, true), ElementsAre(Row{0, 1, 3}));
}

TEST(Repeats, OfStretchesOfAsManyLinesTheLongerIsTaken) {
  // Four of the same, and then a group that begins with it: counted from where the most is covered.
  const Operations history{allocate(0), release(0), allocate(1), release(1),
                           allocate(2), release(2), allocate(3), release(3)};
  EXPECT_THAT(told(history), ElementsAre(Row{0, 2, 4}));
}

// A group costs a line for its count: six lines of runs are read faster than six operations and a count.
TEST(Repeats, RunsInsideAGroupAreToldByThemselvesWhereThatIsShorter) {
  Operations history;
  for (std::uint32_t group = 0; group < 3; ++group) {
    for (std::uint32_t i = 0; i < 3; ++i) history.push_back(allocate(i));
    for (std::uint32_t i = 0; i < 3; ++i) history.push_back(release(i));
  }
  EXPECT_THAT(told(history),
              ElementsAre(Row{0, 1, 3}, Row{3, 1, 3}, Row{6, 1, 3}, Row{9, 1, 3}, Row{12, 1, 3}, Row{15, 1, 3}));
}

TEST(Repeats, SayWhatIsAddedToTheBlocksNumber) {
  EXPECT_THAT(repeats_of({allocate(4), allocate(6), allocate(8)}).front().steps, ElementsAre(2));
  EXPECT_THAT(repeats_of({release(8), release(7), release(6)}).front().steps, ElementsAre(-1));
}

// Completions and trims are about no block: they take no number.
TEST(Repeats, BlocksAreNumberedAnewByWhatMakesTheFewestLines) {
  Operations history;
  for (const std::uint32_t slot : {7U, 3U, 7U, 9U, 3U, 9U, 9U}) {
    history.push_back({.kind = Operation::kComplete, .stream = 1});
    history.push_back(allocate(slot));
    history.push_back(release(slot));
  }
  for (const Operation& op : numbered_for_reading(history)) EXPECT_EQ(op.slot, 0U);
}

TEST(Repeats, ALineForEachOperationAndOneForTheCountOfAGroup) {
  EXPECT_EQ((Repeat{.length = 3, .times = 5}).lines(), 4u);
  EXPECT_EQ((Repeat{.length = 1, .times = 5}).lines(), 1u);
  EXPECT_EQ((Repeat{.length = 3, .times = 5}).covered(), 15u);
}

}  // namespace
}  // namespace tenon::conformance
