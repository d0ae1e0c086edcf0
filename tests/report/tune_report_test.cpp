// What `tenon tune` says of the settings that a recording was made under.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/report/replay/own_advice.h>
#include <tenon/report/replay/tune_report.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string tune_text(const replay::TuneResult& result, const std::string& capacity) {
  const std::vector<replay::Trace> traces = {replay::read_one("a 0 512 0\n")};
  const std::vector<std::string> files = {"a.trace"};
  return tune_report(result, {.traces = traces, .files = files, .capacity = capacity}, TableFormat::kTable, "{}");
}

TEST(TuneReport, SaysWhatBecomesOfEachSettingOfTheRecording) {
  replay::TuneResult result;
  result.finalists.resize(1);
  result.finalists.front().is_recommended = true;
  result.trust.resize(1);
  result.recorded_conf = "max_split_size_mb:64,garbage_collection_threshold:0.8";
  const std::string set = "Set in the recording: \"" + result.recorded_conf + "\"";
  const auto said = [&](const std::string& recommended, std::vector<std::string> dropped) {
    result.recommended_conf = recommended;
    result.dropped_settings = std::move(dropped);
    return tune_text(result, "");
  };
  EXPECT_THAT(said(result.recorded_conf + ",roundup_power2_divisions:4", {}),
              HasSubstr(set + "; kept: max_split_size_mb:64, garbage_collection_threshold:0.8. The whole line:\n"));
  EXPECT_THAT(said("max_split_size_mb:64", {}),
              HasSubstr(set + "; kept: max_split_size_mb:64; replaced by what the search found; remove: "
                              "garbage_collection_threshold:0.8. The whole line:\n"));
  EXPECT_THAT(said("", {"garbage_collection_threshold:0.8"}),
              HasSubstr(set + "; replaced by what the search found; remove: max_split_size_mb:64; left out, since "
                              "PyTorch's native allocator does not take it: garbage_collection_threshold:0.8.\n"));
  EXPECT_THAT(said(result.recorded_conf, {}), Not(HasSubstr("Set in the recording"))) << "all of it stays";
}

TEST(TuneReport, HoldsNothingAgainstABaselineThatWasNotReplayed) {
  replay::TuneResult result;
  result.finalists.resize(2);
  result.finalists.front().is_recommended = true;
  result.finalists.front().peak_reserved_bytes = 96 * MiB;
  result.finalists.front().relative_peak = 1.5;
  result.finalists.back().is_baseline = true;
  result.finalists.back().peak_reserved_bytes = 128 * MiB;
  result.trust.resize(1);
  EXPECT_THAT(tune_text(result, ""),
              HasSubstr("Recommended: peak reserved 96.0 MiB instead of 128.0 MiB. That is 50.0 %"));
  result.finalists.pop_back();
  result.is_interrupted = true;
  EXPECT_THAT(tune_text(result, ""), HasSubstr("Recommended: peak reserved 96.0 MiB. That is 50.0 % more"));
}

TEST(TuneReport, SaysOfASettingThatRunsAtTheCapacityThatTheTimeWasOver) {
  replay::TuneResult result;
  result.finalists.resize(1);
  replay::Candidate& setting = result.finalists.front();
  setting.label = "max_split_size_mb:64";
  setting.ooms_at_capacity = 0;
  setting.safe_from_bytes = setting.examined_from_bytes = 100 * MiB;
  result.peak_requested_bytes = 80 * MiB;
  result.trust.resize(1);
  EXPECT_THAT(tune_text(result, "90MiB"),
              AllOf(HasSubstr("Nothing is recommended: 'max_split_size_mb:64' runs in 90MiB, and the time was over"),
                    HasSubstr("--budget"), Not(HasSubstr("runs safely"))));
  setting.examined_from_bytes = 95 * MiB;
  EXPECT_THAT(tune_text(result, "90MiB"), HasSubstr("Nothing that was tried runs safely in 90MiB")) << "it fails above";
  setting.examined_from_bytes = 100 * MiB;
  setting.ooms_at_capacity = 1;
  EXPECT_THAT(tune_text(result, "90MiB"), HasSubstr("Nothing that was tried runs safely in 90MiB")) << "it fails there";
}

TEST(TuneReport, WhereNothingOfPyTorchsRunsNamesTheFractionThatTheRecordingWasHeldTo) {
  replay::TuneResult result;
  result.finalists.resize(1);
  replay::Candidate& own = result.finalists.front();
  own.label = "calm";
  own.is_pytorch = false;
  own.safe_from_bytes = 100 * MiB;
  own.device_calls = 7;
  result.peak_requested_bytes = 80 * MiB;
  result.trust.resize(1);
  result.recorded_conf = "max_split_size_mb:64,per_process_memory_fraction:0.5";
  const std::string words = "\nAll were tried with per_process_memory_fraction:0.5, which was set in the recording.\n";
  EXPECT_THAT(tune_text(result, ""), HasSubstr("with 7 device calls." + words));
  EXPECT_THAT(tune_text(result, "85MiB"), HasSubstr("the peak of live memory alone is 80.0 MiB." + words));
  result.recorded_conf = "max_split_size_mb:64";
  EXPECT_THAT(tune_text(result, ""), AllOf(HasSubstr("with 7 device calls.\n"), Not(HasSubstr("All were tried"))));
}

TEST(OwnAdvice, ThePlanIsMadeOfTheDeviceThatItIsFor) {
  load_all_plugins();
  const replay::PlanOfHistory plan(replay::read_one("a 0 1048576 0\nf 0\n"), 1);
  const std::vector<replay::FitCandidate> planned = plan.allocators();
  ASSERT_EQ(planned.size(), 1U);
  const OwnAdvice advice{.label = "planned", .policy = planned[0].policy, .is_planned = true};
  EXPECT_THAT(own_advice({&advice, 1}, "", {.file = "runs/two.pickle", .device = 1}, true),
              AllOf(HasSubstr("\n  tenon plan runs/two.pickle --device 1 -o two-1.plan\n"),
                    HasSubstr("\n  plan = \"two-1.plan\"\n")));
  EXPECT_THAT(own_advice({&advice, 1}, "", {.file = "-"}, true), HasSubstr("\n  tenon plan HISTORY -o history.plan\n"))
      << "which `tenon plan` reads no history from";
}

}  // namespace
}  // namespace tenon
