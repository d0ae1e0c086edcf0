// What was recorded passes through every form: a converted or cut history is judged as the original is.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/results/trust.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace tenon::replay {
namespace {

using testing::HasSubstr;
using testing::Not;

class Carried : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { load_all_plugins(); }
  static std::string path(const std::string& ending) { return test::scratch_folder() + "carried" + ending; }
  /// Written in the form of that ending and read again.
  static Trace through(const Trace& trace, const std::string& ending) {
    const std::string file = path(ending);
    write_trace(trace, file, {.place = [](const Trace& it) {
                  return image_of_replay(it, policy_of_conf(""), std::nullopt, Failures::kKept);
                }});
    Trace back = read_traces(file).front();
    std::filesystem::remove(file);
    return back;
  }
  /// PyTorch's snapshot of the end of a run: the ring has lost the first events.
  static Trace late(std::string_view text, std::size_t lost_entries, const std::string& conf = "") {
    SnapshotImage image = image_of_replay(read_one(text), policy_of_conf(conf), std::nullopt);
    image.is_replay = false;
    image.empty_caches.reset();
    image.events.erase(image.events.begin(), image.events.begin() + static_cast<std::ptrdiff_t>(lost_entries));
    const std::string file = path("_late.pickle");
    write_snapshot(image, file);
    Trace trace = read_traces(file).front();
    std::filesystem::remove(file);
    return trace;
  }
};

// 400 MiB are taken and freed before the recording; in it 30 MiB at most are asked for.
constexpr char kWarm[] =
    "a 0 419430400 0\nf 0\na 1 1048576 0\n"
    "a 2 31457280 0\nf 2\na 3 20971520 0\nf 3\na 4 31457280 0\nf 4\na 5 31457280 0\nf 5\n";
constexpr std::size_t kLostOfWarm = 6;  // segment_alloc alloc free free segment_alloc alloc

std::string reason(const Trace& trace) {
  const std::string refusal = judge(trace).refusal;
  return refusal.substr(0, refusal.find('\n')).substr(refusal.empty() ? 0 : refusal.find(": "));
}

TEST_P(Carried, AColdStartIsRefusedInEveryForm) {
  const Trace trace = late(kWarm, kLostOfWarm);
  ASSERT_THAT(reason(trace), HasSubstr("were reserved already when the recording began"));
  const Trace back = through(trace, GetParam());
  EXPECT_EQ(reason(back), reason(trace));
  EXPECT_EQ(reason(through(back, ".trace")), reason(trace)) << "and from there";
  EXPECT_EQ(reason(through(back, ".pickle")), reason(trace));
}

TEST_F(Carried, ARecordingThatWasCutIsToldToBeOne) {
  constexpr char kText[] =
      "# recorded_conf: (defaults)\n# recorded_peak_reserved_bytes: 1073741824\n"
      "a 0 31457280 0\nf 0\na 1 31457280 0\nf 1\n";
  EXPECT_THAT(reason(read_one(kText)), HasSubstr("the history is not what happened"));
  const std::string cut = "# remark 1: the recording was cut: what follows byte 4113 was not flushed\n";
  EXPECT_THAT(reason(read_one(cut + kText)), HasSubstr("the recording was cut, and what was reserved after that"));
}

TEST_P(Carried, APartOfWhatIsRefusedIsRefused) {
  const Trace trace = late(kWarm, kLostOfWarm);
  const std::string why = judge(trace).why_refused;
  const Trace part = slice(through(trace, GetParam()), 3, trace.facts.events);
  EXPECT_THAT(reason(part), HasSubstr(why));
  EXPECT_THAT(reason(slice(through(part, GetParam()), 4, part.facts.events)), HasSubstr(why)) << "a part of a part";
  EXPECT_THAT(reason(slice(trace, 3, trace.facts.events)), HasSubstr(why));
}

TEST_F(Carried, APartOfWhatIsRefusedIsRefusedBehindAnyNumberOfComments) {
  const Trace trace = late(kWarm, kLostOfWarm);
  const std::string file = path("_part.trace");
  write_trace(slice(trace, 3, trace.facts.events), file);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string comments;
  for (int i = 0; i < 1001; ++i) comments += "# comment " + std::to_string(i) + ": of somebody\n";
  EXPECT_THAT(reason(read_one(comments + text.str())), HasSubstr(judge(trace).why_refused));
  std::filesystem::remove(file);
}

TEST_P(Carried, ALaterPartDidNotBeginWithAnEmptyDevice) {
  Trace whole = late(kWarm, 0);
  ASSERT_TRUE(whole.recorded && whole.recorded->is_whole);
  const Trace part = slice(through(whole, GetParam()), 4, whole.facts.events);
  EXPECT_FALSE(part.recorded && part.recorded->is_whole);
}

TEST_P(Carried, SettingsFiguresAndSeedsStay) {
  const std::string conf = "max_split_size_mb:128,roundup_power2_divisions:4";
  const Trace trace = late(kWarm, kLostOfWarm, conf);
  ASSERT_EQ(trace.facts.seeded_blocks, 1u);
  const Trace back = through(trace, GetParam());
  ASSERT_TRUE(back.recorded);
  EXPECT_TRUE(back.recorded->has_settings);
  EXPECT_EQ(back.recorded->pytorch_conf, trace.recorded->pytorch_conf);
  EXPECT_EQ(back.recorded->peak_reserved_bytes, trace.recorded->peak_reserved_bytes);
  EXPECT_EQ(back.recorded->reserved_bytes, trace.recorded->reserved_bytes);
  EXPECT_EQ(back.recorded->reserved_at_start_bytes, trace.recorded->reserved_at_start_bytes);
  EXPECT_EQ(back.facts.seeded_blocks, 1u);
  EXPECT_EQ(back.facts.seeded_bytes, trace.facts.seeded_bytes);
  EXPECT_EQ(back.marks, trace.marks);
  EXPECT_TRUE(difference(trace, back).are_equal) << difference(trace, back).what;
}

TEST_P(Carried, AStateIsStillAState) {
  const Trace trace = late("a 0 1048576 0\na 1 5242880 0\na 2 700 0\n", 5);
  ASSERT_THAT(reason(trace), HasSubstr("what lived at one moment (3 blocks)"));
  EXPECT_EQ(reason(through(trace, GetParam())), reason(trace));
}

TEST_P(Carried, BytesKnownOnlyAsASumAndAContradictionStay) {
  Trace sum = late(kWarm, kLostOfWarm);
  sum.facts.unplaced_bytes = sum.facts.seeded_bytes;
  EXPECT_EQ(through(sum, GetParam()).facts.unplaced_bytes, sum.facts.unplaced_bytes);
  Trace contradictory = late(kWarm, kLostOfWarm);
  contradictory.recorded->peak_reserved_bytes = 5 * MiB;
  EXPECT_THAT(reason(through(contradictory, GetParam())), HasSubstr("contradicts itself"));
}

TEST_P(Carried, TheSeededShareOfASliceStays) {
  const Trace part = slice(read_one(kWarm), 3, 8);
  ASSERT_EQ(part.facts.seeded_blocks, 1u);
  const Trace back = through(part, GetParam());
  EXPECT_EQ(back.facts.seeded_blocks, 1u);
  EXPECT_EQ(back.facts.seeded_bytes, 1048576u);
}

TEST_P(Carried, ATextThatSaysNothingOfARecordingDoesNotBecomeOne) {
  const Trace back = through(read_one(kWarm), GetParam());
  EXPECT_FALSE(back.recorded);
  EXPECT_FALSE(judge(back).fidelity.is_known);
}

TEST_P(Carried, MarksOfAnyNameChangeNothing) {
  const Trace trace = late(kWarm, kLostOfWarm);
  Trace marked = trace;
  marked.marks = {"recording starts", "tenon:deferred 1", "tenon:failed 2 3 4", "tenon:mark x"};
  for (std::uint64_t mark : {1, 2, 3, 0}) {
    for (std::size_t at : {2, 4}) {
      marked.events.insert(marked.events.begin() + static_cast<std::ptrdiff_t>(at),
                           {.bytes = mark, .kind = EventKind::kMark});
    }
  }
  const Trace back = through(marked, GetParam());
  EXPECT_TRUE(difference(trace, back).are_equal) << difference(trace, back).what;
  EXPECT_EQ(back.facts.seeded_blocks, 1u);
  EXPECT_TRUE(back.ooms.empty());
  EXPECT_EQ(std::set<std::string>(back.marks.begin(), back.marks.end()),
            std::set<std::string>(marked.marks.begin(), marked.marks.end()));
}

INSTANTIATE_TEST_SUITE_P(Forms, Carried, testing::Values(".trace", ".tenon", ".pickle"),
                         [](const auto& info) { return std::string(info.param).substr(1); });

TEST_F(Carried, TheBinaryFormKeepsTheDeviceCallsToo) {
  const Trace trace = late(kWarm, kLostOfWarm);
  ASSERT_TRUE(measure_fidelity(trace, policy_of_conf(""), "").is_exact);
  const Trace back = through(trace, ".tenon");
  EXPECT_EQ(back.recorded->actions, trace.recorded->actions);
  EXPECT_EQ(back.recorded->seed_addresses, trace.recorded->seed_addresses);
  EXPECT_EQ(back.recorded->initial_segments.size(), trace.recorded->initial_segments.size());
  EXPECT_TRUE(measure_fidelity(back, policy_of_conf(""), "").is_exact);
  EXPECT_TRUE(judge(through(back, ".tenon")).fidelity.is_exact);
}

TEST_F(Carried, TheOthersSayThatTheyDoNot) {
  const Trace trace = late(kWarm, kLostOfWarm);
  EXPECT_THAT(judge(through(trace, ".trace")).fidelity.sentence(),
              HasSubstr("fidelity unknown: the recorded device calls are not in this file"));
  EXPECT_THAT(judge(through(trace, ".pickle")).fidelity.sentence(),
              HasSubstr("fidelity unknown: this file was written by a replay of Tenon under 'caching'"));
}

TEST_F(Carried, AReplaySomebodyAskedForSaysWhatItRanUnder) {
  const std::string file = path("_asked.pickle");
  write_snapshot(image_of_replay(read_one(kWarm), policy_of_conf("max_split_size_mb:64"), 1 * GiB), file);
  const Trace back = read_traces(file).front();
  ASSERT_TRUE(back.recorded);
  EXPECT_EQ(back.recorded->pytorch_conf, "max_split_size_mb:64");
  EXPECT_FALSE(judge(back).fidelity.is_known);
  std::filesystem::remove(file);
}

TEST_F(Carried, APartFromTheBeginningKeepsWhatIsExactThere) {
  const Trace trace = late(kWarm, kLostOfWarm);
  const Trace part = slice(trace, 0, 6);
  EXPECT_EQ(part.facts.seeded_blocks, trace.facts.seeded_blocks);
  EXPECT_TRUE(judge(part).fidelity.is_exact) << judge(part).fidelity.sentence();
  const Trace later = slice(trace, 4, trace.facts.events);
  EXPECT_EQ(later.recorded->reserved_at_start_bytes, 402 * MiB);
  EXPECT_EQ(later.recorded->peak_reserved_bytes, 402 * MiB);
  EXPECT_THAT(reason(later), HasSubstr("402.0 MiB were reserved already"));
}

TEST(RecordedLines, OfAHandMadeFileReachATerminalAsText) {
  const Trace trace =
      read_one("# recorded_conf: a\x1b[2J\n# recorded_distrust: why\x1b[31m\n# remark 1: see\x07\na 0 512 0\n");
  ASSERT_TRUE(trace.recorded);
  EXPECT_EQ(trace.recorded->pytorch_conf, "a\\x1b[2J");
  EXPECT_EQ(trace.distrust, "why\\x1b[31m");
  EXPECT_EQ(trace.notes, std::vector<std::string>{"see\\x07"});
}

TEST(RecordedLines, OfAHandMadeFileAreCappedOrLeftAlone) {
  const Trace trace = read_one(
      "# recorded_peak_reserved_bytes: 18446744073709551615\n# recorded_start_reserved_bytes: 99999999999999999999999\n"
      "# unplaced_bytes: 5000\n# recorded_conf: " +
      std::string(100000, 'x') + "\n# remark 1: seen\n# remark 33: not one\na 0 512 0\nm recording starts\nf 0\n");
  ASSERT_TRUE(trace.recorded);
  EXPECT_EQ(trace.recorded->peak_reserved_bytes, std::uint64_t{1} << 60);
  EXPECT_EQ(trace.recorded->reserved_at_start_bytes, 0u);
  EXPECT_EQ(trace.facts.unplaced_bytes, 512u) << "not more than there was";
  EXPECT_EQ(trace.recorded->pytorch_conf.size(), 4096u);
  EXPECT_EQ(trace.notes, std::vector<std::string>{"seen"});
  EXPECT_TRUE(trace.header.contains("recorded_start_reserved_bytes"));
}

}  // namespace
}  // namespace tenon::replay
