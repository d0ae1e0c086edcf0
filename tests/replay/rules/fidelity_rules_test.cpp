// Which replay is held against a recording: of a device without limit, of one as full as the recorded one, with the
// segments of its beginning put back; and which of them is taken where neither is exact.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {
namespace {

constexpr std::uint64_t kLimit = 30 * MiB;

std::string mebibytes(int block, int count, int stream = 0) {
  return fmt::format("a {} {} {}\n", block, static_cast<std::uint64_t>(count) * MiB, stream);
}

/// Two segments of 12 MiB, then 18 MiB: 42 MiB where nothing is given back, 18 MiB after that where there is a limit.
Trace pressed_recording() {
  load_all_plugins();
  Trace trace = read_one(mebibytes(0, 12) + mebibytes(1, 12) + "f 0\nf 1\n" + mebibytes(2, 18) + "f 2\n");
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->has_settings = trace.recorded->is_whole = true;
  trace.recorded->peak_reserved_bytes = kLimit;
  trace.recorded->pressed = 1;
  return trace;
}

ReplayRow calls_of(const Trace& trace, std::optional<std::uint64_t> capacity = {}) {
  JobOptions options{.timed_passes = 0, .time_each_call = false, .keep_actions = true};
  options.capacity_bytes = capacity;
  const ReplayRow row = run_job(trace, policy_of_conf(""), options);
  EXPECT_EQ(row.failure, "");
  return row;
}

Fidelity found(const Trace& trace) { return measure_fidelity(trace, policy_of_conf(""), ""); }

void record(Trace& trace, const ReplayRow& row, std::uint64_t off_by = 0) {
  trace.recorded->actions = row.actions;
  trace.recorded->reserved_bytes = row.end_reserved_bytes + off_by;
}

TEST(FidelityChoices, AreTheDeviceWithoutLimitUnlessOneAsFullAsTheRecordedComesAsClose) {
  Trace trace = pressed_recording();
  const ReplayRow limited = calls_of(trace, kLimit), free = calls_of(trace);
  ASSERT_EQ(limited.actions.size(), 5u) << "12, 12, both back, 18";
  ASSERT_EQ(free.actions.size(), 3u);
  record(trace, limited);
  EXPECT_TRUE(found(trace).is_exact);
  EXPECT_EQ(found(trace).capacity_bytes, kLimit);
  record(trace, free);
  EXPECT_TRUE(found(trace).is_exact);
  EXPECT_FALSE(found(trace).capacity_bytes);
  // Neither is exact now, since their end is another.
  record(trace, limited, 1);
  EXPECT_FALSE(found(trace).is_exact);
  EXPECT_EQ(found(trace).matching_actions, 5u);
  EXPECT_EQ(found(trace).capacity_bytes, kLimit);
  record(trace, free, 1);
  EXPECT_FALSE(found(trace).is_exact);
  EXPECT_EQ(found(trace).matching_actions, 3u);
  EXPECT_FALSE(found(trace).capacity_bytes);
  trace.recorded->actions = {{HistoryAction::kSegmentAlloc, 1, 1}};
  EXPECT_EQ(found(trace).matching_actions, 0u);
  EXPECT_EQ(found(trace).capacity_bytes, kLimit) << "both are as far off";
  trace.recorded->pressed = 0;
  EXPECT_FALSE(found(trace).capacity_bytes) << "nothing says that memory was short";
  record(trace, limited);
  EXPECT_FALSE(found(trace).is_exact);
}

TEST(FidelityChoices, WhatFailedIsAskedForOnTheDeviceThatWasAsFullAndNotOnOneWithoutLimit) {
  load_all_plugins();
  // 20 MiB live, and a request of 40 MiB that fails between two that do not.
  Trace trace = read_one(mebibytes(0, 20) + "m tenon:failed 1 20971520 0\n" + mebibytes(1, 40) + "f 1\n" +
                         mebibytes(2, 24) + "f 2\nf 0\n");
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->has_settings = trace.recorded->is_whole = true;
  trace.recorded->peak_reserved_bytes = 50 * MiB;
  const ReplayRow limited = calls_of(trace, 50 * MiB);
  ASSERT_EQ(limited.ooms, 1u);
  record(trace, limited);
  EXPECT_TRUE(found(trace).is_exact);
  EXPECT_EQ(found(trace).capacity_bytes, 50 * MiB);
  // As large as the recording's peak the device is too small for the rest: the one without limit leaves the failure
  // out.
  trace.recorded->peak_reserved_bytes = 43 * MiB;
  const Fidelity free = found(trace);
  EXPECT_TRUE(free.is_exact);
  EXPECT_FALSE(free.capacity_bytes);
  EXPECT_EQ(free.replayed_peak_bytes, 44 * MiB) << "without the 40 MiB";
  EXPECT_EQ(free.replayed_actions, 2u);
}

TEST(WarmBeginnings, PutSegmentsBackWithTheirBlocksAndTheRestCached) {
  load_all_plugins();
  // 12 MiB of a segment of 20 MiB live when the recording begins; then 8 MiB fit beside them, and 9 do not.
  for (const int more : {7, 8, 9}) {
    SCOPED_TRACE(more);
    Trace trace = read_one(mebibytes(0, 12) + "m recording starts\n" + mebibytes(1, more) + "f 1\nf 0\n");
    ASSERT_EQ(trace.facts.seeded_blocks, 1u);
    trace.format = "snapshot";
    RecordedAllocator& recorded = trace.recorded.emplace();
    recorded.has_settings = true;
    recorded.initial_segments = {{.address = 1 << 20, .bytes = 20 * MiB, .is_large = true}};
    recorded.seed_addresses = {1 << 20};
    recorded.reserved_at_start_bytes = 20 * MiB;
    recorded.peak_reserved_bytes = recorded.reserved_bytes = (more <= 8 ? 20 : 40) * MiB;
    if (more > 8) recorded.actions = {{HistoryAction::kSegmentAlloc, 20 * MiB, 1}};
    const Fidelity warm = found(trace);
    EXPECT_TRUE(warm.is_known);
    EXPECT_EQ(warm.replayed_actions, more <= 8 ? 0u : 1u) << warm.sentence();
    EXPECT_EQ(warm.is_exact, true) << warm.sentence();
    // Where the block lay nobody says: it takes a segment of its own, which is not counted, and the rest another.
    recorded.seed_addresses.clear();
    EXPECT_EQ(found(trace).replayed_actions, 1u);
    recorded.is_whole = true;
    EXPECT_EQ(found(trace).replayed_actions, 2u);
  }
}

TEST(WarmBeginnings, CutSmallSegmentsIntoPiecesOfAMebibyteAtMost) {
  load_all_plugins();
  // A small segment with a block in its middle: what is before and behind it serves small requests.
  for (const std::uint64_t at : {std::uint64_t{0}, 512 * KiB, 1 * MiB, 2 * MiB - 4 * KiB}) {
    SCOPED_TRACE(at);
    const std::uint64_t behind = 2 * MiB - at - 4 * KiB,
                        largest = std::min<std::uint64_t>(std::max(at, behind), 1 * MiB);
    Trace trace = read_one(fmt::format("a 0 4096 0\nm recording starts\na 1 {} 0\nf 1\nf 0\n", largest));
    trace.format = "snapshot";
    RecordedAllocator& recorded = trace.recorded.emplace();
    recorded.has_settings = true;
    recorded.initial_segments = {{.address = 1 << 20, .bytes = 2 * MiB, .is_large = false}};
    recorded.seed_addresses = {(1 << 20) + at};
    recorded.reserved_at_start_bytes = recorded.peak_reserved_bytes = recorded.reserved_bytes = 2 * MiB;
    const Fidelity warm = found(trace);
    EXPECT_TRUE(warm.is_exact) << warm.sentence();
    EXPECT_EQ(warm.replayed_actions, 0u) << warm.sentence();
  }
}

}  // namespace
}  // namespace tenon::replay
