// Histories by allocators: over what each figure is shown, and where none is.
#include <tenon/measure/compare/comparison.h>

#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

constexpr const char* kPeak = "peak_reserved_bytes";

/// A case of a history (or of a workload) under an allocator.
ResultCase one(const std::string& row, const std::string& allocator, double peak,
               ResultKind kind = ResultKind::kReplay) {
  ResultCase made;
  made.kind = kind;
  made.fields = {{kind == ResultKind::kReplay ? "trace" : "workload", row}, {kAllocatorField, allocator}};
  made.name = row + ", " + allocator;
  made.figures[kPeak] = {.value = peak};
  return made;
}

ResultSet set_of(std::vector<ResultCase> cases) {
  ResultSet set;
  set.kind = cases.front().kind;
  set.cases = std::move(cases);
  return set;
}

TEST(FigureMatrix, IsOverTheFirstAllocatorOfTheSameHistory) {
  const Comparison comparison =
      compare({set_of({one("t", "a", 10), one("t", "b", 20), one("u", "a", 50), one("u", "b", 25)})}, {});
  const auto matrix = figure_matrix(comparison, 0, kPeak);
  ASSERT_TRUE(matrix) << "two histories are enough";
  EXPECT_THAT(matrix->rows, ElementsAre("t", "u"));
  EXPECT_THAT(matrix->columns, ElementsAre("a", "b"));
  EXPECT_THAT(matrix->ratios[0], ElementsAre(Optional(Eq(1)), Optional(Eq(2))));
  EXPECT_THAT(matrix->ratios[1], ElementsAre(Optional(Eq(1)), Optional(Eq(0.5))));
  EXPECT_EQ(matrix->mean_rows, 2U);
  EXPECT_NEAR(*matrix->means[1], 1, 1e-12) << "of 2 and a half";
}

TEST(FigureMatrix, OfSeveralResultsIsOverTheFirst) {
  const Comparison comparison =
      compare({set_of({one("t", "a", 10), one("u", "a", 50)}), set_of({one("t", "a", 5), one("u", "a", 100)})}, {});
  const auto matrix = figure_matrix(comparison, 1, kPeak);
  ASSERT_TRUE(matrix);
  EXPECT_THAT(matrix->ratios[0], ElementsAre(Optional(Eq(0.5))));
  EXPECT_THAT(matrix->ratios[1], ElementsAre(Optional(Eq(2))));
}

TEST(FigureMatrix, IsOfReplaysAndBenchesAlone) {
  const auto is_shown = [](ResultKind kind) {
    return figure_matrix(compare({set_of({one("t", "a", 1, kind), one("u", "a", 1, kind)})}, {}), 0, kPeak).has_value();
  };
  EXPECT_TRUE(is_shown(ResultKind::kReplay));
  EXPECT_TRUE(is_shown(ResultKind::kBench));
  EXPECT_FALSE(is_shown(ResultKind::kRun));
  EXPECT_FALSE(is_shown(ResultKind::kSweep));
  EXPECT_FALSE(figure_matrix(compare({set_of({one("t", "a", 1), one("t", "b", 1)})}, {}), 0, kPeak)) << "one history";
}

TEST(FigureMatrix, SaysWhatStandsInPlaceOfAFigure) {
  std::vector<ResultCase> cases = {one("t", "a", 10), one("t", "b", 20), one("u", "a", 10), one("u", "b", 20)};
  cases[1].ran_out = "OOM at event 3";
  cases[3].failure = "crashed";
  const auto matrix = figure_matrix(compare({set_of(cases)}, {}), 0, kPeak);
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->notes[0][1], "OOM");
  EXPECT_EQ(matrix->notes[1][1], "failed");
  EXPECT_EQ(matrix->ratios[0][1], std::nullopt);
  EXPECT_EQ(matrix->mean_rows, 0U);
  EXPECT_EQ(matrix->means[0], std::nullopt) << "no history that every allocator came to the end of";
}

}  // namespace
}  // namespace tenon::measure
