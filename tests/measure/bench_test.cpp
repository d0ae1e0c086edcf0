// The bench: what it survives, and what its figures are made of. No assertion here is about how fast anything is.
#include "runtime/fixture.h"
#include "support/expect_error.h"

#include <tenon/measure/bench/bench.h>
#include <tenon/measure/bench/host_noise.h>
#include <tenon/measure/bench/soundness.h>
#include <tenon/replay/trace/trace_builder.h>

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace tenon::measure {
namespace {

using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class Bench : public testing::Test {
 protected:
  BenchOptions options_{.specs = {test::fixture("tiny").string(), test::fixture("tiny").string()},
                        .workloads = {{.name = "hot/4KiB"}},
                        .rounds = 3,
                        .slices = 2,
                        .slice_ns = 1e5};
};

TEST_F(Bench, GivesEverySubjectAFigureAndARatioForEachRound) {
  options_.workloads = {{.name = "hot/512"},   {.name = "lifo/10"},   {.name = "random/10"},
                        {.name = "cached/10"}, {.name = "streams/2"}, {.name = "threads/2"}};
  options_.workloads.push_back({.name = "threads-random/2"});
  options_.deadline_s = 300;  // threads wait for each other, and a busy machine has few processors for them
  const BenchResult result = run_bench(options_);
  EXPECT_EQ(result.allocators(), 2u);
  ASSERT_THAT(result.cells, SizeIs(7));
  for (const auto& cells : result.cells) {
    ASSERT_THAT(cells, SizeIs(3)) << "the harness is the third";
    for (const BenchCell& cell : cells) {
      EXPECT_THAT(cell.round_ns, SizeIs(3));
      EXPECT_THAT(cell.round_ns, Each(Gt(0)));
      EXPECT_EQ(cell.failure, "");
    }
    EXPECT_THAT(cells[0].round_ratios, IsEmpty());
    EXPECT_THAT(cells[1].round_ratios, SizeIs(3));
  }
  EXPECT_THAT(result.ratios(7, 1, 0), SizeIs(3)) << "of all workloads";
  EXPECT_FALSE(result.ratio(0, 1, 0)) << "three rounds are too few for an interval";
  EXPECT_THAT(result.subjects[0].plugin_json, HasSubstr("\"sha256\""));
}

TEST_F(Bench, RunsARecordedHistory) {
  replay::TraceBuilder builder("steps");
  for (int i = 0; i < 50; ++i) {
    const auto slot = builder.allocate(1000, 0);
    builder.use(slot, 1);
    builder.free(slot);
  }
  const replay::Trace trace = std::move(builder).finish();
  options_.workloads = {{.name = "recorded/steps", .trace = &trace}};
  const BenchResult result = run_bench(options_);
  EXPECT_FALSE(result.has_failed());
  EXPECT_THAT(result.cells[0][0].round_ns, SizeIs(3));
}

TEST_F(Bench, ACrashEndsTheFiguresOfItsSubjectAlone) {
  options_.specs[1] = test::fixture("crasher").string() + ":after=20";
  const BenchResult result = run_bench(options_);
  EXPECT_THAT(result.cells[0][1].failure, HasSubstr("crashed: Segmentation fault"));
  EXPECT_THAT(result.cells[0][1].round_ns, IsEmpty());
  EXPECT_THAT(result.cells[0][0].round_ns, SizeIs(3));
  EXPECT_TRUE(result.has_failed());
}

TEST_F(Bench, AHangEndsAtItsDeadline) {
  options_.specs[1] = test::fixture("crasher").string() + ":how=hang,after=20";
  options_.deadline_s = 0.5;
  const BenchResult result = run_bench(options_);
  EXPECT_THAT(result.cells[0][1].failure, HasSubstr("hangs: no answer in 0.5 s"));
  EXPECT_THAT(result.cells[0][0].round_ns, SizeIs(3));
}

TEST_F(Bench, WhatIsAtWorkAtItsDeadlineIsSlowAndDoesNotHang) {
  options_.specs[1] = test::fixture("crasher").string() + ":how=slow,after=100";
  options_.deadline_s = 1;
  const BenchResult result = run_bench(options_);
  const BenchCell& slow = result.cells[0][1];
  EXPECT_THAT(slow.failure, testing::MatchesRegex("no end within 1 s \\([0-9]+ of [0-9]+ operations done\\)"));
  EXPECT_TRUE(slow.is_too_slow);
  EXPECT_THAT(result.cells[0][0].round_ns, SizeIs(3));
}

TEST_F(Bench, EndsThoughASubjectHangs) {
  options_.specs[1] = test::fixture("crasher").string() + ":how=hang,after=20";
  options_.deadline_s = 600;
  int asked = 0;
  options_.is_stopping = [&] { return ++asked > 40; };
  const BenchResult result = run_bench(options_);
  EXPECT_TRUE(result.is_interrupted);
  EXPECT_EQ(result.cells[0][1].failure, "") << "an interruption says nothing of the subject";
}

TEST_F(Bench, OverlappingMemoryIsDisqualifiedAndNotTimed) {
  options_.specs[0] = test::fixture("faulty").string() + ":after=20";
  options_.workloads.push_back({.name = "lifo/10"});
  const BenchResult result = run_bench(options_);
  for (const auto& cells : result.cells) {
    EXPECT_THAT(cells[0].failure, StartsWith("disqualified"));
    EXPECT_THAT(cells[1].round_ns, SizeIs(3)) << "the other one has its figures";
    EXPECT_THAT(cells[1].round_ratios, IsEmpty()) << "and nothing to be held against";
  }
}

TEST_F(Bench, ASpecThatNamesNothingIsAUsageError) {
  options_.specs[1] = "no_such_allocator";
  try {
    run_bench(options_);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("no_such_allocator"));
  }
}

TEST_F(Bench, SharesWhatMayBeWrongAmongItsVerdicts) {
  options_.rounds = options_.slices = 1;
  options_.slice_ns = 1e4;
  options_.confidence = 0.9;
  EXPECT_DOUBLE_EQ(run_bench(options_).confidence, 0.9) << "one verdict";
  options_.specs.push_back(options_.specs[0]);
  EXPECT_DOUBLE_EQ(run_bench(options_).confidence, 1 - 0.1 / 2);
  options_.workloads.push_back({.name = "lifo/10"});
  EXPECT_DOUBLE_EQ(run_bench(options_).confidence, 1 - 0.1 / 6) << "two workloads and their mean, of two subjects";
}

TEST(BenchResult, ItsIntervalIsThatOfTheMedianOfPairedRounds) {
  BenchResult result;
  result.subjects = {{"a", "a", ""}, {"b", "b", ""}, {"harness", "", ""}};
  result.workloads = {"hot"};
  result.confidence = 0.95;
  BenchCell first, second, harness;
  for (int i = 0; i < 20; ++i) {
    first.round_ns.push_back(100 + 10 * (i % 5));  // a machine that changes its mind by the round
    second.round_ns.push_back(1.05 * first.round_ns.back());
    second.round_ratios.push_back(1.05);
  }
  result.cells = {{first, second, harness}};
  const auto ratio = result.ratio(0, 1, 0);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->low, 1.05, 1e-9);
  EXPECT_NEAR(ratio->high, 1.05, 1e-9);
  EXPECT_NEAR(result.ratio(0, 0, 1)->middle, 1 / 1.05, 1e-9);
}

TEST(BenchNames, OfSpecsThatAreTypedAlikeTheLaterHaveANumber) {
  EXPECT_EQ(subject_names({"x", "y", "x", "x"}), (std::vector<std::string>{"x", "y", "x#2", "x#3"}));
}

TEST(BenchRounds, AreEnoughForAVerdictOnEveryCell) {
  BenchOptions options{.specs = {"a", "b"}, .workloads = {{.name = "hot/4KiB"}}};
  EXPECT_EQ(enough_rounds(options), 60);
  options.workloads.resize(7);
  EXPECT_EQ(enough_rounds(options), 20);
  options.specs.resize(40);
  options.workloads.resize(40);
  EXPECT_GT(enough_rounds(options), 20);
}

/// How many of a hundred benches of two builds under one workload have a verdict. Rounds spread by 5 %, as on a machine
/// that compiles meanwhile, and every tenth lies far off.
int verdicts_of_a_hundred(double slower_by) {
  const int rounds = enough_rounds({.specs = {"a", "b"}, .workloads = {{.name = "hot/4KiB"}}});
  std::mt19937_64 random(47);
  std::normal_distribution<double> noise(0, 0.05);
  int verdicts = 0;
  for (int bench = 0; bench < 100; ++bench) {
    BenchResult result;
    result.subjects = {{"a", "a", ""}, {"b", "b", ""}, {"harness", "", ""}};
    result.workloads = {"hot/4KiB"};
    result.confidence = 0.99;
    BenchCell first, second;
    for (int round = 0; round < rounds; ++round)
      second.round_ratios.push_back((1 + slower_by) * std::exp(noise(random) * (random() % 10 == 0 ? 5 : 1)));
    result.cells = {{first, second, first}};
    const auto ratio = result.ratio(0, 1, 0);
    verdicts += ratio && (ratio->low > 1 || ratio->high < 1) ? 1 : 0;
  }
  return verdicts;
}

TEST(BenchRounds, FindFivePercentOnABusyMachineAndNothingBetweenEqualBuilds) {
  EXPECT_GE(verdicts_of_a_hundred(0.05), 95);
  EXPECT_LE(verdicts_of_a_hundred(0), 3);
}

TEST(Workloads, AWrongNameIsToldWithWhatThereIs) {
  test::expect_error<ConfigError>([] { check_workload("hto/4KiB"); },
                                  "unknown workload \"hto/4KiB\"; there are hot/SIZE");
  test::expect_error<ConfigError>([] { check_workload("lifo"); }, "expected lifo/N, as in lifo/1000");
  test::expect_error<ConfigError>([] { check_workload("lifo/1KiB"); }, "expected lifo/N");
  test::expect_error<ConfigError>([] { check_workload("threads"); }, "as in threads/2");
  test::expect_error<ConfigError>([] { check_workload("random/0"); }, "N is from 1 to 1000000");
  for (const std::string& name : default_workloads()) EXPECT_NO_THROW(check_workload(name)) << name;
}

TEST(Workloads, TheLoopSaysHowManyPairsItRan) {
  const StackConfig harness = harness_allocator();
  EXPECT_EQ(make_workload({.name = "hot/512"}, harness)->repeat(7), 7u);
  EXPECT_EQ(make_workload({.name = "lifo/10"}, harness)->repeat(15), 20u) << "whole passes";
  EXPECT_EQ(make_workload({.name = "lifo/10"}, harness)->run(15).pairs, 20u) << "timed, it is the same loop";
  EXPECT_EQ(make_workload({.name = "threads-random/2"}, harness)->repeat(7), 7u) << "of each thread";
}

TEST(HostNoise, WarnsOfWhatSpoilsAMeasurement) {
  EXPECT_THAT((HostNoise{.cores = 4, .load = 0.3, .governor = "performance"}).warnings(), IsEmpty());
  const HostNoise busy{.cores = 2, .load = 3, .stolen_share = 0.1, .harness_spread = 0.2, .governor = "powersave"};
  EXPECT_THAT(busy.warnings(), SizeIs(4));
  EXPECT_THAT(busy.warnings()[0], HasSubstr("load average was 3.0 on 2 cores"));
}

}  // namespace
}  // namespace tenon::measure
