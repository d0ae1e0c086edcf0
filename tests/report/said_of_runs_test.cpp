// What is said of runs, sweeps and estimates with fixed figures is that of said_of_runs.txt, to the letter: see
// said_test.cpp.
#include "report/said.h"

#include <tenon/core/units.h>
#include <tenon/report/kit_advice.h>
#include <tenon/report/run/estimate_report.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_messages.h>
#include <tenon/report/run/run_remarks.h>
#include <tenon/report/run/run_report.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using test::in_all_formats;
using test::kEnvironment;
using test::kFormats;

void said_of_runs(const std::string& what, const std::string& text) {
  static test::RecordedTable table("tests/report/said_of_runs.txt");
  table.expect(what, test::outcome_of(text));
}

RunSummary run_of(int number) {
  RunSummary run;
  run.status = RunStatus::kDone;
  run.test_accuracy = 0.8 + 0.01 * number, run.final_loss = 0.3, run.step_ms = 2.5 + number, run.seconds = 60;
  run.device_calls_per_step = number, run.parameters = 13'002, run.steps = 40;
  run.peak_requested_bytes = (30 + number) * static_cast<std::int64_t>(MiB);
  run.peak_allocated_bytes = (31 + number) * static_cast<std::int64_t>(MiB);
  run.peak_reserved_bytes = (40 + 3 * number) * static_cast<std::int64_t>(MiB);
  run.peak_in_steps_bytes = run.peak_allocated_bytes;
  run.peak_phase = number == 1 ? "forward" : "update";
  run.losses_hash = number < 3 ? "00000000000000aa" : "00000000000000ab";
  run.peak_bytes_by_purpose = {{"parameter", 52008}, {"activation", 4 << 20}};
  run.bytes_in_peak_phase = {{"parameter", 52008}, {"activation", (4 + number) << 20}, {"gradient", 1 << 20}};
  run.figures = {{"expected_total_bytes", 3.5e7}, {"expected_relative_time", 1.25}};
  run.estimate_error = {.requested = 0.01 * number, .reserved = -0.02};
  return run;
}

TEST(SaidOfRuns, TablesAndRemarks) {
  const std::vector<std::string> keys = {"allocator.name", "train.checkpoint"};
  const std::vector<std::vector<std::string>> values = {
      {"caching", "false"}, {"caching", "true"}, {"/x/y/mine.so:a=1", "false"}, {"direct", "false"}, {"z", "true"}};
  std::vector<RunSummary> runs = {run_of(0), run_of(1), run_of(2), run_of(3), {}};
  runs[1].is_checkpointed = true;
  runs[2].status = RunStatus::kDisqualified, runs[2].error = "it overlaps";
  runs[2].faults = {{.allocator = "", .what = "it overlaps", .spec = "mine.so"}};
  runs[3].status = RunStatus::kOutOfMemory, runs[3].first_oom_event = 99, runs[3].cells_at_a_time = 3;
  for (const bool by_purpose : {false, true}) {
    std::string all;
    for (const TableFormat format : kFormats)
      all += render(run_comparison(keys, values, runs, {.by_purpose = by_purpose, .format = format}), format,
                    kEnvironment);
    said_of_runs(by_purpose ? "runs by purpose" : "runs", all);
  }
  said_of_runs("run remarks", peak_remark(runs) + checkpoint_remark(keys, values, runs) + losses_remark(runs) +
                                  estimate_remark(runs) + sharing_remark(runs));
  said_of_runs("remarks of one run", peak_remark({runs[1]}) + losses_remark({runs[1]}) + estimate_remark({runs[1]}) +
                                         sharing_remark({runs[1]}) + losses_remark({runs[0], runs[1]}));
  const std::string timeline =
      R"({"timeline":[{"step":1,"requested_bytes":1000,"allocated_bytes":1024,"reserved_bytes":2048,)"
      R"("peak_allocated_bytes":1500},{"step":2,"requested_bytes":2000,"allocated_bytes":2048,"reserved_bytes":4096,)"
      R"("peak_allocated_bytes":3000},{"step":3,"requested_bytes":10,"allocated_bytes":512,"reserved_bytes":4096,)"
      R"("peak_allocated_bytes":900}],"losses":[3,2,1.5],"status":"done"})";
  said_of_runs("run page", run_html(timeline));
  said_of_runs("sweep page",
               sweep_html("sweep", run_comparison(keys, values, runs, {}),
                          {{"caching", timeline, "cells/1/report.html"}, {"direct", timeline, ""}, {"z", "", ""}},
                          "a remark\nanother\n"));
}

TEST(SaidOfRuns, Messages) {
  std::string all;
  const auto line = [&](const std::string& text) { all += text + "\n"; };
  line(resume_command("res"));
  line(resume_command("a folder", 4));
  line(kept_message("res", "res/former/1"));
  line(begins_again_message({"a.so"}, "res/former/1"));
  line(begins_again_message({"a.so", "b.so"}, {}));
  line(cells_again_message({"a.so"}, {0}, "k"));
  line(cells_again_message({"a.so", "b.so"}, {0, 2, 3}, "k"));
  line(other_build_message("1", "2", "cells"));
  ExperimentResult result;
  result.steps = 12, result.planned_steps = 60, result.kept_step = 10;
  const std::string interrupted = interruption("SIGINT", result);
  line(interrupted);
  line(interrupted_message(interrupted, result, "tenon run --resume res"));
  result.kept_step = 12;
  line(interrupted_message(interrupted, result, "tenon run --resume res"));
  result.kept_step = 0;
  result.state_problem = "the disk is full";
  line(interrupted_message(interrupted, result, ""));
  line(how_to_write_again("tenon x", false) + how_to_write_again("tenon x", true) + how_to_write_again("", true));
  line(once_mended_message("tenon x"));
  line(one_at_a_time_message(4, 2, 2));
  line(one_at_a_time_message(4, 8, 8));
  for (const SweepEnding& ending :
       std::vector<SweepEnding>{{.finished = 3, .cells = 3, .command = "go"},
                                {.finished = 2, .cells = 3, .command = "go"},
                                {.finished = 1, .cells = 3, .command = ""},
                                {.signal = "SIGINT", .finished = 1, .cells = 3, .command = "go"},
                                {.finished = 3, .cells = 3, .disqualified = 1, .command = "go"},
                                {.finished = 3, .cells = 3, .disqualified = 2, .command = "go"},
                                {.finished = 3, .cells = 3, .is_unwritten = true, .command = "go"}})
    line(sweep_ended_message(ending));
  line(restored_message("res", 1) + restored_message("res", 2));
  line(lost_message("res", 1, "go") + lost_message("res", 3, "go"));
  for (const std::string& fault :
       disqualifications("x", {{.what = "one"}, {.allocator = "allocator 'y'", .what = "two"}}))
    line(fault);
  line(layers_remark({{.layer = "stats", .entries = {{"allocations", "280"}, {"frees", "256"}}}, {.layer = "none"}}));
  line(kit_advice({}) + kit_advice({"a.so"}) + kit_advice({"a.so", "b.so:x=1"}));
  line(estimate_footer(1) + estimate_footer(4));
  said_of_runs("messages of runs", all);
}

TEST(SaidOfEstimates, CommentsAndTables) {
  Estimate estimate;
  estimate.memory.emplace().parameters = 13'002;
  MemoryStats& memory = estimate.memory->memory;
  memory.requested_bytes.peak = 3'000'000, memory.allocated_bytes.peak = 3'100'000;
  memory.reserved_bytes.peak = 4 << 20, memory.allocations.allocated = 7;
  for (std::size_t i = 0; i < memory.requested_by_purpose.size(); ++i)
    memory.requested_by_purpose[i].peak = static_cast<std::int64_t>(i) << 18;
  Estimate short_one = estimate, unknown;
  short_one.out_of_memory_at_bytes = 1 << 20;
  Estimate of_purpose = short_one;
  of_purpose.out_of_memory_purpose = "gradient";
  unknown.problem = "no data";
  std::string all;
  MemoryStats measured = memory;
  measured.requested_bytes.peak = 3'100'000;
  for (const Estimate& one : {estimate, short_one, of_purpose, unknown})
    all += estimate_comment(one) + estimate_json(one, nullptr) + estimate_json(one, &measured) +
           estimate_error_text(estimate_error(one, measured)) + "\n";
  said_of_runs("estimates", all + in_all_formats(estimate_table({"a.b"}, {{"1"}, {"2"}, {"3"}, {"4"}},
                                                                {estimate, short_one, of_purpose, unknown})));
}

}  // namespace
}  // namespace tenon
