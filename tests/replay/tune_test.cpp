// tune(): what it recommends, what it merges it with, and when it had better say nothing.
// Long: the histories are made once for all cases.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

namespace tenon::replay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The space of settings grows with the largest request, so it is a small one: 42 MiB live, 70 MiB reserved.
Trace pinned() { return read_one(test::pinned_segments(test::kSmallPinned)); }

/// A search that takes as long as it takes: no clock is looked at.
TuneOptions unhurried(std::optional<std::uint64_t> capacity = {}) {
  TuneOptions options;
  options.capacity_bytes = capacity;
  options.elapsed_seconds = [] { return 0.0; };
  options.jobs = 2;
  return options;
}
/// A search whose clock advances by a second each time it looks, so that it ends at the same place everywhere.
TuneOptions hurried(std::optional<std::uint64_t> capacity, int looks) {
  TuneOptions options = unhurried(capacity);
  options.budget_seconds = looks;
  options.elapsed_seconds = [seconds = 0.0]() mutable { return ++seconds; };
  return options;
}

const Candidate* recommended(const TuneResult& result) {
  const auto found = std::ranges::find_if(result.finalists, &Candidate::is_recommended);
  return found == result.finalists.end() ? nullptr : &*found;
}
const Candidate* baseline(const TuneResult& result) {
  const auto found = std::ranges::find_if(result.finalists, &Candidate::is_baseline);
  return found == result.finalists.end() ? nullptr : &*found;
}

TEST(Tune, RecommendsWhatMendsFragmentation) {
  const TuneResult result = tune({pinned()}, unhurried(63 * MiB));
  const Candidate* best = recommended(result);
  const Candidate* base = baseline(result);
  ASSERT_NE(best, nullptr);
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->label, "") << "PyTorch's defaults are what it is held against";
  EXPECT_GT(base->ooms_at_capacity, 0u);
  EXPECT_EQ(best->ooms_at_capacity, 0u);
  EXPECT_LT(best->peak_reserved_bytes, base->peak_reserved_bytes);
  EXPECT_FALSE(result.recommended_conf.empty());
  EXPECT_EQ(result.peak_requested_bytes, 42 * MiB);
  EXPECT_THAT(result.recommended_toml, HasSubstr("[allocator]\nname = \""));
}

TEST(Tune, ASearchThatIsEndedBeforeItBeginsHasPyTorchsDefaults) {
  TuneOptions options = unhurried(63 * MiB);
  options.elapsed_seconds = [] { return std::numeric_limits<double>::infinity(); };
  const TuneResult result = tune({pinned()}, options);
  ASSERT_NE(baseline(result), nullptr);
  EXPECT_GT(baseline(result)->peak_reserved_bytes, 0u);
}

TEST(Tune, EveryCapacityFromTheSafeOneOnRuns) {
  const TuneResult result = tune({pinned()}, unhurried());
  for (const Candidate& candidate : result.finalists) {
    ASSERT_TRUE(candidate.safe_from_bytes) << candidate.label;
    EXPECT_GE(*candidate.safe_from_bytes, result.peak_requested_bytes);
    EXPECT_FALSE(candidate.sensitivity.empty());
    std::uint64_t last = 0;
    for (const CapacityPoint& point : candidate.sensitivity) {
      EXPECT_GT(point.capacity_bytes, last);
      last = point.capacity_bytes;
      if (point.capacity_bytes >= *candidate.safe_from_bytes) {
        EXPECT_EQ(point.ooms, 0u) << candidate.label;
      }
    }
    const ReplayRow row =
        run_job(pinned(), candidate.policy,
                {.capacity_bytes = *candidate.safe_from_bytes, .timed_passes = 0, .time_each_call = false});
    EXPECT_EQ(row.ooms, 0u) << candidate.label;
  }
}

TEST(Tune, TheSafeCapacityIsTheSmallestWhateverTheCapacityThatWasAskedFor) {
  const TuneResult free = tune({pinned()}, unhurried());
  for (const std::uint64_t capacity : {56 * MiB, 63 * MiB, 84 * MiB}) {
    const TuneResult limited = tune({pinned()}, unhurried(capacity));
    for (const Candidate& candidate : limited.finalists) {
      if (candidate.is_sampled) continue;
      EXPECT_TRUE(candidate.is_smallest) << candidate.label;
      EXPECT_LE(*candidate.safe_from_bytes, candidate.peak_reserved_bytes) << candidate.label;
      const auto same = std::ranges::find(free.finalists, candidate.label, &Candidate::label);
      if (same != free.finalists.end()) {
        EXPECT_EQ(candidate.safe_from_bytes, same->safe_from_bytes) << candidate.label;
      }
      if (*candidate.safe_from_bytes == limited.peak_requested_bytes) continue;
      const ReplayRow row =
          run_job(pinned(), candidate.policy,
                  {.capacity_bytes = *candidate.safe_from_bytes - 1, .timed_passes = 0, .time_each_call = false});
      EXPECT_GT(row.ooms, 0u) << candidate.label << " would run on less";
    }
  }
}

/// Segments of about 20 MiB that come and go in an order in which most settings fail on a device that some still run
/// on.
Trace tight() {
  std::string text;
  int id = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 3; ++i)
      text += "a " + std::to_string(id + i) + " " + std::to_string((18 + round) * MiB) + " 0\n";
    for (int i = 0; i < 3; ++i) text += "f " + std::to_string(id + i) + "\n";
    id += 3;
    for (int i = 0; i < 3; ++i)
      text += "a " + std::to_string(id + i) + " " + std::to_string((14 + round / 3) * MiB) + " 0\n";
    text += "a " + std::to_string(id + 3) + " " + std::to_string(3 * MiB) + " 0\n";
    for (int i = 0; i < 4; ++i) text += "f " + std::to_string(id + i) + "\n";
    id += 4;
  }
  return read_one(text);
}

TEST(Tune, ALongerSearchFindsASafeSettingWhereverAShorterOneDoes) {
  const Trace trace = tight();
  const std::uint64_t need = trace.facts.peak_requested_bytes;
  for (const std::uint64_t capacity : {need + 1 * MiB, need + 4 * MiB, need + 12 * MiB}) {
    bool was_found = false;
    double peak = 1e300;
    for (const int looks : {2, 20, 1'000'000}) {
      const TuneResult result = tune({trace}, hurried(capacity, looks));
      const Candidate* const best = recommended(result);
      EXPECT_TRUE(best != nullptr || !was_found) << capacity << " in " << looks << " looks";
      if (best == nullptr) continue;
      was_found = true;
      EXPECT_LE(*best->safe_from_bytes, capacity);
      EXPECT_EQ(best->ooms_at_capacity, 0u);
      EXPECT_LE(best->relative_peak, peak * 1.011) << capacity << " in " << looks << " looks";
      peak = std::min(peak, best->relative_peak);
    }
  }
}

TEST(Tune, WhereAnySettingOfTheGridIsSafeOneIsRecommended) {
  const std::vector<Trace> traces = {tight()};
  std::uint64_t least = ~std::uint64_t{0};
  for (const Candidate& candidate : exhaustive_grid(traces, 2)) {
    const std::vector<ReplayRow> unlimited = {
        run_job(traces.front(), candidate.policy, {.timed_passes = 0, .time_each_call = false})};
    CapacityWalk walk(traces, unlimited);
    while (!walk.is_smallest()) {
      std::vector<ReplayRow> rows;
      for (const Job& job : walk.next(candidate.policy)) rows.push_back(run_job(*job.trace, *job.policy, job.options));
      walk.take(rows);
    }
    least = std::min(least, walk.safe_from_bytes());
  }
  EXPECT_NE(recommended(tune(traces, unhurried(least))), nullptr);
  EXPECT_EQ(recommended(tune(traces, unhurried(least - 1))), nullptr);
}

TEST(Tune, ACapacityIsSampledWhereTheSettingLooksAtIt) {
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = "per_process_memory_fraction:0.9";
  const TuneResult result = tune({trace}, unhurried(98 * MiB));
  const Candidate* const base = baseline(result);
  ASSERT_NE(base, nullptr);
  EXPECT_TRUE(base->is_sampled);
  ASSERT_TRUE(base->safe_from_bytes);
  const auto ooms = [&](std::uint64_t capacity) {
    return run_job(trace, base->policy, {.capacity_bytes = capacity, .timed_passes = 0, .time_each_call = false}).ooms;
  };
  EXPECT_EQ(ooms(*base->safe_from_bytes), 0u);
  EXPECT_GT(ooms(*base->safe_from_bytes - 512), 0u) << "to the granule of the device";
}

TEST(Tune, TheBestIsTheBestOfTheWholeGrid) {
  const TuneResult result = tune({pinned()}, unhurried());
  double least = 1e300;
  for (const Candidate& candidate : exhaustive_grid({pinned()}, 2)) least = std::min(least, candidate.relative_peak);
  ASSERT_NE(recommended(result), nullptr);
  EXPECT_LE(recommended(result)->relative_peak, 1.01 * least);
}

TEST(Tune, IsMergedWithWhatTheRecordingHadSet) {
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = "pinned_use_background_threads:True,garbage_collection_threshold:0.9";
  const TuneResult result = tune({trace}, unhurried(63 * MiB));
  EXPECT_EQ(result.recorded_conf, trace.recorded->pytorch_conf);
  ASSERT_NE(baseline(result), nullptr);
  EXPECT_EQ(baseline(result)->label, trace.recorded->pytorch_conf) << "held against what was set, not the defaults";
  ASSERT_NE(recommended(result), nullptr);
  EXPECT_THAT(result.recommended_conf, HasSubstr("pinned_use_background_threads:True"));
  EXPECT_NO_THROW(policy_of_conf(result.recommended_conf));
}

TEST(Tune, EveryRowIsTriedWithWhatIsKept) {
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5";
  const TuneResult result = tune({trace}, unhurried(112 * MiB));  // half of which serves expandable segments alone
  for (const Candidate& candidate : result.finalists) {
    if (!candidate.is_pytorch) continue;
    EXPECT_THAT(candidate.label, HasSubstr("per_process_memory_fraction:0.5"));
    JobOptions options{.capacity_bytes = 112 * MiB, .timed_passes = 0};
    EXPECT_EQ(candidate.ooms_at_capacity, run_job(trace, policy_of_conf(candidate.label), options).ooms)
        << candidate.label;
  }
  ASSERT_NE(recommended(result), nullptr);
  EXPECT_EQ(result.recommended_conf, recommended(result)->label) << "the line that was replayed";
  EXPECT_THAT(result.recommended_toml, HasSubstr("per_process_memory_fraction"));
}

TEST(Tune, NoRowSetsAKeyTwice) {
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = "garbage_collection_threshold:0.6";
  for (const Candidate& candidate : tune({trace}, unhurried(73 * MiB)).finalists) {
    const std::size_t at = candidate.label.find("garbage_collection_threshold");
    EXPECT_TRUE(at == std::string::npos ||
                candidate.label.find("garbage_collection_threshold", at + 1) == std::string::npos)
        << candidate.label;
  }
}

TEST(Tune, FilesThatWereRecordedUnderDifferentSettingsHaveTheDefaultsAsBaseline) {
  Trace one = pinned(), other = pinned();
  one.recorded.emplace().has_settings = true;
  one.recorded->pytorch_conf = "max_split_size_mb:64";
  other.recorded.emplace().has_settings = true;
  const TuneResult result = tune({one, other}, unhurried());
  EXPECT_THAT(result.recorded_confs, ElementsAre("max_split_size_mb:64", ""));
  EXPECT_EQ(result.recorded_conf, "");
  ASSERT_NE(baseline(result), nullptr);
  EXPECT_EQ(baseline(result)->label, "");
  EXPECT_FALSE(result.is_baseline_recorded);
}

TEST(Tune, ASettingThatIsBestAlreadyStays) {
  const TuneResult first = tune({pinned()}, unhurried(63 * MiB));
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = first.recommended_conf;
  const TuneResult again = tune({trace}, unhurried(63 * MiB));
  ASSERT_NE(recommended(again), nullptr);
  EXPECT_LE(recommended(again)->relative_peak, 1.01 * recommended(first)->relative_peak);
  for (const char* key : {"expandable_segments", "max_split_size_mb", "roundup_power2_divisions"}) {
    const std::size_t at = again.recommended_conf.find(key);
    EXPECT_TRUE(at == std::string::npos || again.recommended_conf.find(key, at + 1) == std::string::npos)
        << "set twice: " << again.recommended_conf;
  }
}

TEST(Tune, RecommendsNothingForADeviceThatIsTooSmall) {
  const TuneResult result = tune({pinned()}, unhurried(28 * MiB));
  EXPECT_EQ(recommended(result), nullptr);
  EXPECT_EQ(result.recommended_conf, "");
}

TEST(Tune, SeveralHistoriesMustAllRun) {
  const Trace small = read_one("a 0 1048576 0\nf 0\n");
  const TuneResult result = tune({pinned(), small}, unhurried(63 * MiB));
  ASSERT_NE(recommended(result), nullptr);
  EXPECT_EQ(result.trust.size(), 2u);
  EXPECT_EQ(result.peak_requested_bytes, 42 * MiB);
}

TEST(Tune, TheCapacitiesOfSeveralHistoriesAreOnesThatAllOfThemWereTriedAt) {
  const Trace small = read_one("a 0 14680064 0\nf 0\n");
  const TuneResult result = tune({small, pinned()}, hurried({}, 30));
  for (const Candidate& candidate : result.finalists) {
    ASSERT_TRUE(candidate.safe_from_bytes) << candidate.label;
    for (const CapacityPoint& point : candidate.sensitivity) {
      if (point.capacity_bytes < 42 * MiB) {
        EXPECT_GT(point.ooms, 0u) << candidate.label << ": " << point.capacity_bytes << " is less than lives at once";
      }
    }
    for (const Trace& trace : {small, pinned()}) {
      const ReplayRow row =
          run_job(trace, candidate.policy,
                  {.capacity_bytes = *candidate.safe_from_bytes, .timed_passes = 0, .time_each_call = false});
      EXPECT_EQ(row.ooms, 0u) << candidate.label;
    }
  }
}

TEST(Tune, ACapacityHasAShortTextThatCanBeTypedBack) {
  for (const std::uint64_t bytes :
       {1ul, 12ul, 131071ul, 131072ul, 131073ul, 134217728ul, 5615867904ul, 93415538688ul}) {
    const std::uint64_t capacity = typable_capacity(bytes);
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(static_cast<double>(capacity), 1.01 * static_cast<double>(bytes));
    EXPECT_LE(format_size_exact(capacity).size(), 10U) << bytes;
    EXPECT_EQ(parse_size(format_size_exact(capacity)), capacity);
  }
}

TEST(Tune, ASettingThatLeavesAShareOfTheDeviceAloneIsFollowedUntilItRuns) {
  Trace trace = pinned();
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->pytorch_conf = "per_process_memory_fraction:0.5";
  const TuneResult result = tune({trace}, hurried(280 * MiB, 30));
  const Candidate* base = baseline(result);
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->ooms_at_capacity, 0u);
  ASSERT_TRUE(base->safe_from_bytes);
  EXPECT_GT(*base->safe_from_bytes, 126 * MiB);
  EXPECT_LE(*base->safe_from_bytes, 280 * MiB);
}

TEST(Tune, ABudgetThatIsSpentAtOnceStillGivesTheBaseline) {
  const TuneResult result = tune({pinned()}, hurried({}, 0));
  EXPECT_NE(baseline(result), nullptr);
}

TEST(Tune, TenonsAllocatorsAreComparedBesidePytorchs) {
  TuneOptions options = unhurried();
  options.allocators = {{"plain", plain_policy()}};
  const TuneResult result = tune({pinned()}, options);
  const auto plain = std::ranges::find(result.finalists, "plain", &Candidate::label);
  ASSERT_NE(plain, result.finalists.end());
  EXPECT_FALSE(plain->is_pytorch);
  EXPECT_FALSE(plain->is_recommended) << "the line to paste is PyTorch's";
}

TEST(Tune, NotesWhatOneOfTenonsSavesBesideTheLeastOfPytorchs) {
  TuneOptions options = unhurried();
  options.allocators = {{"plain", plain_policy()}};
  const TuneResult result = tune({pinned()}, options);
  const Candidate* least = nullptr;
  for (const Candidate& candidate : result.finalists) {
    EXPECT_TRUE(!candidate.is_pytorch || !candidate.saving);
    if (candidate.is_pytorch && (least == nullptr || candidate.relative_peak < least->relative_peak))
      least = &candidate;
  }
  const auto plain = std::ranges::find(result.finalists, "plain", &Candidate::label);
  ASSERT_TRUE(plain != result.finalists.end() && plain->saving && least != nullptr);
  EXPECT_EQ(plain->saving->than, least->label);
  EXPECT_EQ(plain->saving->bytes, static_cast<std::int64_t>(least->peak_reserved_bytes - plain->peak_reserved_bytes));
  EXPECT_EQ(plain->saving->safe_bytes, static_cast<std::int64_t>(*least->safe_from_bytes - *plain->safe_from_bytes));
}

TEST(Tune, WhatIsServedFromAPlanIsNotWhatTenonIsSetTo) {
  TuneOptions options = unhurried();
  options.allocators = {{"plain", plain_policy(), true}};
  const TuneResult result = tune({pinned()}, options);
  const auto plain = std::ranges::find(result.finalists, "plain", &Candidate::label);
  ASSERT_NE(plain, result.finalists.end());
  EXPECT_TRUE(plain->saving);
  EXPECT_FALSE(plain->is_for_tenon);
  EXPECT_THAT(result.recommended_toml, Not(HasSubstr("plain")));
}

TEST(Tune, TheLineIsAlwaysOneThatPytorchTakes) {
  for (const char* recorded : {"bogus_key:1", "backend:cudaMallocAsync", "max_split_size_mb", "expandable_segments:yes",
                               "bogus_key:[1:2,3:4],pinned_use_background_threads:True", "max_split_size_mb:4"}) {
    Trace trace = pinned();
    trace.recorded.emplace();
    trace.recorded->has_settings = true;
    trace.recorded->pytorch_conf = recorded;
    const TuneResult result = tune({trace}, hurried({}, 10));
    ASSERT_NE(recommended(result), nullptr) << recorded;
    EXPECT_NO_THROW(policy_of_conf(result.recommended_conf)) << recorded;
    EXPECT_EQ(result.dropped_settings.size(), 1u) << recorded;
    EXPECT_FALSE(result.is_baseline_recorded) << recorded << ": it could not be replayed";
  }
}

TEST(Tune, CountsTheSpaceAlone) {
  TuneOptions options = unhurried();
  options.allocators = {{"plain", plain_policy()}};
  const TuneResult result = tune({read_one("a 0 1048576 0\nf 0\n")}, options);
  EXPECT_TRUE(result.is_exhaustive);
  EXPECT_EQ(result.evaluated, result.space_size);
  EXPECT_FALSE(result.is_baseline_recorded) << "a text trace does not say what it ran under";
}

// How far an answer can be relied on.

Trace pinned_segments() { return read_one(test::pinned_segments()); }

Trace recorded_with(std::uint64_t peak_reserved_bytes, std::uint64_t at_start_bytes) {
  Trace trace = pinned_segments();
  trace.name = "recorded";
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->has_settings = true;
  trace.recorded->is_whole = at_start_bytes == 0;
  trace.recorded->peak_reserved_bytes = trace.recorded->reserved_bytes = peak_reserved_bytes;
  trace.recorded->reserved_at_start_bytes = at_start_bytes;
  if (at_start_bytes != 0) trace.recorded->initial_segments = {{.address = 1 * GiB, .bytes = at_start_bytes}};
  return trace;
}

TEST(Judge, AWholeRecordingThatTheReplayReproducesNeedsNoRemark) {
  const Trust trust = judge(recorded_with(500 * MiB, 0));
  EXPECT_EQ(trust.refusal, "");
  EXPECT_TRUE(trust.caveats.empty());
  EXPECT_TRUE(trust.fidelity.is_known);
}

TEST(Judge, ARecordingWhoseReservedMemoryIsMostlyOlderThanItsBeginningIsRefused) {
  // From its cached segment on it needs nothing else; from an empty device it takes 500 MiB.
  const Trust trust = judge(recorded_with(800 * MiB, 800 * MiB));
  EXPECT_EQ(trust.fidelity.replayed_peak_bytes, 800 * MiB);
  EXPECT_THAT(trust.refusal, AllOf(HasSubstr("800.0 MiB were reserved already when the recording began"),
                                   HasSubstr("reserve 500.0 MiB instead of 800.0 MiB"), HasSubstr("import torch")));
}

TEST(Judge, AColdStartThatHardlyMattersIsSaid) {
  const Trust trust = judge(recorded_with(540 * MiB, 40 * MiB));
  EXPECT_EQ(trust.refusal, "");
  EXPECT_THAT(trust.caveats, ElementsAre(HasSubstr("every row starts with an empty device, the recording with 40.0 "
                                                   "MiB reserved")));
}

TEST(Judge, MoreLiveThanReservedContradictsItself) {
  EXPECT_THAT(judge(recorded_with(100 * MiB, 0)).refusal,
              HasSubstr("contradicts itself: 300.0 MiB live at once according to its history, 100.0 MiB reserved"));
}

TEST(Judge, AReplayThatIsSomewhatOffIsACaveatAndOneThatIsFarOffARefusal) {
  const Trust near = judge(recorded_with(450 * MiB, 0));
  EXPECT_EQ(near.refusal, "");
  EXPECT_THAT(near.caveats, ElementsAre(HasSubstr("reserves 500.0 MiB instead of 450.0 MiB (+11.1 %)")));
  EXPECT_THAT(judge(recorded_with(1200 * MiB, 0)).refusal, HasSubstr("500.0 MiB instead of 1.17 GiB (-58.3 %)"));
  // On a device that was full, the recorded allocator could take no more.
  Trace limited = recorded_with(310 * MiB, 0);
  EXPECT_THAT(judge(limited).refusal, HasSubstr("+61.3 %"));
  limited.ooms.push_back({{.bytes = 200 * MiB}, 12});
  EXPECT_EQ(judge(limited).refusal, "");
}

TEST(Judge, AReplayThatReproducesNextToNothingIsARefusalHoweverCloseItsPeakIs) {
  Trace trace = recorded_with(500 * MiB, 0);
  // As another allocator would: the same bytes, in calls of its own.
  for (std::uint64_t event = 0; event < 20; ++event)
    trace.recorded->actions.push_back({HistoryAction::kSegmentAlloc, 25 * MiB, event});
  const Trust trust = judge(trace);
  EXPECT_EQ(trust.fidelity.replayed_peak_bytes, 500 * MiB);
  EXPECT_THAT(trust.refusal, AllOf(HasSubstr("reproduces next to nothing of what was recorded: 0 of 20 device calls"),
                                   HasSubstr("--pytorch-conf")));
}

TEST(Judge, SaysWhetherTheSettingsAreTheFilesOwn) {
  Trace trace = recorded_with(500 * MiB, 0);
  EXPECT_THAT(judge(trace).fidelity.sentence(), HasSubstr("which the file was recorded with"));
  trace.recorded->has_settings = false;
  EXPECT_THAT(judge(trace).fidelity.sentence(), HasSubstr("the file does not say what it was recorded with"));
}

// When too little could be rebuilt.

TEST(Tunable, AWholeHistoryIs) { EXPECT_EQ(judge(pinned_segments()).refusal, ""); }

TEST(Tunable, AStateWithoutAHistoryIsNot) {
  const std::string why = judge(read_one("a 0 1048576 0\na 1 1048576 0\n")).refusal;
  EXPECT_THAT(why, AllOf(HasSubstr("no setting is recommended"), HasSubstr("import torch"),
                         HasSubstr("torch.cuda.memory._record_memory_history(max_entries="),
                         HasSubstr("torch.cuda.memory._dump_snapshot(\"memory.pickle\")")));
}

TEST(Tunable, AStateWithAFreeOrTwoIsNot) {
  EXPECT_THAT(judge(read_one("a 0 104857600 0\na 1 1048576 0\nf 1\na 2 2097152 0\n")).refusal,
              HasSubstr("next to nothing is ever handed out a second time"));
}

TEST(Tunable, ARecordingThatMissedTheBeginningIsNot) {
  Trace trace = read_one("a 0 1073741824 0\na 1 1024 0\nf 1\n");
  trace.facts.seeded_blocks = 1;
  trace.facts.seeded_bytes = 1 * GiB;
  EXPECT_THAT(judge(trace).refusal, HasSubstr("against 1.00 GiB that were there before"));
}

TEST(Tunable, BytesThatAreKnownOnlyAsASumAreNot) {
  Trace trace = pinned_segments();
  trace.facts.unplaced_bytes = trace.facts.peak_requested_bytes / 2;
  EXPECT_THAT(judge(trace).refusal, HasSubstr("known only as a sum"));
}

TEST(Tunable, AnEmptyHistoryIsNot) {
  Trace trace;
  trace.name = "empty";
  EXPECT_THAT(judge(trace).refusal, AllOf(HasSubstr("empty"), HasSubstr("holds no allocation")));
}

}  // namespace
}  // namespace tenon::replay
