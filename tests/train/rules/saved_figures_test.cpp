// The figures of a part of a run: what comes back of what was written, and the whole of two parts.
#include <tenon/core/error.h>
#include <tenon/train/peaks.h>
#include <tenon/train/resume/saved_figures.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {
namespace {

/// Every count that two parts add up, by name.
std::vector<std::pair<std::string, std::int64_t*>> counts_of(ExperimentResult& result) {
  return {{"steps", &result.steps},
          {"warmup_steps", &result.warmup_steps},
          {"device_calls_after_warmup", &result.device_calls_after_warmup},
          {"oom_recoveries", &result.oom_recoveries},
          {"allocations", &result.memory.allocations.allocated},
          {"device_allocations", &result.memory.device_allocations},
          {"device_frees", &result.memory.device_frees},
          {"device_maps", &result.memory.device_maps},
          {"device_unmaps", &result.memory.device_unmaps},
          {"device_synchronizations", &result.memory.device_synchronizations},
          {"device_waits", &result.memory.device_waits},
          {"device_growths", &result.memory.device_growths},
          {"device_shrinks", &result.memory.device_shrinks},
          {"ooms", &result.memory.ooms}};
}

/// A part whose every figure is a number of its own, from `first` on.
ExperimentResult part(std::int64_t first, std::size_t epochs = 2) {
  ExperimentResult result;
  std::int64_t next = first;
  for (const auto& [name, count] : counts_of(result)) *count = next++;
  const auto real = [&] { return static_cast<double>(next++) + 0.25; };
  result.seconds = real();
  for (int i = 0; i < 3; ++i) result.losses.push_back(real());
  for (int i = 0; i < 3; ++i) result.step_ms.push_back(real());
  for (std::size_t i = 0; i < epochs; ++i)
    result.epochs.push_back({static_cast<int>(next++), real(), real(), real(), real()});
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = next;
    next += 5;
    result.timeline.push_back({at, at + 1, at + 2, at + 3, at + 4});
  }
  std::vector<std::int64_t> peaks = peaks_of(result.memory);
  std::iota(peaks.begin(), peaks.end(), next);
  raise_peaks(result.memory, peaks);
  result.peak.phase = RunPhase::kBackward;
  result.peak.allocated_bytes = 1000 + first;
  std::iota(result.peak.requested_by_purpose.begin(), result.peak.requested_by_purpose.end(), 2000 + first);
  return result;
}

void expect_epochs(const std::vector<EpochResult>& found, const std::vector<EpochResult>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].epoch, wanted[i].epoch);
    EXPECT_EQ(found[i].train_loss, wanted[i].train_loss);
    EXPECT_EQ(found[i].test_loss, wanted[i].test_loss);
    EXPECT_EQ(found[i].test_accuracy, wanted[i].test_accuracy);
    EXPECT_EQ(found[i].seconds, wanted[i].seconds);
  }
}

void expect_timeline(const std::vector<MemorySample>& found, const std::vector<MemorySample>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].step, wanted[i].step);
    EXPECT_EQ(found[i].requested_bytes, wanted[i].requested_bytes);
    EXPECT_EQ(found[i].allocated_bytes, wanted[i].allocated_bytes);
    EXPECT_EQ(found[i].reserved_bytes, wanted[i].reserved_bytes);
    EXPECT_EQ(found[i].peak_allocated_bytes, wanted[i].peak_allocated_bytes);
  }
}

ExperimentResult read_back(const ExperimentResult& result) {
  OutputArchive written;
  write_figures(written, result);
  std::stringstream stream;
  written.save_to(stream);
  InputArchive read;
  read.load_from(stream);
  return read_figures(read);
}

TEST(SavedFigures, ComeBackAsTheyWere) {
  ExperimentResult before = part(10);
  ExperimentResult after = read_back(before);
  const auto wanted = counts_of(before), found = counts_of(after);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(*found[i].second, *wanted[i].second) << wanted[i].first;
  EXPECT_EQ(after.seconds, before.seconds);
  EXPECT_EQ(after.losses, before.losses);
  EXPECT_EQ(after.step_ms, before.step_ms);
  expect_epochs(after.epochs, before.epochs);
  expect_timeline(after.timeline, before.timeline);
  EXPECT_EQ(peaks_of(after.memory), peaks_of(before.memory));
  EXPECT_EQ(after.peak.phase, before.peak.phase);
  EXPECT_EQ(after.peak.allocated_bytes, before.peak.allocated_bytes);
  EXPECT_EQ(after.peak.requested_by_purpose, before.peak.requested_by_purpose);
}

TEST(SavedFigures, OfEveryPhaseAndOfNothingYetComeBackToo) {
  for (const RunPhase phase : {RunPhase::kSetup, RunPhase::kForward, RunPhase::kUpdate, RunPhase::kTesting}) {
    ExperimentResult before = part(10);
    before.peak.phase = phase;
    const ExperimentResult after = read_back(before);
    EXPECT_EQ(after.peak.phase, phase) << phase_name(phase);
    EXPECT_EQ(after.peak.allocated_bytes, before.peak.allocated_bytes) << phase_name(phase);
    EXPECT_EQ(after.peak.requested_by_purpose, before.peak.requested_by_purpose) << phase_name(phase);
  }
  const ExperimentResult none = read_back({});
  EXPECT_TRUE(none.losses.empty());
  EXPECT_TRUE(none.epochs.empty());
  EXPECT_TRUE(none.timeline.empty());
  EXPECT_EQ(none.steps, 0);
}

TEST(SavedFigures, OfAPhaseThatIsNotKnownHaveNoPlaceOfTheirPeak) {
  ExperimentResult before = part(10);
  before.peak.phase = static_cast<RunPhase>(kRunPhases.size());
  const ExperimentResult after = read_back(before);
  EXPECT_EQ(after.peak.phase, RunPhase::kSetup);
  EXPECT_EQ(after.peak.allocated_bytes, 0);
  EXPECT_EQ(peaks_of(after.memory), peaks_of(before.memory));
}

TEST(SavedFigures, ThatLackACountAreRefused) {
  OutputArchive written;
  written.write("steps", std::int64_t{3});
  std::stringstream stream;
  written.save_to(stream);
  InputArchive read;
  read.load_from(stream);
  EXPECT_THROW(read_figures(read), Error);
}

TEST(JoinedFigures, AreSumsSeriesAndTheHigherPeak) {
  ExperimentResult earlier = part(10), later = part(500);
  ExperimentResult whole = joined(earlier, later);
  const auto first = counts_of(earlier), second = counts_of(later), both = counts_of(whole);
  for (std::size_t i = 0; i < both.size(); ++i)
    EXPECT_EQ(*both[i].second, *first[i].second + *second[i].second) << both[i].first;
  EXPECT_EQ(whole.seconds, earlier.seconds + later.seconds);
  EXPECT_EQ(whole.earlier_seconds, earlier.seconds);
  const auto behind = [](auto a, const auto& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_EQ(whole.losses, behind(earlier.losses, later.losses));
  EXPECT_EQ(whole.step_ms, behind(earlier.step_ms, later.step_ms));
  expect_epochs(whole.epochs, behind(earlier.epochs, later.epochs));
  expect_timeline(whole.timeline, behind(earlier.timeline, later.timeline));
  EXPECT_EQ(whole.test_accuracy, later.epochs.back().test_accuracy);
  const std::vector<std::int64_t> a = peaks_of(earlier.memory), b = peaks_of(later.memory), c = peaks_of(whole.memory);
  for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], std::max(a[i], b[i])) << "peak " << i;
}

TEST(JoinedFigures, HaveThePlaceOfTheHigherPeakAndTheLastTest) {
  const ExperimentResult low = part(10), high = part(500);
  EXPECT_EQ(joined(low, high).peak.requested_by_purpose, high.peak.requested_by_purpose);
  EXPECT_EQ(joined(high, low).peak.requested_by_purpose, high.peak.requested_by_purpose);
  EXPECT_EQ(joined(high, low).peak.allocated_bytes, high.peak.allocated_bytes);
  ExperimentResult again = part(10);
  again.peak.phase = RunPhase::kTesting;
  EXPECT_EQ(joined(low, again).peak.phase, RunPhase::kTesting) << "of two that are as high the later one";
  const ExperimentResult untested = joined(low, part(500, 0));
  EXPECT_EQ(untested.test_accuracy, low.epochs.back().test_accuracy);
  EXPECT_EQ(joined({}, high).losses, high.losses);
  EXPECT_EQ(joined({}, high).seconds, high.seconds);
}

}  // namespace
}  // namespace tenon::train
