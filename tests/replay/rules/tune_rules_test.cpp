// What a search for settings returns, figure by figure beside replays made one by one, and what it does once it is
// stopped, is told more, or is given allocators that break.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/runtime/conf_policy.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two histories of small requests, for which the space of settings is a small one.
std::vector<Trace> two_histories() {
  std::vector<Trace> traces;
  for (const int step : {3, 5}) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      text += fmt::format("a {} {} 0\n", i, (1 + (i * step) % 7) * 700'000);
      if (i >= step) text += fmt::format("f {}\n", i - step);
    }
    traces.push_back(read_one(text));
  }
  return traces;
}

TuneOptions without_a_clock(std::optional<std::uint64_t> capacity = {}) {
  TuneOptions options;
  options.capacity_bytes = capacity;
  options.elapsed_seconds = [] { return 0.0; };
  options.jobs = 2;
  return options;
}

ReplayRow tuned_row(const Trace& trace, const StackConfig& policy, std::optional<std::uint64_t> capacity) {
  return run_job(trace, policy,
                 {.capacity_bytes = capacity, .timed_passes = 0, .time_each_call = false, .check_placement = false});
}

TEST(TuneFigures, AreThoseOfReplaysOneByOne) {
  const std::vector<Trace> traces = two_histories();
  const std::uint64_t capacity =
      std::max(traces[0].facts.peak_requested_bytes, traces[1].facts.peak_requested_bytes) * 9 / 8;
  TuneOptions options = without_a_clock(capacity);
  options.allocators = {{"plain", plain_policy()}, {"planned", plain_policy(), true}};
  std::vector<std::pair<std::size_t, std::size_t>> told;
  options.progress = [&](std::size_t done, std::size_t total) { told.emplace_back(done, total); };
  const TuneResult result = tune(traces, options);
  EXPECT_EQ(result.peak_requested_bytes,
            std::max(traces[0].facts.peak_requested_bytes, traces[1].facts.peak_requested_bytes));
  EXPECT_TRUE(result.is_exhaustive);
  EXPECT_FALSE(result.is_interrupted);
  EXPECT_EQ(result.evaluated, result.space_size);
  EXPECT_EQ(result.trust.size(), 2U);
  EXPECT_THAT(result.recorded_confs, ElementsAre("", ""));
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), std::pair(result.space_size, result.space_size));
  EXPECT_EQ(std::ranges::count_if(result.finalists, &Candidate::is_baseline), 1);
  EXPECT_LE(std::ranges::count_if(result.finalists, &Candidate::is_pytorch), 9);
  for (const Candidate& candidate : result.finalists) {
    SCOPED_TRACE(candidate.label);
    double relative = 0;
    std::uint64_t peak = 0, calls = 0, ooms = 0, peak_there = 0;
    std::optional<std::uint64_t> first_oom;
    const StackConfig policy = candidate.is_pytorch ? policy_of_conf(candidate.label) : plain_policy();
    const bool is_collected = candidate.label.find("garbage_collection") != std::string::npos;
    for (const Trace& trace : traces) {
      const ReplayRow row = tuned_row(trace, policy, {}), there = tuned_row(trace, policy, capacity);
      relative += static_cast<double>(row.peak_reserved_bytes) / static_cast<double>(row.peak_requested_bytes) / 2;
      peak = std::max(peak, row.peak_reserved_bytes);
      calls += row.device_calls();
      ooms += there.ooms;
      peak_there = std::max(peak_there, there.peak_reserved_bytes);
      if (!first_oom) first_oom = there.first_oom_event;
    }
    EXPECT_EQ(candidate.ooms_at_capacity, ooms);
    EXPECT_EQ(candidate.peak_at_capacity, peak_there);
    EXPECT_EQ(candidate.first_oom_event, first_oom);
    EXPECT_EQ(candidate.is_planned, candidate.label == "planned");
    if (is_collected) continue;  // its other figures are those of the setting that it is added to
    EXPECT_NEAR(candidate.relative_peak, relative, 1e-9);
    EXPECT_EQ(candidate.peak_reserved_bytes, peak);
    EXPECT_EQ(candidate.device_calls, calls);
    EXPECT_EQ(candidate.is_sampled, !candidate.is_pytorch) << "nobody knows what the plain one looks at";
    if (!candidate.is_sampled) {
      EXPECT_LE(candidate.examined_from_bytes, result.peak_requested_bytes) << "the whole line";
    }
    const std::size_t commas = static_cast<std::size_t>(std::ranges::count(candidate.label, ','));
    if (candidate.is_pytorch) {
      EXPECT_EQ(candidate.settings, candidate.label.empty() ? 0 : commas + 1);
    }
  }
}

TEST(TuneFigures, OfCollectionAreTriedOnWhatTakesSixTenthsOfTheCapacity) {
  std::vector<Trace> traces = two_histories();
  traces.pop_back();
  const TuneResult free = tune(traces, without_a_clock());
  std::uint64_t least = ~std::uint64_t{0};
  for (const Candidate& candidate : free.finalists) {
    EXPECT_EQ(candidate.label.find("garbage"), std::string::npos) << "without a capacity there is no limit";
    if (candidate.label.find("expandable") == std::string::npos) least = std::min(least, candidate.peak_reserved_bytes);
  }
  const auto collected_on = [&](std::uint64_t capacity) {
    std::vector<std::string> labels;
    for (const Candidate& candidate : tune(traces, without_a_clock(capacity)).finalists)
      if (candidate.label.find("garbage") != std::string::npos) {
        labels.push_back(candidate.label);
        EXPECT_TRUE(candidate.is_sampled);
        EXPECT_FALSE(candidate.is_baseline);
        EXPECT_EQ(candidate.settings, static_cast<std::uint64_t>(std::ranges::count(candidate.label, ',')) + 1);
      }
    return labels;
  };
  const std::vector<std::string> found = collected_on(least * 10 / 6);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], ::testing::EndsWith("garbage_collection_threshold:0.8,per_process_memory_fraction:0.99"));
  EXPECT_THAT(collected_on(3 * least), IsEmpty());
}

TEST(TuneFigures, OfRecordedSettingsAreKeptWhereNoneIsSearched) {
  std::vector<Trace> traces = two_histories();
  for (Trace& trace : traces) {
    trace.recorded.emplace().has_settings = true;
    trace.recorded->pytorch_conf = "per_process_memory_fraction:0.9,roundup_power2_divisions:4";
  }
  TuneOptions at_once = without_a_clock();
  at_once.elapsed_seconds = [] { return std::numeric_limits<double>::infinity(); };
  const TuneResult result = tune(traces, at_once);
  EXPECT_EQ(result.recorded_conf, traces[0].recorded->pytorch_conf);
  EXPECT_TRUE(result.is_baseline_recorded);
  EXPECT_THAT(result.dropped_settings, IsEmpty());
  for (const Candidate& candidate : result.finalists) {
    EXPECT_THAT(candidate.label, ::testing::HasSubstr("per_process_memory_fraction:0.9"));
    EXPECT_EQ(candidate.is_baseline, candidate.label == result.recorded_conf);
    EXPECT_TRUE(candidate.is_sampled) << "a share of the device";
    if (candidate.is_baseline) {
      EXPECT_EQ(candidate.settings, 1U);
    }
  }
  traces[1].recorded->has_settings = false;
  EXPECT_TRUE(tune(traces, at_once).is_baseline_recorded) << "one of them says so";
  traces[0].recorded->has_settings = false;
  EXPECT_FALSE(tune(traces, at_once).is_baseline_recorded) << "none of them does";
}

TEST(TuneFigures, OfWhatNoDeviceServesHaveNoSafeCapacity) {
  std::vector<Trace> traces;
  traces.push_back(read_one(fmt::format("a 0 {} 0\nf 0\n", std::uint64_t{1} << 61)));
  TuneOptions at_once = without_a_clock();
  at_once.elapsed_seconds = [] { return std::numeric_limits<double>::infinity(); };
  const TuneResult result = tune(traces, at_once);
  ASSERT_FALSE(result.finalists.empty());
  for (const Candidate& candidate : result.finalists) EXPECT_FALSE(candidate.safe_from_bytes);
  EXPECT_EQ(result.recommended_toml, "");
}

TEST(TuneFigures, TakeOneReplayOfEachHistoryWithoutALimitAndOneAtTheCapacity) {
  auto* const made = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));  // replays are children
  ASSERT_NE(made, MAP_FAILED);
  StackConfig counted = policy_of("counted", [made](const AllocatorContext& context) {
    ++*made;
    return std::make_unique<PlainPolicy>(context.source);
  });
  counted.policy.traits.depends_on_capacity = [](const Options&) { return false; };
  for (const bool has_capacity : {false, true}) {
    *made = 0;
    TuneOptions options = without_a_clock(has_capacity ? std::optional<std::uint64_t>(GiB) : std::nullopt);
    options.elapsed_seconds = [] { return std::numeric_limits<double>::infinity(); };
    options.allocators = {{"counted", counted}};
    const TuneResult result = tune(two_histories(), options);
    EXPECT_EQ(*made, has_capacity ? 4 : 2);
    EXPECT_EQ(result.evaluated, 1U) << "the baseline alone";
    EXPECT_FALSE(result.is_exhaustive);
  }
  ::munmap(made, 4096);
}

TEST(TuneStops, BeforeAnythingWasMeasuredThereIsNothing) {
  TuneOptions options = without_a_clock();
  options.is_stopping = [] { return true; };
  options.trust = {Trust{.refusal = "no"}};
  const TuneResult result = tune(two_histories(), options);
  EXPECT_TRUE(result.is_interrupted);
  EXPECT_THAT(result.finalists, IsEmpty());
  EXPECT_EQ(result.evaluated, 0U);
  EXPECT_GT(result.space_size, 0U);
  EXPECT_FALSE(result.is_exhaustive);
  EXPECT_EQ(result.recommended_conf + result.recommended_toml, "");
  ASSERT_EQ(result.trust.size(), 2U);
  EXPECT_EQ(result.trust[0].refusal, "no") << "as it was judged already";
  EXPECT_NE(result.trust[1].refusal, "no");
}

TEST(TuneStops, WhatWasMeasuredUntilThenIsJudged) {
  const std::vector<Trace> traces = two_histories();
  for (const std::size_t stop_at : {8, 20, 40}) {
    auto done_now = std::make_shared<std::size_t>(0);
    TuneOptions options = without_a_clock();
    options.progress = [=](std::size_t done, std::size_t) { *done_now = done; };
    options.is_stopping = [=] { return *done_now >= stop_at; };
    const TuneResult result = tune(traces, options);
    EXPECT_TRUE(result.is_interrupted);
    EXPECT_EQ(result.evaluated, *done_now);
    EXPECT_LT(result.evaluated, result.space_size);
    ASSERT_FALSE(result.finalists.empty());
    for (const Candidate& candidate : result.finalists) {
      EXPECT_EQ(candidate.failure, "");
      EXPECT_GT(candidate.peak_reserved_bytes, 0U);
    }
  }
}

TEST(TuneAllocators, ThatBreakAreLeftOutAndOfOneNameThereIsOne) {
  const StackConfig broken = policy_of("broken", [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Broken final : public PlainPolicy {
     public:
      using PlainPolicy::PlainPolicy;
      Block allocate(const Request&) override { throw Error("lost its way"); }
    };
    return std::make_unique<Broken>(context.source);
  });
  TuneOptions options = without_a_clock();
  options.allocators = {
      {"broken", broken}, {"plain", plain_policy()}, {"as plain", plain_policy()}, {"plain", plain_policy()}};
  std::vector<std::string> own;
  for (const Candidate& candidate : tune(two_histories(), options).finalists)
    if (!candidate.is_pytorch) own.push_back(candidate.label);
  EXPECT_THAT(own, ElementsAre("plain", "as plain")) << "though they equal one another";
}

TEST(TuneGrids, HaveEverySensibleCombinationOnce) {
  const std::vector<Trace> traces = two_histories();
  const std::vector<Candidate> grid = exhaustive_grid(traces, 2);
  EXPECT_EQ(grid.size(), tune(traces, without_a_clock()).space_size);
  std::vector<std::string> labels;
  for (const Candidate& candidate : grid) {
    labels.push_back(candidate.label);
    EXPECT_FALSE(candidate.walk);
  }
  std::ranges::sort(labels);
  EXPECT_EQ(std::ranges::adjacent_find(labels), labels.end());
  EXPECT_EQ(labels.front(), "");
}

}  // namespace
}  // namespace tenon::replay
