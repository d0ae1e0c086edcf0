// What is said below the table of `tenon bench`.
#include <tenon/report/measure/bench_report.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string said_of(int rounds, bool is_interrupted) {
  measure::BenchResult result;
  result.subjects = {{"a", "a", ""}, {"b", "b", ""}, {"harness", "", ""}};
  result.workloads = {"hot/4KiB"};
  result.cells = {std::vector<measure::BenchCell>(3)};
  result.confidence = 0.99;
  result.rounds = rounds;
  result.is_interrupted = is_interrupted;
  return bench_method(result, {});
}

TEST(BenchMethod, OfRoundsThatNobodyInterruptedSaysWhatTheVerdictsRestOn) {
  EXPECT_THAT(said_of(20, false), AllOf(HasSubstr("Medians of 20 rounds, "),
                                        HasSubstr("Verdicts: the interval of the "), Not(HasSubstr("Interrupted"))));
}

TEST(BenchMethod, OfAnInterruptedBenchSaysHowMuchWasMeasured) {
  EXPECT_THAT(said_of(12, true), AllOf(HasSubstr("Interrupted: 12 of 20 rounds of every workload were measured.\n"),
                                       HasSubstr("Medians of 12 rounds, "), HasSubstr("Verdicts: ")));
}

TEST(BenchMethod, OfTooFewRoundsClaimsNoVerdict) {
  EXPECT_THAT(said_of(1, true),
              AllOf(HasSubstr("Medians of 1 round, "), HasSubstr("1 round is too few for a verdict; it takes 8.\n"),
                    Not(HasSubstr("Verdicts: "))));
  EXPECT_EQ(said_of(0, true), "Interrupted: 0 of 20 rounds of every workload were measured.\n")
      << "of which there are no medians";
}

// Of one workload they would be its row once more.
TEST(BenchJson, HasFiguresOfAllWorkloadsWhereThereAreSeveral) {
  const auto all_of = [](std::vector<std::string> workloads) {
    measure::BenchResult result;
    result.subjects = {{"a", "a", "{}"}, {"b", "b", "{}"}, {"harness", "", "{}"}};
    result.workloads = std::move(workloads);
    measure::BenchCell cell;
    for (int round = 0; round < 20; ++round) {
      cell.round_ns.push_back(100 + round);
      cell.round_ratios.push_back(1.5);
    }
    result.cells.assign(result.workloads.size(), std::vector<measure::BenchCell>(3, cell));
    result.confidence = 0.99;
    result.rounds = 20;
    return nlohmann::json::parse(bench_json(result, {}, {}, {}, {}, "{}"))["all"].size();
  };
  EXPECT_EQ(all_of({"hot/4KiB"}), 0u);
  EXPECT_EQ(all_of({"hot/4KiB", "hot/64MiB"}), 1u) << "b against a";
}

}  // namespace
}  // namespace tenon
