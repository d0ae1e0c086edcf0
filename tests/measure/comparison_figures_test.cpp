// What gates of a comparison are judged on: which figures there are, why one cannot be judged, and how certain it is.
#include <tenon/measure/compare/comparison.h>
#include <tenon/measure/compare/figure.h>
#include <tenon/memory/factory.h>

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two results, "old" and "new", of one case.
class ComparisonFiguresTest : public testing::Test {
 protected:
  ComparisonFiguresTest() {
    comparison_.sets.resize(2);
    comparison_.sets[0].path = "old";
    comparison_.sets[1].path = "new";
    comparison_.cases = {{.name = "t, caching", .of_set = {&old_, &new_}}};
  }
  static GateQuestion between(const std::string& metric) {
    return {.which = 0, .subject = 1, .metric = metric, .against = 0, .against_metric = metric};
  }
  static GateQuestion alone(const std::string& metric) { return {.which = 0, .subject = 1, .metric = metric}; }
  std::string why(const GateQuestion& question) const { return ComparisonFigures(comparison_).why_unjudged(question); }
  void lack(std::size_t set) { comparison_.cases[0].of_set[set] = nullptr; }

  ResultCase old_, new_;
  Comparison comparison_;
};

TEST_F(ComparisonFiguresTest, HaveTheNamesOfTheResultsAndOfWhatAnyCaseHas) {
  old_.figures["peak_reserved_bytes"] = {.value = 1};
  new_.figures["ooms"] = {.value = 0};
  comparison_.cases.push_back({.name = "another", .of_set = {nullptr, nullptr}});
  const GateNames names = ComparisonFigures::names(comparison_);
  EXPECT_THAT(names.subjects, ElementsAre("old", "new"));
  EXPECT_THAT(names.metrics, testing::UnorderedElementsAre("peak_reserved_bytes", "ooms"));
  const ComparisonFigures figures(comparison_);
  EXPECT_EQ(figures.cases(), 2U);
  EXPECT_EQ(figures.case_name(1), "another");
  EXPECT_EQ(figures.subjects(), 2U);
  EXPECT_EQ(figures.subject_name(1), "new");
}

TEST_F(ComparisonFiguresTest, OfACaseThatOneResultLacksNameTheResult) {
  lack(1);
  EXPECT_EQ(why(between("ooms")), "it is not in new");
  EXPECT_EQ(why(alone("ooms")), "") << "another one may have it";
  comparison_.cases[0].of_set = {nullptr, &new_};
  EXPECT_EQ(why(between("ooms")), "it is not in old");
  lack(1);
  EXPECT_EQ(why(between("ooms")), "") << "neither has it";
}

TEST_F(ComparisonFiguresTest, OfTheIdealRowOfAHistoryThatIsGoneSayNothing) {
  old_.kind = ResultKind::kReplay;
  old_.fields = {{kAllocatorField, std::string(kIdealAllocator)}};
  ASSERT_TRUE(is_ideal(old_));
  lack(1);
  EXPECT_EQ(why(between("ooms")), "");
}

TEST_F(ComparisonFiguresTest, OfACaseThatFailedSayWhyAndWhereItIsTheOther) {
  old_.figures["ooms"] = new_.figures["ooms"] = {.value = 1};
  new_.failure = "crashed";
  EXPECT_EQ(why(between("ooms")), "crashed");
  EXPECT_EQ(why(alone("ooms")), "crashed");
  std::swap(old_.failure, new_.failure);
  EXPECT_EQ(why(between("ooms")), "old: crashed");
  EXPECT_EQ(why(alone("ooms")), "");
  GateQuestion itself = between("ooms");
  itself.against = 1;
  EXPECT_EQ(why(itself), "") << "against itself";
}

TEST_F(ComparisonFiguresTest, OfAFigureThatOneSideLacksNameTheSide) {
  old_.figures["ooms"] = {.value = 1};
  EXPECT_EQ(why(between("ooms")), "new has no ooms");
  std::swap(old_.figures, new_.figures);
  EXPECT_EQ(why(between("ooms")), "old has no ooms");
  new_.figures.clear();
  EXPECT_EQ(why(between("ooms")), "") << "nobody has it";
}

TEST_F(ComparisonFiguresTest, OfFiguresThatNeedTheEndNameTheOneThatRanOut) {
  const std::string needs_end = "final_loss";
  ASSERT_TRUE(find_figure(needs_end)->needs_completion());
  old_.figures[needs_end] = new_.figures[needs_end] = {.value = 1};
  new_.ran_out = "OOM";
  EXPECT_EQ(why(alone(needs_end)), "OOM");
  EXPECT_EQ(why(between(needs_end)), "OOM");
  old_.figures["ooms"] = new_.figures["ooms"] = {.value = 1};
  ASSERT_FALSE(find_figure("ooms")->needs_completion());
  EXPECT_EQ(why(alone("ooms")), "");
  EXPECT_EQ(why(between("ooms")), "");
}

TEST_F(ComparisonFiguresTest, OfTimesOfOneMeasurementEachSayThatTheyAreTooFew) {
  old_.figures["seconds"] = new_.figures["seconds"] = {.value = 1};
  EXPECT_THAT(why(between("seconds")), HasSubstr("one run each"));
  EXPECT_EQ(why(alone("seconds")), "") << "against a value it is what it is";
}

TEST_F(ComparisonFiguresTest, AreAsCertainAsTheyWereMeasuredOften) {
  const auto interval = [&](std::vector<double> samples, std::vector<double> rounds) {
    new_.figures["seconds"] = {.value = 5, .samples = std::move(samples), .rounds = std::move(rounds)};
    return *ComparisonFigures(comparison_).figure(0, 1, "seconds");
  };
  const auto expect = [](const Interval& found, double low, double middle, double high) {
    EXPECT_EQ(found.low, low);
    EXPECT_EQ(found.middle, middle);
    EXPECT_EQ(found.high, high);
  };
  expect(interval({}, {}), 5, 5, 5);
  expect(interval({4, 7, 5}, {}), 4, 5, 7);
  expect(interval({}, {3, 4}), 3, 5, 5);
  expect(interval({6, 7}, {1, 2}), 5, 5, 7);
  std::vector<double> many;
  for (int i = 1; i <= 101; ++i) many.push_back(i);
  const Interval enough = interval(many, {});
  EXPECT_EQ(enough.middle, 51) << "the median of what was measured";
  EXPECT_GT(enough.low, 30);
  EXPECT_LT(enough.high, 72);
}

TEST_F(ComparisonFiguresTest, OfWhatIsNotThereAreNone) {
  const ComparisonFigures figures(comparison_);
  EXPECT_FALSE(figures.figure(0, 0, "seconds"));
  EXPECT_FALSE(figures.figure(0, 0, "nothing of that name"));
  old_.figures["seconds"] = new_.figures["seconds"] = {.value = 2};
  EXPECT_TRUE(figures.figure(0, 0, "seconds"));
  lack(0);
  EXPECT_FALSE(figures.figure(0, 0, "seconds"));
  EXPECT_FALSE(figures.ratio(0, {.metric = "seconds"}, 0, {.metric = "seconds"}, 1));
  comparison_.cases[0].of_set = {&old_, nullptr};
  EXPECT_FALSE(figures.ratio(0, {.metric = "seconds"}, 0, {.metric = "seconds"}, 1));
}

TEST_F(ComparisonFiguresTest, OfExactFiguresTheQuotientIsExact) {
  old_.figures["peak_reserved_bytes"] = {.value = 100};
  new_.figures["peak_reserved_bytes"] = {.value = 150};
  new_.figures["peak_requested_bytes"] = {.value = 50};
  const ComparisonFigures figures(comparison_);
  const auto same = figures.ratio(0, {.metric = "peak_reserved_bytes"}, 1, {.metric = "peak_reserved_bytes"}, 0);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->low, 1.5);
  EXPECT_EQ(same->high, 1.5);
  const auto other = figures.ratio(0, {.metric = "peak_requested_bytes"}, 1, {.metric = "peak_reserved_bytes"}, 0);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->middle, 0.5) << "of two figures";
}

TEST_F(ComparisonFiguresTest, OfEstimatedFiguresTheQuotientIsThatOfTheSamples) {
  for (int i = 0; i < 20; ++i) {
    old_.figures["seconds"].samples.push_back(10 + 0.01 * i);
    new_.figures["seconds"].samples.push_back(20 + 0.02 * i);
  }
  old_.figures["seconds"].value = 10, new_.figures["seconds"].value = 999;  // what the samples say counts
  const auto found = ComparisonFigures(comparison_).ratio(0, {.metric = "seconds"}, 1, {.metric = "seconds"}, 0);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->middle, 2, 0.01);
  EXPECT_LT(found->low, found->high);
}

}  // namespace
}  // namespace tenon::measure
