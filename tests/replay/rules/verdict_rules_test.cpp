// What speaks against a history or an answer, word for word: why a recording cannot be compared with its replay, and
// why nothing is recommended from a file.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Trace pytorch_recording() {
  load_all_plugins();
  Trace trace = read_one(test::pinned_segments());
  trace.name = "run";
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->is_whole = true;
  trace.recorded->has_settings = true;
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = 500 * MiB;
  return trace;
}
std::string why_unknown_fidelity(const Trace& trace, const std::string& conf = "") {
  const Fidelity found = measure_fidelity(trace, policy_of_conf(conf), conf);
  EXPECT_FALSE(found.is_known);
  EXPECT_FALSE(found.is_exact);
  return found.why_unknown;
}

TEST(UnknownFidelity, SaysWhatTheFileLacks) {
  Trace trace = pytorch_recording();
  trace.recorded->peak_reserved_bytes = 0;
  EXPECT_EQ(why_unknown_fidelity(trace),
            "the snapshot holds no segment of this device: what was reserved on it is not recorded");
  trace.recorded.reset();
  EXPECT_EQ(why_unknown_fidelity(trace),
            "the snapshot holds no segment of this device: what was reserved on it is not recorded");
  trace.format = "text";
  EXPECT_EQ(why_unknown_fidelity(trace),
            "a text history does not say what the recorded allocator reserved; a PyTorch memory snapshot does");
  trace = read_one("a 0 1048576 0\n");
  trace.recorded.emplace().peak_reserved_bytes = 2 * MiB;
  EXPECT_EQ(why_unknown_fidelity(trace), "it holds no history");
  trace.format = "snapshot";
  EXPECT_EQ(why_unknown_fidelity(trace), "the snapshot holds no history");
}

TEST(UnknownFidelity, SaysUnderWhatItWasRecordedOrWritten) {
  Trace trace = pytorch_recording();
  trace.header["allocator"] = "mortise";
  EXPECT_EQ(why_unknown_fidelity(trace),
            "it was recorded under Tenon's 'mortise', not under PyTorch's default settings");
  EXPECT_EQ(why_unknown_fidelity(trace, "max_split_size_mb:64"),
            "it was recorded under Tenon's 'mortise', not under 'max_split_size_mb:64'");
  trace = pytorch_recording();
  trace.replayed_under = "mortise";
  trace.recorded.reset();
  const std::string replayed =
      "this file was written by a replay of Tenon under 'mortise': its device calls are not those of a recording";
  EXPECT_EQ(why_unknown_fidelity(trace), replayed);
  trace = pytorch_recording();
  trace.recorded->has_device_calls = false;
  trace.format = "text";
  EXPECT_EQ(why_unknown_fidelity(trace),
            "the recorded device calls are not in this file (a text history); a PyTorch memory snapshot of the whole "
            "run has them");
  EXPECT_EQ(measure_fidelity(trace, policy_of_conf(""), "").replayed_peak_bytes, 500 * MiB) << "the peaks stay";
  trace.replayed_under = "mortise";
  EXPECT_EQ(why_unknown_fidelity(trace), replayed);
}

TEST(UnknownFidelity, SaysWhereTheReplayFails) {
  Trace trace = pytorch_recording();
  const StackConfig broken =
      policy_of("broken", [](const AllocatorContext&) -> std::unique_ptr<Allocator> { throw Error("it broke"); });
  const Fidelity found = measure_fidelity(trace, broken, "");
  EXPECT_FALSE(found.is_known);
  EXPECT_EQ(found.why_unknown, "the replay under the recorded settings failed: it broke");
}

TEST(FidelityOfARecording, StatesItsSettingsWhereTheFileOrTheUserDoes) {
  Trace trace = pytorch_recording();
  trace.recorded->has_settings = false;
  EXPECT_FALSE(measure_fidelity(trace, policy_of_conf(""), "").is_stated);
  EXPECT_TRUE(measure_fidelity(trace, policy_of_conf(""), "max_split_size_mb:64").is_stated);
  trace.recorded->has_settings = true;
  EXPECT_TRUE(measure_fidelity(trace, policy_of_conf(""), "").is_stated);
}

TEST(FidelityOfARecording, IsOfOneVersionWhereThePolicyHasNoChoiceAmongEqualBlocks) {
  Trace trace = pytorch_recording();
  trace.recorded->acquired = {{100 * MiB, 0x70000000}};
  trace.recorded->actions = {{HistoryAction::kSegmentAlloc, 1, 1}};
  for (const char* conf : {"", "expandable_segments:True"}) {
    const Fidelity found = measure_fidelity(trace, policy_of_conf(conf), conf);
    EXPECT_TRUE(found.is_known) << conf;
    EXPECT_FALSE(found.ties_by_address) << conf << ": neither comes closer";
  }
}

TEST(FidelityOfARecording, CountsTheCallsInOrderAndThoseInCommon) {
  Trace trace = pytorch_recording();
  const ReplayRow row =
      run_job(trace, policy_of_conf(""), {.timed_passes = 0, .time_each_call = false, .keep_actions = true});
  ASSERT_EQ(row.actions.size(), 4U) << "three segments of 100 MiB and one of 200 MiB";
  trace.recorded->actions = row.actions;
  Fidelity found = measure_fidelity(trace, policy_of_conf(""), "");
  EXPECT_TRUE(found.is_exact) << found.sentence();
  EXPECT_EQ(found.matching_actions, 4U);
  trace.recorded->reserved_bytes -= 1;
  EXPECT_FALSE(measure_fidelity(trace, policy_of_conf(""), "").is_exact) << "what is reserved at the end differs";
  trace.recorded->reserved_bytes += 1;
  trace.recorded->actions.push_back({HistoryAction::kOom, 5, 2});
  EXPECT_TRUE(measure_fidelity(trace, policy_of_conf(""), "").is_exact) << "failures are no calls";
  trace.recorded->actions = row.actions;
  std::swap(trace.recorded->actions[1], trace.recorded->actions[2]);
  found = measure_fidelity(trace, policy_of_conf(""), "");
  EXPECT_FALSE(found.is_exact);
  EXPECT_EQ(found.matching_actions, 1U) << "in order";
  EXPECT_EQ(found.common_actions, 4U);
  EXPECT_EQ(found.recorded_actions, 4U);
  EXPECT_EQ(found.replayed_actions, 4U);
  trace.recorded->actions = {{HistoryAction::kSegmentMap, 5, 1},   {HistoryAction::kSegmentMap, 6, 1},
                             {HistoryAction::kSegmentMap, 7, 2},   {HistoryAction::kSegmentUnmap, 8, 2},
                             {HistoryAction::kSegmentAlloc, 1, 2}, {HistoryAction::kSegmentAlloc, 1, 2}};
  found = measure_fidelity(trace, policy_of_conf(""), "");
  EXPECT_EQ(found.recorded_actions, 5U) << "pages of one event are one range";
  EXPECT_EQ(found.common_actions, 0U);
}

// ---- trust

std::string refused_because(const Trace& trace) {
  const Trust trust = judge(trace);
  EXPECT_EQ(trust.refusal.empty(), trust.why_refused.empty());
  if (trust.refusal.empty()) return "";
  EXPECT_THAT(trust.refusal, StartsWith(trace.name + ": no setting is recommended from this file: " +
                                        trust.why_refused + ".\nRecord the whole run from before the model is built"));
  return trust.why_refused;
}

TEST(Refusals, OfPoorHistoriesSayWhatIsMissing) {
  load_all_plugins();
  EXPECT_EQ(refused_because(read_one("# nothing\n")), "it holds no allocation");
  EXPECT_EQ(
      refused_because(read_one("a 0 1048576 0\na 1 1048576 0\n")),
      "it holds 2 allocations and no free: nothing is ever handed out a second time, and how that is done is what "
      "settings change");
  Trace state = read_one("a 0 1048576 0\na 1 1048576 0\nm recording starts\n");
  EXPECT_EQ(refused_because(state),
            "it shows what lived at one moment (2 blocks) and no history: nothing can be said of fragmentation");
  Trace failed = read_one("a 0 1048576 0\nm recording starts\nm tenon:failed 1 5 5\na 1 1048576 0\nf 1\n");
  EXPECT_EQ(refused_because(failed),
            "it shows what lived at one moment (2 blocks) and no history: nothing can be said of fragmentation")
      << "a request that failed is no history";
  Trace sums = read_one(test::pinned_segments());
  sums.facts.unplaced_bytes = 100 * MiB;
  EXPECT_EQ(refused_because(sums),
            "100.0 MiB of its peak of 300.0 MiB (33 %) lived before the recording, known only as a sum: how these "
            "blocks lie decides the outcome");
  Trace late = read_one("a 0 104857600 0\nm recording starts\na 1 10485760 0\nf 1\n");
  EXPECT_EQ(refused_because(late),
            "only 10.0 MiB were allocated while it was recorded, against 100.0 MiB that were there before: the ring "
            "buffer lost the beginning, or it was too short");
  EXPECT_EQ(
      refused_because(read_one("a 0 104857600 0\na 1 1048576 0\nf 1\n")),
      "of 101.0 MiB that were allocated 1.00 MiB are freed: next to nothing is ever handed out a second time, and "
      "how that is done is what settings change");
  EXPECT_EQ(refused_because(read_one(test::pinned_segments())), "");
}

TEST(Refusals, OfReplaysThatAreFarOffSayByHowMuchAndUnderWhat) {
  Trace trace = pytorch_recording();
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = 300 * MiB;
  EXPECT_EQ(refused_because(trace),
            "replayed under the settings that it was recorded with, it reserves 500.0 MiB instead of 300.0 MiB (+66.7 "
            "%): the history is not what happened on this device");
  trace.notes.emplace_back("the recording was cut: what follows byte 5 was not flushed");
  EXPECT_THAT(refused_because(trace),
              EndsWith("(+66.7 %): the recording was cut, and what was reserved after that is not in it"));
  trace.recorded->has_settings = false;
  EXPECT_THAT(refused_because(trace), StartsWith("replayed under PyTorch's defaults (it does not say its own), it"));
  trace.recorded->has_settings = true;
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = 480 * MiB;
  EXPECT_EQ(refused_because(trace), "");
  EXPECT_THAT(judge(trace).caveats,
              ElementsAre("replayed under the settings that it was recorded with, it reserves 500.0 MiB instead of "
                          "480.0 MiB (+4.2 %): no figure here is more exact than that"));
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = 500 * MiB;
  EXPECT_THAT(judge(trace).caveats, IsEmpty());
}

TEST(Refusals, OfPartsAndOfSettingsThatAreNotUnderstood) {
  Trace trace = pytorch_recording();
  trace.distrust = "it is a dream";
  EXPECT_EQ(refused_because(trace), "it is a part of a recording of which this has to be said: it is a dream");
  trace = pytorch_recording();
  trace.recorded->pytorch_conf = "bogus:1";
  const Trust odd = judge(trace);
  EXPECT_THAT(odd.fidelity.why_unknown, StartsWith("the recorded settings are not understood: "));
  EXPECT_FALSE(odd.fidelity.is_known);
  EXPECT_EQ(judge(trace, "max_split_size_mb:64").fidelity.settings, "max_split_size_mb:64") << "the user's instead";
}

TEST(ColdStarts, AreToldOrRefusedByWhatIsLacking) {
  Trace trace = pytorch_recording();
  trace.recorded->reserved_at_start_bytes = 40 * MiB;
  trace.recorded->has_device_calls = false;
  trace.recorded->peak_reserved_bytes = 540 * MiB;
  Trust trust = judge(trace);
  EXPECT_EQ(trust.reserved_at_start_bytes, 40 * MiB);
  EXPECT_EQ(trust.why_refused, "");
  EXPECT_THAT(
      trust.caveats,
      ElementsAre("every row starts with an empty device, the recording with 40.0 MiB reserved; its own settings "
                  "reserve 500.0 MiB from there, against 540.0 MiB recorded"));
  trace.recorded->peak_reserved_bytes = 625 * MiB;
  EXPECT_EQ(judge(trace).why_refused, "") << "a fifth is lacking";
  trace.recorded->peak_reserved_bytes = 630 * MiB;
  EXPECT_EQ(judge(trace).why_refused,
            "40.0 MiB were reserved already when the recording began. From an empty device, as every setting is tried, "
            "its own settings reserve 500.0 MiB instead of 630.0 MiB: 21 % of what was reserved comes from before the "
            "recording");
}

}  // namespace
}  // namespace tenon::replay
