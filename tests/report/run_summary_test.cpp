// A run's figures for a comparison: read from its result.json, or taken from the run itself.
#include "support/message_of.h"
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/report/run/run_report.h>

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

RunSummary summary_in(const std::string& json) {
  const std::string path = test::scratch_folder() + "result.json";
  std::ofstream(path) << json;
  return read_summary(path);
}

TEST(RunSummaryOfAFile, HasItsFigures) {
  const RunSummary run = summary_in(R"({
"status": "done", "seconds": 12.5, "cells_at_a_time": 3,
"result": {"losses_fnv1a64": "aab1693229ba1db8", "test_accuracy": 0.75, "final_loss": 1.25, "step_ms": {"p50": 2.5},
           "parameters": 1000, "steps": 40, "figures": {"expected_seconds": 7.5}},
"memory": {"device_calls_per_step": 0.5, "peak_requested_bytes": 100, "peak_allocated_bytes": 200,
           "peak_reserved_bytes": 300, "peak_allocated_in_steps_bytes": 150, "allocations": 9,
           "peak_requested_bytes_by_purpose": {"gradient": 60}, "peak_phase": "backward",
           "requested_bytes_by_purpose_in_peak_phase": {"gradient": 50},
           "peak_requested_bytes_by_element": {"gradient": {"float32": 40}}},
"settings": {"train.checkpoint": {"value": "true"}},
"memory_estimate": {"error": {"peak_requested": -0.125, "peak_reserved": 0.25}}})");
  EXPECT_EQ(run.status, RunStatus::kDone);
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.seconds, 12.5);
  EXPECT_EQ(run.cells_at_a_time, 3);
  EXPECT_EQ(run.losses_hash, "aab1693229ba1db8");
  EXPECT_EQ(run.test_accuracy, 0.75);
  EXPECT_EQ(run.final_loss, 1.25);
  EXPECT_EQ(run.step_ms, 2.5);
  EXPECT_EQ(run.parameters, 1000);
  EXPECT_EQ(run.steps, 40);
  EXPECT_THAT(run.figures, ElementsAre(Pair("expected_seconds", 7.5)));
  EXPECT_EQ(run.device_calls_per_step, 0.5);
  EXPECT_EQ(run.peak_requested_bytes, 100);
  EXPECT_EQ(run.peak_allocated_bytes, 200);
  EXPECT_EQ(run.peak_reserved_bytes, 300);
  EXPECT_EQ(run.peak_in_steps_bytes, 150);
  EXPECT_THAT(run.peak_bytes_by_purpose, ElementsAre(Pair("gradient", 60)));
  EXPECT_EQ(run.peak_phase, "backward");
  EXPECT_THAT(run.bytes_in_peak_phase, ElementsAre(Pair("gradient", 50)));
  EXPECT_EQ(run.peak_bytes_by_element.at("gradient").at("float32"), 40);
  EXPECT_TRUE(run.is_checkpointed);
  EXPECT_EQ(run.estimate_error.requested, -0.125);
  EXPECT_EQ(run.estimate_error.reserved, 0.25);
  EXPECT_FALSE(run.first_oom_event.has_value());
}

TEST(RunSummaryOfAFile, TellsAFaultOfTheRunsAllocatorFromThatOfOneBehindALayer) {
  const RunSummary run = summary_in(R"({"disqualified": [
"handed out 512 bytes for a request of 1024",
"allocator 'tiny' behind the layer 'route' handed out one byte twice",
"allocator 'tiny' behind the layer 'route'"]})");
  ASSERT_EQ(run.faults.size(), 3U);
  EXPECT_EQ(run.faults[0].allocator, "");
  EXPECT_EQ(run.faults[0].what, "handed out 512 bytes for a request of 1024");
  EXPECT_EQ(run.faults[1].allocator, "allocator 'tiny' behind the layer 'route'");
  EXPECT_EQ(run.faults[1].what, "handed out one byte twice");
  EXPECT_EQ(run.faults[2].allocator, "") << "nothing is said of it";
  EXPECT_EQ(run.faults[2].what, "allocator 'tiny' behind the layer 'route'");
}

TEST(RunSummaryOfAFile, OfARunThatRanOutHasItsStatusItsErrorAndTheEvent) {
  const RunSummary run = summary_in(
      R"({"status": "out_of_memory", "error": "out of memory: 8 B", "out_of_memory": {"failed_event": 17}})");
  EXPECT_EQ(run.status, RunStatus::kOutOfMemory);
  EXPECT_EQ(run.error, "out of memory: 8 B");
  EXPECT_EQ(run.first_oom_event, 17U);
  EXPECT_EQ(summary_in("{}").status, RunStatus::kFailed) << "one that does not say how it ended";
  EXPECT_EQ(summary_in("{}").cells_at_a_time, 1);
}

TEST(RunSummaryOfAFile, HasNoPeakWhereNothingWasAskedFor) {
  const auto peak = [](const std::string& allocations) {
    return summary_in("{\"memory\": {\"peak_reserved_bytes\": 0, \"allocations\": " + allocations + "}}")
        .peak_reserved_bytes;
  };
  EXPECT_EQ(peak("1"), 0);
  EXPECT_EQ(peak("0"), std::nullopt);
}

TEST(RunSummaryOfAFile, ThatIsNoResultIsRefused) {
  for (const char* text : {"", "[1]", "{\"status\": "})
    EXPECT_THAT(test::message_of<Error>([&] { summary_in(text); }), HasSubstr("result.json: no result")) << text;
  EXPECT_THAT(test::message_of<Error>([] { read_summary("/no/such/result.json"); }),
              HasSubstr("/no/such/result.json: no result"));
}

// FNV-1a of the eight bytes of each, the lowest first: 1.0 is 00 00 00 00 00 00 f0 3f.
TEST(HashOfLosses, IsFnvOfTheirBytes) {
  const auto hash_of = [](std::vector<double> losses) {
    RunRecord record;
    record.result.losses = std::move(losses);
    return summary_of(record).losses_hash;
  };
  EXPECT_EQ(hash_of({1.0}), "aab1693229ba1db8");
  EXPECT_EQ(hash_of({2.5, 1.25}), "4a608d462c81fb98");
  EXPECT_NE(hash_of({1.25, 2.5}), hash_of({2.5, 1.25}));
  EXPECT_NE(hash_of({std::nextafter(1.0, 2.0)}), hash_of({1.0})) << "to the last bit";
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(hash_of({kNan, kNan}), IsEmpty()) << "none of them is a number";
  EXPECT_NE(hash_of({1.0, kNan}), "");
}

}  // namespace
}  // namespace tenon
