// Where trust ends: each reason to refuse a history, just below its limit and just above it.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <string>

namespace tenon::replay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// That history as a snapshot of a device that began empty would have it.
Trace recorded(const std::string& text, std::uint64_t peak_reserved_bytes) {
  load_all_plugins();
  Trace trace = read_one(text);
  trace.name = "recorded";
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->is_whole = true;
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = peak_reserved_bytes;
  return trace;
}

std::string request(int block, std::size_t bytes) {
  return "a " + std::to_string(block) + " " + std::to_string(bytes) + " 0\n";
}

/// 24 MiB live at most; PyTorch's allocator reserves 42 MiB, since neither of two segments of 12 MiB holds 18 MiB.
std::string two_and_one() {
  return request(0, 12 * MiB) + request(1, 12 * MiB) + "f 0\nf 1\n" + request(2, 18 * MiB) + "f 2\n";
}

TEST(TrustLimits, WhatAFailedRequestAskedForMayBeAmongTheLiveBytes) {
  Trace trace = recorded(test::pinned_segments(), 100 * MiB);  // 300 MiB live at once
  ASSERT_THAT(judge(trace).refusal, HasSubstr("contradicts itself"));
  trace.ooms.push_back({{.bytes = 180 * MiB}, 12});
  EXPECT_THAT(judge(trace).refusal, HasSubstr("contradicts itself")) << "280 MiB are not 300";
  trace.ooms.push_back({{.bytes = 190 * MiB}, 13});
  trace.ooms.push_back({{.bytes = 1 * MiB}, 14});
  EXPECT_THAT(judge(trace).refusal, Not(HasSubstr("contradicts itself"))) << "290 MiB are, but for the rounding";
}

TEST(TrustLimits, OfLiveBytesOneTwentiethMoreThanWasReservedIsRounding) {
  EXPECT_THAT(judge(recorded(two_and_one(), 23 * MiB)).refusal, Not(HasSubstr("contradicts itself")));
  EXPECT_THAT(judge(recorded(two_and_one(), 22 * MiB)).refusal, HasSubstr("contradicts itself"));
  EXPECT_THAT(judge(recorded(two_and_one(), 0)).refusal, IsEmpty()) << "nothing is known of what was reserved";
}

TEST(TrustLimits, APeakOneAndAHalfTimesOffIsACaveatAndOneFartherOffARefusal) {
  ASSERT_EQ(judge(recorded(two_and_one(), 42 * MiB)).fidelity.replayed_peak_bytes, 42 * MiB);
  for (const std::uint64_t peak : {28 * MiB, 63 * MiB}) {  // 42 / 28 = 63 / 42 = 1.5
    const Trust trust = judge(recorded(two_and_one(), peak));
    EXPECT_EQ(trust.refusal, "") << peak;
    EXPECT_THAT(trust.caveats, SizeIs(1)) << peak;
  }
  EXPECT_THAT(judge(recorded(two_and_one(), 27 * MiB)).refusal, HasSubstr("the history is not what happened"));
  EXPECT_THAT(judge(recorded(two_and_one(), 64 * MiB)).refusal, HasSubstr("the history is not what happened"));
}

TEST(TrustLimits, OnADeviceThatRanOutOnlyAReplayThatTakesTooLittleIsRefused) {
  Trace trace = recorded(two_and_one(), 24 * MiB);
  EXPECT_THAT(judge(trace).refusal, HasSubstr("+75.0 %"));
  trace.ooms.push_back({{.bytes = 18 * MiB}, 4});
  EXPECT_EQ(judge(trace).refusal, "") << "it could take no more";
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = 80 * MiB;
  EXPECT_THAT(judge(trace).refusal, HasSubstr("-47.5 %"));
}

TEST(TrustLimits, ThreePercentOfThePeakNeedNoRemark) {
  EXPECT_THAT(judge(recorded(two_and_one(), 43 * MiB)).caveats, IsEmpty());
  EXPECT_THAT(judge(recorded(two_and_one(), 41 * MiB)).caveats, IsEmpty());
  EXPECT_THAT(judge(recorded(two_and_one(), 44 * MiB)).caveats, SizeIs(1));
  EXPECT_THAT(judge(recorded(two_and_one(), 40 * MiB)).caveats, SizeIs(1));
}

TEST(TrustLimits, AFifthOfThePeakMayBeOlderThanTheRecording) {
  // From an empty device 500 MiB of what was reserved come again; the rest is a cached segment of the beginning.
  const auto begun_with = [](std::uint64_t peak) {
    Trace trace = recorded(test::pinned_segments(), peak);
    trace.recorded->is_whole = false;
    trace.recorded->reserved_at_start_bytes = peak - 500 * MiB;
    trace.recorded->initial_segments = {{.address = 1 * GiB, .bytes = peak - 500 * MiB}};
    return judge(trace);
  };
  EXPECT_EQ(begun_with(620 * MiB).refusal, "");
  EXPECT_THAT(begun_with(620 * MiB).caveats, SizeIs(testing::Ge(1u)));
  EXPECT_THAT(begun_with(640 * MiB).refusal, HasSubstr("were reserved already when the recording began"));
}

TEST(TrustLimits, OfWhatIsKnownOnlyAsASumThreeTenthsOfThePeakAreTolerated) {
  Trace trace = read_one(two_and_one());
  trace.facts.unplaced_bytes = trace.facts.peak_requested_bytes * 3 / 10;
  EXPECT_THAT(judge(trace).refusal, IsEmpty());
  trace.facts.unplaced_bytes += trace.facts.peak_requested_bytes / 100;
  EXPECT_THAT(judge(trace).refusal, HasSubstr("(31 %)"));
}

TEST(TrustLimits, AFifthOfThePeakHasToBeAllocatedInTheRecording) {
  const auto with_seed = [](std::size_t later) {
    Trace trace = read_one(request(0, 100 * MiB) + request(1, later) + "f 1\nf 0\n");
    trace.facts.seeded_blocks = 1;
    trace.facts.seeded_bytes = 100 * MiB;
    return judge(trace).refusal;
  };
  EXPECT_EQ(with_seed(26 * MiB), "") << "26 of 126";
  EXPECT_THAT(with_seed(24 * MiB), HasSubstr("only 24.0 MiB were allocated while it was recorded"));
}

TEST(TrustLimits, ATwentiethOfWhatIsAllocatedHasToBeFreed) {
  const auto freeing = [](std::size_t bytes) {
    return judge(read_one(request(0, 100 * MiB - bytes) + request(1, bytes) + "f 1\n")).refusal;
  };
  EXPECT_EQ(freeing(5 * MiB), "");
  EXPECT_THAT(freeing(4 * MiB), HasSubstr("of 100.0 MiB that were allocated 4.00 MiB are freed"));
}

}  // namespace
}  // namespace tenon::replay
