// What `tenon run` says of runs: honest rows after an out of memory, where the peak lies, the page of a sweep.
#include <tenon/core/units.h>
#include <tenon/report/run/estimate_report.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_remarks.h>
#include <tenon/report/run/run_report.h>
#include <tenon/report/svg.h>
#include <tenon/report/text/screen.h>

#include <gmock/gmock.h>

#include <regex>
#include <set>

namespace tenon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunSummary run_of(std::int64_t peak, const std::string& phase, std::map<std::string, std::int64_t> held) {
  RunSummary run;
  run.status = RunStatus::kDone;
  run.peak_requested_bytes = run.peak_allocated_bytes = run.peak_reserved_bytes = run.peak_in_steps_bytes = peak;
  run.peak_phase = phase;
  run.bytes_in_peak_phase = std::move(held);
  return run;
}

TEST(EstimateComment, CountsParametersInGroupsOfThreeDigits) {
  const std::pair<std::int64_t, const char*> numbers[] = {
      {7, "7"}, {123, "123"}, {1234, "1,234"}, {123456, "123,456"}, {1234567, "1,234,567"}};
  for (const auto& [number, text] : numbers) {
    Estimate estimate;
    estimate.memory.emplace().parameters = number;
    EXPECT_THAT(estimate_comment(estimate),
                testing::HasSubstr(std::string("# parameters                ") + text + "\n"));
  }
}

// "# " takes two columns: on a screen of three, one is left for the words, and on a narrower one nothing can be
// wrapped.
TEST(EstimateComment, IsWrappedWhereverAColumnIsLeftForItsWords) {
  Estimate estimate;
  estimate.problem = "a b";
  const auto comment = [&](std::size_t columns) {
    set_output_screen({.columns = columns});
    const std::string text = estimate_comment(estimate);
    set_output_screen({});
    return text;
  };
  const std::string whole = "# no estimate of its memory: a b\n",
                    words = "# no\n# estimate\n# of\n# its\n# memory:\n# a\n# b\n";
  EXPECT_EQ(comment(0), whole);
  EXPECT_EQ(comment(2), whole);
  EXPECT_EQ(comment(3), words);
  EXPECT_EQ(comment(4), words);
  EXPECT_EQ(comment(17), "# no estimate of\n# its memory: a b\n") << "as wide as the screen";
  EXPECT_EQ(comment(16), "# no estimate of\n# its memory: a\n# b\n");
}

TEST(RunReport, AfterAnOutOfMemoryPeopleSeeWhereAndProgramsTheFigure) {
  RunSummary run = run_of(10 * MiB, "forward", {});
  run.status = RunStatus::kOutOfMemory;
  run.peak_reserved_bytes = 15 * MiB;
  run.first_oom_event = 17;
  const auto table = [&](TableFormat format) { return run_comparison({}, {{}}, {run}, {.format = format}); };
  EXPECT_THAT(table(TableFormat::kTable).text(), AllOf(HasSubstr("OOM at event 17"), Not(HasSubstr("50.0 %"))));
  EXPECT_THAT(table(TableFormat::kJson).json_rows(), AllOf(HasSubstr("\"excess\": 0.5"), Not(HasSubstr("OOM at"))));
}

TEST(RunReport, MemoryThatGrowsFromStepToStepIsALeak) {
  ExperimentResult result;
  for (std::int64_t step = 1; step <= 10; ++step) {
    result.losses.push_back(1);
    result.timeline.push_back({.step = step, .requested_bytes = static_cast<std::int64_t>(MiB) + 2048 * step});
  }
  EXPECT_THAT(growth_remark(result), HasSubstr("leak: 2.00 KiB more live at the end of each step"));
  for (MemorySample& sample : result.timeline) sample.requested_bytes = static_cast<std::int64_t>(MiB);
  EXPECT_THAT(growth_remark(result), IsEmpty());
}

TEST(RunReport, TheTableAndARemarkSayWhereThePeakLies) {
  const RunSummary run = run_of(8 * MiB, "update", {{"parameter", 2 * MiB}, {"optimizer_state", 4 * MiB}});
  EXPECT_THAT(run_comparison({}, {{}}, {run}, {}).text(), AllOf(HasSubstr("peak in"), HasSubstr("update")));
  EXPECT_THAT(peak_remark({run}),
              HasSubstr("in the update of the parameters, which held at most 4.00 MiB optimizer state, 2.00 MiB para"));
  RunSummary tested = run_of(8 * MiB, "testing", {});
  tested.peak_in_steps_bytes = 3 * MiB;
  EXPECT_THAT(peak_remark({run, tested}), AllOf(HasSubstr("in 1 of 2 cells"), HasSubstr("train.test_batch_size")));
}

TEST(RunReport, SaysWhyCheckpointingLowersNoPeak) {
  const std::vector<std::string> keys = {"model.name", "train.checkpoint"};
  const std::vector<std::vector<std::string>> values = {{"lenet", "false"}, {"lenet", "true"}};
  const auto remark = [&](const RunSummary& with) {
    return checkpoint_remark(keys, values, {run_of(10 * MiB, "forward", {}), with});
  };
  EXPECT_THAT(
      remark(run_of(10 * MiB, "update", {{"activation", MiB}, {"gradient", 4 * MiB}})),
      AllOf(HasSubstr("lowers no peak"), HasSubstr("the update of the parameters"), HasSubstr("4.00 MiB grad")));
  EXPECT_THAT(remark(run_of(10 * MiB, "backward", {{"activation", 7 * MiB}, {"gradient", MiB}})),
              HasSubstr("while it is recomputed (7.00 MiB); use smaller parts"));
  EXPECT_THAT(remark(run_of(10 * MiB, "testing", {{"activation", 7 * MiB}})), HasSubstr("no activations for a back"));
  EXPECT_THAT(remark(run_of(5 * MiB, "update", {{"gradient", 4 * MiB}})), IsEmpty()) << "it does lower that one";
}

TEST(SweepPage, LinksEveryCellAndTellsManyLinesApart) {
  std::vector<SweepPageCell> cells;
  std::vector<RunSummary> runs;
  std::vector<std::vector<std::string>> values;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "caching:max_split_size=" + std::to_string(20 + i) + "MiB, true";
    cells.push_back({.name = name,
                     .result = R"({"timeline":[{"step":1,"reserved_bytes":1,"peak_allocated_bytes":1},)"
                               R"({"step":2,"reserved_bytes":2,"peak_allocated_bytes":2}]})",
                     .page = "cells/" + std::to_string(i) + "/report.html"});
    runs.push_back(run_of(MiB, "forward", {}));
    values.push_back({name});
  }
  cells.back().page.clear();
  const std::string page =
      sweep_html("many", run_comparison({"allocator.name"}, values, runs, {}), cells, "a remark\n");
  EXPECT_THAT(page, AllOf(HasSubstr("<a href=\"cells/18/report.html\">caching:max_split_size=38MiB, true</a>"),
                          Not(HasSubstr("cells/19")), HasSubstr("<p class=\"note\">a remark</p>")));
  const std::regex line("<path d=\"[^\"]*\" fill=\"none\" stroke=\"(#[0-9a-f]+)\" stroke-width=\"[0-9.]+\"([^/]*)/>");
  std::set<std::string> looks;
  for (std::sregex_iterator found(page.begin(), page.end(), line), none; found != none; ++found)
    looks.insert((*found)[1].str() + (*found)[2].str());
  EXPECT_EQ(looks.size(), 20U) << "no two lines of a picture look the same";
}

TEST(RunPage, ALossStandsAtItsStep) {
  const std::string page = run_html(R"({"result":{"losses":[4,null,2,1],"figures":{"resumed_at_step":100}}})");
  const auto label = [](int step) { return "class=\"mid\">" + std::to_string(step) + "</text>"; };
  EXPECT_THAT(page, AllOf(HasSubstr(label(100)), HasSubstr(label(103)))) << "one that is not finite takes its place";
  EXPECT_THAT(page, AllOf(Not(HasSubstr(label(99))), Not(HasSubstr(label(104)))));
}

TEST(SvgChart, EntriesOfTheLegendDoNotOverlap) {
  constexpr double kWidestLetter = 7.2, kPageWidth = 960;
  SvgChart chart{.title = "many"};
  for (int i = 0; i < 14; ++i)
    chart.lines.push_back({std::string(static_cast<std::size_t>(5 + 4 * i), 'w'), {{0, 1}, {1, 2}}});
  const std::string svg = svg_chart(chart);
  const std::regex entry("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\"><title>[^<]*</title>([^<]*)</text>");
  double row = 0, end = 0;
  int entries = 0;
  for (std::sregex_iterator found(svg.begin(), svg.end(), entry), none; found != none; ++found, ++entries) {
    const double x = std::stod((*found)[1]), y = std::stod((*found)[2]);
    if (y == row) {
      EXPECT_GE(x - 28, end) << (*found)[3];
    }
    row = y;
    end = x + kWidestLetter * static_cast<double>((*found)[3].length());
    EXPECT_LE(end, kPageWidth) << (*found)[3];
  }
  EXPECT_EQ(entries, 14);
}

TEST(RunReport, SaysHowFarEstimatesWereOff) {
  RunSummary low, exact;
  low.estimate_error = {.requested = -0.004, .reserved = 0};
  exact.estimate_error = {.requested = 0, .reserved = 0};
  EXPECT_EQ(estimate_remark({low}), "estimate: peak requested 0.4 % too low, peak reserved exact\n");
  EXPECT_EQ(estimate_remark({exact, low}),
            "estimates: of 2 cells the farthest off: peak requested 0.4 % too low, peak reserved exact\n");
  EXPECT_EQ(estimate_remark({exact, exact}), "estimates: peaks exact in 2 cells\n");
  EXPECT_EQ(estimate_remark({RunSummary()}), "") << "none was made";
}

}  // namespace
}  // namespace tenon
