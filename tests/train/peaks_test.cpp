// The peaks of a whole run, while the allocator's own begin anew with each step.
#include <tenon/core/error.h>
#include <tenon/train/peaks.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

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
  PolicyStats& policy = run.policy;
  std::vector<Stat*> all{&run.requested_bytes, &run.allocated_bytes,         &run.reserved_bytes,
                         &run.allocations,     &policy.oversize_allocations, &policy.oversize_segments};
  for (Stat& stat : run.requested_by_purpose) all.push_back(&stat);
  for (auto& kinds : run.requested_by_element)
    for (Stat& stat : kinds) all.push_back(&stat);
  for (PoolStats* pools :
       {&policy.allocation, &policy.segment, &policy.active, &policy.inactive_split, &policy.allocated_bytes,
        &policy.reserved_bytes, &policy.active_bytes, &policy.inactive_split_bytes, &policy.requested_bytes}) {
    for (Stat& stat : *pools) all.push_back(&stat);
  }
  EXPECT_EQ(peaks_of(run).size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->peak = static_cast<std::int64_t>(i) + 1;
  merge_peaks(run, MemoryStats{});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]->peak, static_cast<std::int64_t>(i) + 1) << i;
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

// A purpose whose own peak is from before held at most what it had at one of the phase's ends.
TEST(PhaseWatch, OfAPurposeThatDidNotRiseThePeakHasWhatItHeldAtAnEndOfThePhase) {
  PhaseWatch watch;
  PeakPlace place;
  MemoryStats now;
  const auto purpose = [&](std::size_t i, std::int64_t current, std::int64_t peak) {
    now.requested_by_purpose[i].current = current, now.requested_by_purpose[i].peak = peak;
  };
  purpose(0, 3, 9), purpose(1, 5, 9), purpose(2, 2, 9);
  watch.begin(now);
  now.allocated_bytes.peak = 10;
  purpose(0, 4, 9), purpose(1, 1, 9), purpose(2, 2, 12);
  watch.end(RunPhase::kForward, now, place);
  EXPECT_EQ(place.requested_by_purpose[0], 4) << "at its end";
  EXPECT_EQ(place.requested_by_purpose[1], 5) << "at its beginning";
  EXPECT_EQ(place.requested_by_purpose[2], 12) << "it rose";
}

}  // namespace
}  // namespace tenon::train
