// The peaks of a whole run, while the allocator's own begin anew with each step.
#include <tenon/core/error.h>
#include <tenon/train/peaks.h>

#include <gtest/gtest.h>

namespace tenon::train {
namespace {

/// Figures whose every peak is a number of its own.
MemoryStats figures(std::int64_t from) {
  MemoryStats stats;
  std::vector<std::int64_t> peaks = peaks_of(stats);
  for (std::int64_t& peak : peaks) peak = from++;
  raise_peaks(stats, peaks);
  return stats;
}

TEST(Peaks, OfARunAreTheHighestOfItsSteps) {
  MemoryStats run = figures(100);
  const std::vector<std::int64_t> first = peaks_of(run);
  merge_peaks(run, figures(50));
  EXPECT_EQ(peaks_of(run), first);
  merge_peaks(run, figures(150));
  EXPECT_EQ(peaks_of(run), peaks_of(figures(150)));
}

TEST(Peaks, WhatIsNoPeakIsThatOfTheLastStep) {
  MemoryStats run = figures(100);
  run.allocated_bytes.current = 7, run.device_maps = 3;
  MemoryStats step = figures(1);
  step.allocated_bytes.current = 5, step.device_maps = 9;
  merge_peaks(run, step);
  EXPECT_EQ(run.allocated_bytes.current, 5);
  EXPECT_EQ(run.device_maps, 9);
}

TEST(Peaks, AreOfEveryFigureThatAPolicyReports) {
  MemoryStats run;
  run.policy.oversize_allocations.peak = 1, run.policy.oversize_segments.peak = 2;
  run.policy.segment[2].peak = 3, run.policy.requested_bytes[1].peak = 4;
  run.requested_by_purpose[3].peak = 5;
  merge_peaks(run, MemoryStats{});
  EXPECT_EQ(run.policy.oversize_allocations.peak, 1);
  EXPECT_EQ(run.policy.oversize_segments.peak, 2);
  EXPECT_EQ(run.policy.segment[2].peak, 3);
  EXPECT_EQ(run.policy.requested_bytes[1].peak, 4);
  EXPECT_EQ(run.requested_by_purpose[3].peak, 5);
}

TEST(Peaks, OfAnotherNumberAreRefused) {
  MemoryStats run = figures(1);
  std::vector<std::int64_t> peaks = peaks_of(run);
  peaks.pop_back();
  EXPECT_THROW(raise_peaks(run, peaks), Error);
}

TEST(PhaseWatch, APeakIsOfTheFirstPhaseThatReachedIt) {
  PhaseWatch watch;
  PeakPlace place;
  MemoryStats now;
  watch.begin(now);
  now.allocated_bytes.peak = 10;
  watch.end(RunPhase::kForward, now, place);
  EXPECT_EQ(place.phase, RunPhase::kForward);
  EXPECT_EQ(place.allocated_bytes, 10);
  watch.end(RunPhase::kBackward, now, place);
  EXPECT_EQ(place.phase, RunPhase::kForward) << "no higher, only as high";
  now.allocated_bytes.peak = 11;
  watch.end(RunPhase::kBackward, now, place);
  EXPECT_EQ(place.phase, RunPhase::kBackward);
}

}  // namespace
}  // namespace tenon::train
