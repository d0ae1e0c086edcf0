// Requests that ran out of memory in a recording: part of the history in every engine and every form.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/runtime/plugins/plugins.h>

namespace tenon::replay {
namespace {

/// 6 KiB live on a device of 8 KiB, then 4 KiB are asked for and 1 KiB after that.
std::string died() {
  const std::string path = scratch("died.pickle");
  SnapshotImage image;
  image.segments = {{{.address = 4096, .bytes = 6 * KiB}, {{4096, 6 * KiB, 6 * KiB, BlockState::kActive, 0}}},
                    {{.address = 65536, .bytes = 1 * KiB}, {{65536, 1 * KiB, 1 * KiB, BlockState::kActive, 0}}}};
  image.events = {{{.action = HistoryAction::kSegmentAlloc, .address = 4096, .bytes = 6 * KiB}, 1},
                  {{.action = HistoryAction::kAlloc, .address = 4096, .bytes = 6 * KiB}, 1},
                  {{.action = HistoryAction::kOom, .address = 2 * KiB, .bytes = 4 * KiB}, 2},
                  {{.action = HistoryAction::kSegmentAlloc, .address = 65536, .bytes = 1 * KiB}, 3},
                  {{.action = HistoryAction::kAlloc, .address = 65536, .bytes = 1 * KiB}, 3}};
  write_snapshot(image, path);
  return path;
}

ReplayRow replayed(const Trace& trace, std::optional<std::uint64_t> capacity_bytes) {
  return run_job(trace, plain_policy(), {.capacity_bytes = capacity_bytes, .timed_passes = 1, .time_each_call = true});
}

TEST(FailedRequest, OfASnapshotIsPartOfItsHistory) {
  const Trace trace = read_traces(died()).front();
  EXPECT_EQ(trace.facts.events, 4u);
  EXPECT_EQ(trace.facts.allocations, 3u);
  EXPECT_EQ(trace.facts.frees, 1u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 10 * KiB) << "so much was wanted at once";
  EXPECT_EQ(trace.facts.end_live_bytes, 7 * KiB);
  ASSERT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms[0].event, 1u);
  EXPECT_EQ(trace.ooms[0].bytes, 4 * KiB);
  EXPECT_EQ(trace.ooms[0].capacity_bytes(), 8 * KiB);
}

TEST(FailedRequest, ASnapshotOfAConversionKeepsWhatTheDeviceHadThen) {
  for (const bool is_known : {true, false}) {
    Trace trace = read_traces(died()).front();
    if (!is_known) trace.ooms[0].reserved_bytes = trace.ooms[0].device_free_bytes = 0;
    load_all_plugins();
    const std::string path = scratch("converted.pickle");
    // Which has reserved more by then than the recorded device had.
    write_snapshot(image_of_replay(trace, policy_of_conf("large_segment_size_mb:64"), std::nullopt, Failures::kKept),
                   path);
    const Trace back = read_traces(path).front();
    ASSERT_EQ(back.ooms.size(), 1u);
    EXPECT_EQ(back.ooms[0].reserved_bytes, trace.ooms[0].reserved_bytes);
    EXPECT_EQ(back.ooms[0].device_free_bytes, trace.ooms[0].device_free_bytes);
    std::filesystem::remove(path);
  }
}

TEST(FailedRequest, AConversionDoesNotAddAny) {
  load_all_plugins();
  const Trace trace = read_one("a 0 1048576 0\na 1 104857600 0\nf 1\nf 0\n");
  EXPECT_THROW(image_of_replay(trace, policy_of_conf(""), 40 * MiB, Failures::kKept), OutOfMemory);
  EXPECT_EQ(image_of_replay(trace, policy_of_conf(""), 40 * MiB).events.back().action, HistoryAction::kFreeCompleted);
}

TEST(FailedRequest, CountsWhereItDoesNotFitAndTheReplayGoesOn) {
  const ReplayRow row = replayed(read_traces(died()).front(), 8 * KiB);
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.ooms, 1u);
  EXPECT_EQ(row.first_oom_event, 1u);
  EXPECT_EQ(row.end_reserved_bytes, 7 * KiB);
}

TEST(FailedRequest, IsGivenBackAtOnceWhereItFits) {
  const ReplayRow row = replayed(read_traces(died()).front(), 16 * KiB);
  EXPECT_EQ(row.ooms, 0u);
  EXPECT_EQ(row.peak_reserved_bytes, 10 * KiB);
  EXPECT_EQ(row.end_reserved_bytes, 7 * KiB);
}

TEST(FailedRequest, TakesNothingFromTheFidelityOfAFile) {
  const Fidelity fidelity = measure_fidelity(read_traces(died()).front(), plain_policy(), "");
  EXPECT_TRUE(fidelity.is_exact) << fidelity.sentence();
}

TEST(FailedRequest, OfAnRmmLogIsPartOfItsHistory) {
  const Trace trace = read_one(
      "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00,allocate,0x100,512,0x0\n"
      "1,00:00:00,allocate failure,(nil),4096,0x7\n1,00:00:00,free,0x100,512,0x0\n");
  EXPECT_EQ(trace.facts.events, 4u);
  ASSERT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms[0].event, 1u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 4608u);
  EXPECT_EQ(replayed(trace, 4096).ooms, 1u);
}

void expect_the_failure(const std::string& path) {
  const Trace before = read_traces(died()).front();
  const Trace after = read_traces(path).front();
  EXPECT_TRUE(difference(before, after).are_equal) << path << ": " << difference(before, after).what;
  ASSERT_EQ(after.ooms.size(), 1u) << path;
  EXPECT_EQ(after.ooms[0].event, 1u);
  EXPECT_EQ(after.ooms[0].bytes, 4 * KiB);
  EXPECT_EQ(after.ooms[0].capacity_bytes(), 8 * KiB) << path;
  std::filesystem::remove(path);
}

TEST(FailedRequest, ComesBackFromEveryFormThatIsReadAgain) {
  const Trace trace = read_traces(died()).front();
  write_trace(trace, scratch("out.trace.gz"));
  expect_the_failure(scratch("out.trace.gz"));
  write_trace(trace, scratch("out.tenon"));
  expect_the_failure(scratch("out.tenon"));
  write_snapshot(image_of_replay(trace, keeping_policy(), {}, Failures::kKept), scratch("out.pickle"));
  expect_the_failure(scratch("out.pickle"));
  write_trace(trace, scratch("out.csv"));
  const Trace log = read_traces(scratch("out.csv")).front();
  EXPECT_TRUE(difference(trace, log).are_equal) << difference(trace, log).what;
  EXPECT_EQ(log.ooms.size(), 1u);
  std::filesystem::remove(scratch("out.csv"));
}

TEST(FailedRequest, IsServedInThePictureOfAReplayWhereItFits) {
  const Trace trace = read_traces(died()).front();
  write_snapshot(image_of_replay(trace, keeping_policy(), 64 * KiB), scratch("fits.pickle"));
  EXPECT_TRUE(read_traces(scratch("fits.pickle")).front().ooms.empty());
  std::filesystem::remove(scratch("fits.pickle"));
}

TEST(FailedRequest, IsABlockFreedAtOnceForOthersWhoReadTheText) {
  const Trace trace = read_one("a 0 100 0\nm tenon:failed 1 100 50\na 1 60 0\nf 1\n");
  ASSERT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms[0].bytes, 60u);
  EXPECT_TRUE(trace.marks.empty());
  const Trace others = read_one("a 0 100 0\nm failed\na 1 60 0\nf 1\n");
  EXPECT_TRUE(difference(trace, others).are_equal);
  EXPECT_EQ(trace.facts.peak_requested_bytes, others.facts.peak_requested_bytes);
  EXPECT_NE(refusal_of("m tenon:failed 1 x 50\n").find("file:1"), std::string::npos);
}

TEST(FailedRequest, IsNotCutInTwo) {
  const Trace trace = read_one("a 0 100 0\nm tenon:failed 1 100 50\na 1 60 0\nf 1\na 2 7 0\n");
  const Trace from = slice(trace, 2, 4);
  EXPECT_EQ(from.facts.seeded_bytes, 100u) << "what was never there is no block of before";
  EXPECT_EQ(from.ooms.size(), 1u);
  const Trace until = slice(trace, 0, 2);
  EXPECT_TRUE(until.ooms.empty());
  EXPECT_EQ(until.facts.end_live_bytes, 100u);
  EXPECT_EQ(outside_requests(trace, 2), 1u);
  for (const std::uint64_t event : {0, 1, 3, 4}) EXPECT_EQ(outside_requests(trace, event), event);
}

TEST(FailedRequest, OfARecordingThatWasKilledWasGivenBackAllTheSame) {
  BinaryTraceWriter out(scratch("killed.tenon"));
  out.next_fails(100, 50);
  out.allocate(60, 0);
  out.close();
  const Trace trace = read_traces(scratch("killed.tenon")).front();
  EXPECT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
  std::filesystem::remove(scratch("killed.tenon"));
}

TEST(FailedRequest, ThatLivesOnIsRefusedInTheBinaryForm) {
  const auto refusal = [](auto&& rest) {
    BinaryTraceWriter out(scratch("odd.tenon"));
    out.allocate(8, 0);
    out.next_fails(100, 50);
    rest(out);
    out.close();
    std::string reason;
    try {
      read_traces(scratch("odd.tenon"));
    } catch (const TraceError& error) {
      reason = error.what();
    }
    std::filesystem::remove(scratch("odd.tenon"));
    return reason;
  };
  const char* const lives_on = "is not given back at once";
  EXPECT_NE(refusal([](auto& out) { out.allocate(60, 0), out.allocate(7, 0); }).find(lives_on), std::string::npos);
  EXPECT_NE(refusal([](auto& out) { out.allocate(60, 0), out.free(0); }).find(lives_on), std::string::npos);
  EXPECT_NE(refusal([](auto& out) { out.allocate(60, 0), out.free(1, true); }).find(lives_on), std::string::npos);
  EXPECT_NE(refusal([](auto& out) { out.free(0); }).find("another event follows"), std::string::npos);
  EXPECT_NE(refusal([](auto&) {}).find("none follows"), std::string::npos);
}

TEST(FailedRequest, IsKeptInASlice) {
  const Trace trace = read_one("a 0 100 0\nm tenon:failed 1 100 50\na 1 60 0\nf 1\na 2 7 0\n");
  const Trace part = slice(trace, 1, 3);
  ASSERT_EQ(part.ooms.size(), 1u);
  EXPECT_EQ(part.ooms[0].event, 1u);
  EXPECT_TRUE(slice(trace, 3, 4).ooms.empty());
}

}  // namespace
}  // namespace tenon::replay
