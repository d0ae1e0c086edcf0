// The hint of an out of memory: what led there is replayed on as much of the device as this process could have had.
#include <tenon/cli/run/oom_advice.h>
#include <tenon/core/units.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/runtime/allocator_spec.h>

#include <gmock/gmock.h>

#include <string>

namespace tenon::cli {
namespace {

using testing::HasSubstr;

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

/// 40 MiB live, and 20 MiB that could not be served.
void tell_failure(replay::Recorder& recorder) {
  recorder.allocated(at(1), 40 * MiB, 0);
  recorder.failed(20 * MiB, 0);
}

OutOfMemoryInfo failure(std::size_t capacity, std::size_t reserved, std::size_t free, std::size_t limit) {
  return {.requested_bytes = 20 * MiB,
          .allocated_bytes = 40 * MiB,
          .reserved_bytes = reserved,
          .device_free_bytes = free,
          .capacity_bytes = capacity,
          .limit_bytes = limit,
          .hint = "as it was"};
}

std::optional<std::uint64_t> replayed_on(OutOfMemoryInfo info) {
  replay::Recorder recorder;
  tell_failure(recorder);
  const auto report = replay_failure(allocator_from_spec("caching"), recorder, info);
  return report ? std::optional(report->capacity_bytes) : std::nullopt;
}

TEST(OomAdvice, WhatOthersHoldOfTheDeviceIsNotToBeHad) {
  EXPECT_EQ(replayed_on(failure(100 * MiB, 42 * MiB, 8 * MiB, 0)), 50 * MiB);
  EXPECT_EQ(replayed_on(failure(100 * MiB, 42 * MiB, 58 * MiB, 0)), 100 * MiB);
}

TEST(OomAdvice, NorIsWhatALimitForbids) {
  EXPECT_EQ(replayed_on(failure(100 * MiB, 42 * MiB, 58 * MiB, 45 * MiB)), 45 * MiB);
  EXPECT_EQ(replayed_on(failure(100 * MiB, 42 * MiB, 8 * MiB, 80 * MiB)), 50 * MiB) << "the lower of the two";
  EXPECT_EQ(replayed_on(failure(0, 42 * MiB, 8 * MiB, 45 * MiB)), 45 * MiB) << "of a device of unknown size";
}

TEST(OomAdvice, WithoutACapacityOrAHistoryNothingIsReplayed) {
  EXPECT_EQ(replayed_on(failure(0, 42 * MiB, 8 * MiB, 0)), std::nullopt);
  replay::Recorder nothing;
  OutOfMemoryInfo info = failure(100 * MiB, 42 * MiB, 8 * MiB, 0);
  EXPECT_FALSE(replay_failure(allocator_from_spec("caching"), nothing, info).has_value());
  EXPECT_EQ(info.hint, "as it was");
}

TEST(OomAdvice, WhereTheReplayDoesNotRunOutTheHintOfTheMomentStands) {
  replay::Recorder recorder;
  tell_failure(recorder);
  OutOfMemoryInfo info = failure(1 * GiB, 42 * MiB, 900 * MiB, 0);
  const auto report = replay_failure(allocator_from_spec("caching"), recorder, info);
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->is_reproduced());
  EXPECT_EQ(info.hint, "as it was");
}

TEST(OomAdvice, WhereNothingWouldFitBothAreSaid) {
  replay::Recorder recorder;
  tell_failure(recorder);
  OutOfMemoryInfo info = failure(100 * MiB, 42 * MiB, 8 * MiB, 0);
  ASSERT_TRUE(replay_failure(allocator_from_spec("caching"), recorder, info).has_value());
  EXPECT_THAT(info.hint, HasSubstr("as it was; no allocator could have served it: 60.0 MiB were live or asked for"));
}

}  // namespace
}  // namespace tenon::cli
