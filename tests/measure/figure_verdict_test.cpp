// What may be said of one figure of two cases: which word, by how much, and when nothing.
#include <tenon/measure/compare/figure.h>
#include <tenon/measure/compare/figure_verdict.h>
#include <tenon/measure/compare/result_set.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::measure {
namespace {

using Kind = FigureVerdict::Kind;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

const FigureInfo& figure(const char* key) { return *find_figure(key); }

ResultCase with(const char* key, double value, std::vector<double> samples = {}) {
  ResultCase found;
  found.figures[key] = {.value = value, .samples = std::move(samples)};
  return found;
}

FigureVerdict between(const char* key, double then, double now) {
  return figure_verdict(figure(key), with(key, then), with(key, now));
}

TEST(FigureVerdict, OfExactFiguresIsEqualOrBetterOrWorseByThatMuch) {
  EXPECT_EQ(between("peak_reserved_bytes", 1000, 1000).kind, Kind::kSame);
  EXPECT_EQ(between("peak_reserved_bytes", 1000, 1000).text, "same");
  EXPECT_EQ(between("peak_reserved_bytes", 1000, 980).kind, Kind::kDifferent);
  EXPECT_EQ(between("peak_reserved_bytes", 1000, 980).text, "better by 2.0 %");
  EXPECT_EQ(between("peak_reserved_bytes", 1000, 1020).text, "worse by 2.0 %");
  EXPECT_EQ(between("peak_reserved_bytes", 100000, 100002).text, "worse by 0.002 %") << "no difference is called 0.0";
  EXPECT_EQ(between("ooms", 4, 3).text, "better: -25.0 %");
  EXPECT_EQ(between("events", 4, 5).text, "differs: +25.0 %") << "neither is better";
  EXPECT_EQ(between("events", 5, 4).text, "differs: -20.0 %");
  EXPECT_EQ(between("test_accuracy", 0.9, 0.95).text, "better: +5.0 points") << "more is better";
  EXPECT_EQ(between("test_accuracy", 0.95, 0.9).text, "worse: -5.0 points");
  EXPECT_EQ(between("excess", 0, 0.125).text, "worse: +12.5 points");
}

TEST(FigureVerdict, WhatWasNothingBeforeHasNoPercent) {
  EXPECT_EQ(between("ooms", 0, 3).text, "worse: +3");
  EXPECT_EQ(between("leaked_bytes", 0, 2048).text, "worse: +2.00 KiB");
  EXPECT_EQ(between("final_loss", -2, -3).text, "better: -1");
  EXPECT_EQ(between("final_loss", -2, -1.5).text, "worse: +0.5");
}

TEST(FigureVerdict, OfTimesOfOneMeasurementEachThereIsNone) {
  const FigureVerdict one = between("ns_per_pair", 100, 103);
  EXPECT_EQ(one.kind, Kind::kTooFew);
  EXPECT_EQ(one.text, "no verdict: one run each (+3.0 %)");
  EXPECT_THAT(one.why, HasSubstr("one run each: repeat both in turn"));
  EXPECT_EQ(between("ns_per_pair", 0, 103).text, "no verdict: one run each") << "no percent of nothing";
  ResultCase replay = with("seconds", 2);
  replay.kind = ResultKind::kReplay;
  const FigureVerdict files = figure_verdict(figure("seconds"), replay, replay);
  EXPECT_EQ(files.text, "no verdict: one file each (+0.0 %)");
  EXPECT_THAT(files.why, HasSubstr("--history TRACE"));
  ResultCase bench = with("ns_per_pair", 2, {2, 2, 2});
  bench.kind = ResultKind::kBench;
  const FigureVerdict few = figure_verdict(figure("ns_per_pair"), with("ns_per_pair", 2), bench);
  EXPECT_THAT(few.text, HasSubstr("1 against 3 files are too few"));
  EXPECT_THAT(few.why, AllOf(HasSubstr("`tenon bench OLD NEW`"), testing::Not(HasSubstr("--history"))));
}

TEST(FigureVerdict, OfSeveralResultsASideAnIntervalDecides) {
  const std::vector<double> fast = {100, 101, 99, 100.5, 99.5, 100.2};
  std::vector<double> slow, near;
  for (const double value : fast) slow.push_back(1.2 * value), near.push_back(value + 0.1);
  const auto of = [&](const std::vector<double>& then, const std::vector<double>& now, const char* key) {
    return figure_verdict(figure(key), with(key, then.front(), then), with(key, now.front(), now));
  };
  EXPECT_EQ(of(fast, slow, "step_ms").kind, Kind::kDifferent);
  EXPECT_THAT(of(fast, slow, "step_ms").text, MatchesRegex("slower by (17|18|19) to (21|22|23) %"));
  EXPECT_THAT(of(slow, fast, "step_ms").text, HasSubstr("faster by 1"));
  EXPECT_EQ(of(fast, near, "step_ms").kind, Kind::kNoEvidence);
  // Bytes that differ from run to run, too, and so do shares, in points.
  EXPECT_THAT(of(fast, slow, "peak_reserved_bytes").text, MatchesRegex("worse: \\+1[789]\\.. to \\+2[123]\\.. %"));
  EXPECT_EQ(of(fast, near, "peak_reserved_bytes").kind, Kind::kNoEvidence);
  std::vector<double> share, more;
  for (const double value : fast) share.push_back(value / 200), more.push_back(value / 200 + 0.1);
  EXPECT_THAT(of(share, more, "test_accuracy").text, HasSubstr("better: +9.0 to +11.0 points"));
  EXPECT_THAT(of(more, share, "test_accuracy").text, HasSubstr("worse: -11.0 to -9.0 points"));
  EXPECT_EQ(of(share, share, "test_accuracy").kind, Kind::kNoEvidence);
}

TEST(FigureVerdict, FiguresThatAreTheSameInEveryRunAreExact) {
  const std::vector<double> same(6, 70);
  EXPECT_FALSE(is_estimated(figure("peak_reserved_bytes"), {.value = 70, .samples = same}));
  EXPECT_TRUE(is_estimated(figure("peak_reserved_bytes"), {.value = 70, .samples = {70, 70, 71}}));
  EXPECT_TRUE(is_estimated(figure("step_ms"), {.value = 70}));
  EXPECT_EQ(figure_verdict(figure("peak_reserved_bytes"), with("peak_reserved_bytes", 70, same),
                           with("peak_reserved_bytes", 70, same))
                .kind,
            Kind::kSame);
}

TEST(FigureVerdict, OfAFailedCaseThereIsNoneAndItSaysWhy) {
  ResultCase failed = with("peak_reserved_bytes", 5);
  failed.failure = "it overlaps", failed.mark = "disqualified";
  const ResultCase fine = with("peak_reserved_bytes", 5);
  for (const auto& [first, other] : {std::pair(failed, fine), std::pair(fine, failed)}) {
    const FigureVerdict verdict = figure_verdict(figure("peak_reserved_bytes"), first, other);
    EXPECT_EQ(verdict.kind, Kind::kFailed);
    EXPECT_EQ(verdict.text, "no verdict: disqualified");
    EXPECT_EQ(verdict.why, "it overlaps");
  }
  EXPECT_EQ(figure_of(failed, figure("peak_reserved_bytes")), nullptr);
  const FigureVerdict none = figure_verdict(figure("excess"), fine, fine);
  EXPECT_EQ(none.kind, Kind::kNone);
  EXPECT_EQ(none.text, "");
}

TEST(FigureVerdict, TwoThatRanOutAreComparedOnlyWhereTheyEndedAtTheSameEvent) {
  const auto ran_out = [](const std::string& where, bool is_known) {
    ResultCase found = with("peak_reserved_bytes", 5);
    found.figures["ooms"] = {.value = 1};
    found.ran_out = where, found.is_oom_event_known = is_known;
    return found;
  };
  const ResultCase fine = [] {
    ResultCase found = with("peak_reserved_bytes", 5);
    found.figures["ooms"] = {.value = 0};
    return found;
  }();
  const FigureInfo& peak = figure("peak_reserved_bytes");
  EXPECT_EQ(figure_verdict(peak, ran_out("OOM at event 3", true), ran_out("OOM at event 3", true)).kind, Kind::kSame);
  EXPECT_EQ(figure_verdict(peak, ran_out("OOM", false), ran_out("OOM", false)).kind, Kind::kNotComparable);
  const FigureVerdict other = figure_verdict(peak, fine, ran_out("OOM at event 3", true));
  EXPECT_EQ(other.text, "not comparable: OOM at event 3");
  const FigureVerdict first = figure_verdict(peak, ran_out("OOM at event 3", true), fine);
  EXPECT_EQ(first.text, "not comparable: the first ran out");
  EXPECT_EQ(first.why, "the first ran out: OOM at event 3");
  EXPECT_EQ(figure_verdict(figure("ooms"), fine, ran_out("OOM", false)).kind, Kind::kDifferent) << "needs no end";
}

TEST(FigureVerdict, TimesOfCellsThatRanBesideEachOtherGetNone) {
  ResultCase shared = with("step_ms", 5);
  shared.figures["peak_reserved_bytes"] = {.value = 5};
  shared.cells_at_a_time = 2;
  ResultCase alone = shared;
  alone.cells_at_a_time = 1;
  for (const auto& [first, other] : {std::pair(shared, alone), std::pair(alone, shared)}) {
    const FigureVerdict verdict = figure_verdict(figure("step_ms"), first, other);
    EXPECT_EQ(verdict.kind, Kind::kShared);
    EXPECT_THAT(verdict.why, HasSubstr("up to 2 cells at a time"));
    EXPECT_EQ(figure_verdict(figure("peak_reserved_bytes"), first, other).kind, Kind::kSame);
  }
  EXPECT_EQ(figure_verdict(figure("step_ms"), alone, alone).kind, Kind::kTooFew);
}

TEST(FigureVerdict, CountsOfDeviceCallsOfAResumedRunGetNoneWhereTheyDiffer) {
  ResultCase resumed = with("device_allocations", 5);
  resumed.is_resumed = true;
  const FigureInfo& calls = figure("device_allocations");
  EXPECT_EQ(figure_verdict(calls, with("device_allocations", 4), resumed).kind, Kind::kResumed);
  EXPECT_EQ(figure_verdict(calls, resumed, with("device_allocations", 4)).kind, Kind::kResumed);
  EXPECT_EQ(figure_verdict(calls, with("device_allocations", 5), resumed).kind, Kind::kSame);
  EXPECT_EQ(figure_verdict(calls, with("device_allocations", 4), with("device_allocations", 5)).kind, Kind::kDifferent);
  ResultCase per_step = with("device_calls_per_step", 5);
  per_step.is_resumed = true;
  EXPECT_EQ(figure_verdict(figure("device_calls_per_step"), with("device_calls_per_step", 4), per_step).kind,
            Kind::kDifferent);
}

TEST(KnownFigures, AreFoundByTheirKeysAndNothingElse) {
  for (const FigureInfo& info : known_figures()) EXPECT_EQ(find_figure(info.key)->title, info.title);
  EXPECT_EQ(find_figure("peak reserved"), nullptr);
  EXPECT_EQ(find_figure(""), nullptr);
}

}  // namespace
}  // namespace tenon::measure
