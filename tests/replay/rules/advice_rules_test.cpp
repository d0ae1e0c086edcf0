// Advice by rule: which of equal settings is recommended and what it saves, what is tried and written for it, and what
// is found out about a history that ran out of memory.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/pytorch_settings.h>
#include <tenon/replay/advise/tune_ranking.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// One of PyTorch's, or of Tenon's, that runs from `safe` on.
Candidate ranked(const std::string& label, bool pytorch, double peak, std::optional<std::uint64_t> safe,
                 std::uint64_t settings = 0, std::uint64_t calls = 0) {
  Candidate candidate;
  candidate.label = label;
  candidate.is_pytorch = pytorch;
  candidate.relative_peak = peak;
  candidate.peak_reserved_bytes = static_cast<std::uint64_t>(peak * 1000);
  candidate.safe_from_bytes = safe;
  candidate.settings = settings;
  candidate.device_calls = calls;
  candidate.policy = policy_of(label, {});
  return candidate;
}
std::string recommended_of(std::vector<Candidate> table, const RecommendationLimits& limits) {
  rank(table, limits);
  const auto found = std::ranges::find_if(table, &Candidate::is_recommended);
  return found == table.end() ? "none" : found->label;
}

TEST(Recommendations, GoBySafeCapacitiesThatDifferBySettingsAndByCalls) {
  const RecommendationLimits limits{.capacity_bytes = 2000, .allocations = 100};
  const auto of_two = [&](const Candidate& a, const Candidate& b) {
    const std::string chosen = recommended_of({a, b}, limits);
    EXPECT_EQ(recommended_of({b, a}, limits), chosen) << "in either order";
    return chosen;
  };
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000, 1, 1), ranked("b", true, 1, 1005, 0, 0)), "b") << "within 0.5 %";
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000, 1, 1), ranked("b", true, 1, 1006, 0, 0)), "a");
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000, 1, 1), ranked("b", true, 1, 1000, 0, 2)), "b");
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000, 1, 1), ranked("b", true, 1, 1000, 1, 2)), "a");
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000), ranked("b", true, 1.01, 900)), "b") << "within 1 % of the lowest";
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000), ranked("b", true, 1.0101, 900)), "a");
  EXPECT_EQ(of_two(ranked("a", true, 1, 2001), ranked("b", true, 1.5, 2000)), "b") << "on that capacity";
  EXPECT_EQ(of_two(ranked("a", true, 1, {}), ranked("b", true, 1.5, 2000)), "b");
  EXPECT_EQ(of_two(ranked("a", false, 1, 1000), ranked("b", true, 1.5, 2000)), "b") << "Tenon's are not";
  EXPECT_EQ(of_two(ranked("a", true, 1, 1000, 0, 1'000'000), ranked("b", true, 1.5, 2000)), "a")
      << "device calls do not count against PyTorch's";
  Candidate fails = ranked("a", true, 1, 1000);
  fails.ooms_at_capacity = 1;
  EXPECT_EQ(of_two(fails, ranked("b", true, 1.5, 2000)), "b");
  fails.ooms_at_capacity = 0;
  EXPECT_EQ(of_two(fails, ranked("b", true, 1.5, 2000)), "a");
  fails.failure = "broke";
  EXPECT_EQ(of_two(fails, ranked("b", true, 1.5, 2000)), "b");
  EXPECT_EQ(recommended_of({fails}, limits), "none");
}

TEST(Recommendations, WithoutACapacityAreOfWhatIsSafeFromSomewhereOn) {
  EXPECT_EQ(recommended_of({ranked("a", true, 1, {})}, {}), "none");
  EXPECT_EQ(recommended_of({ranked("a", true, 1, ~std::uint64_t{0} - 1)}, {}), "a");
}

TEST(Recommendations, OfTenonsAreQuickOnesThatSaveOrTheOnlyOnes) {
  const RecommendationLimits limits{.capacity_bytes = 2000, .allocations = 400};
  const auto toml_of_all = [&](std::vector<Candidate> table) {
    rank(table, limits);
    note_savings(table, limits);
    const std::string toml = recommended_toml(table, limits);
    std::string chosen;
    for (const Candidate& candidate : table)
      if (candidate.is_for_tenon) chosen += candidate.label;
    EXPECT_EQ(toml, chosen.empty() ? "" : "[allocator]\nname = \"" + chosen + "\"\n");
    return chosen;
  };
  const Candidate theirs = ranked("theirs", true, 1.5, 1500);
  EXPECT_EQ(toml_of_all({theirs, ranked("ours", false, 1.2, 1200)}), "ours");
  EXPECT_EQ(toml_of_all({theirs, ranked("ours", false, 1.49, 1200)}), "theirs") << "less than 1 %";
  EXPECT_EQ(toml_of_all({theirs, ranked("ours", false, 1.2, 1200, 0, 1100)}), "ours");
  EXPECT_EQ(toml_of_all({theirs, ranked("ours", false, 1.2, 1200, 0, 1101)}), "theirs") << "too many device calls";
  EXPECT_EQ(toml_of_all({theirs, ranked("ours", false, 1.2, 2001)}), "theirs");
  EXPECT_EQ(toml_of_all({ranked("ours", false, 1.2, 1200)}), "ours") << "the only one";
  Candidate planned = ranked("planned", false, 1.0, 1000);
  planned.is_planned = true;
  EXPECT_EQ(toml_of_all({theirs, planned, ranked("ours", false, 1.2, 1200)}), "ours");
  EXPECT_EQ(toml_of_all({planned}), "");
  EXPECT_EQ(toml_of_all({}), "");
}

TEST(Savings, AreBesideTheLowestOfPytorchsThatRuns) {
  const RecommendationLimits limits{.capacity_bytes = 2000, .allocations = 400};
  std::vector<Candidate> table = {ranked("high", true, 2, 1900),
                                  ranked("low", true, 1.6, 1800),
                                  ranked("lowest, too large", true, 1.1, 2001),
                                  ranked("ours", false, 1.2, 1900),
                                  ranked("close", false, 1.59, 1500),
                                  ranked("slow", false, 1.2, 1500, 0, 1101)};
  table[1].peak_reserved_bytes = 1000;
  note_savings(table, limits);
  for (std::size_t i : {0, 1, 2, 4, 5}) EXPECT_FALSE(table[i].saving) << table[i].label;
  ASSERT_TRUE(table[3].saving);
  EXPECT_EQ(table[3].saving->than, "low");
  EXPECT_EQ(table[3].saving->bytes, -200) << "in the history that needs most";
  EXPECT_DOUBLE_EQ(table[3].saving->fraction, 0.25);
  EXPECT_EQ(table[3].saving->safe_bytes, -100);
  std::vector<Candidate> none = {ranked("ours", false, 1.2, 1900)};
  note_savings(none, limits);
  EXPECT_FALSE(none[0].saving) << "beside nothing";
}

TEST(Ranks, PutWhatFailedLastWhateverItTook) {
  std::vector<Candidate> table = {ranked("failed", true, 1, 1000), ranked("b", true, 1.5, 1500),
                                  ranked("a", true, 1.2, 1500)};
  table[0].failure = "broke";
  rank(table, {});
  EXPECT_EQ(table[0].label + table[1].label + table[2].label, "abfailed");
  EXPECT_TRUE(table[0].is_pareto);
  EXPECT_FALSE(table[1].is_pareto) << "a is as safe with less";
  EXPECT_FALSE(table[2].is_pareto);
}

std::vector<std::string> labels_of(const std::vector<FitCandidate>& candidates) {
  std::vector<std::string> labels;
  for (const FitCandidate& candidate : candidates) labels.push_back(candidate.label);
  return labels;
}

TEST(SettingsToTry, LimitBlocksOnlyBelowTheLargestRequest) {
  const std::string expandable = "expandable_segments:True", roundup = "roundup_power2_divisions:8",
                    collected = "garbage_collection_threshold:0.8";
  EXPECT_THAT(settings_to_try(32 * MiB), ElementsAre(expandable, roundup, collected));
  EXPECT_THAT(settings_to_try(32 * MiB + 1), ElementsAre(expandable, "max_split_size_mb:32", roundup, collected));
  EXPECT_THAT(settings_to_try(128 * MiB),
              ElementsAre(expandable, "max_split_size_mb:32", "max_split_size_mb:64", roundup, collected));
  EXPECT_EQ(settings_to_try(100 * GiB).size(), 8U);
}

TEST(OtherPytorchSettings, AreAddedToWhatWasSetWhereTheirKeyIsNotAndPytorchTakesThem) {
  const auto with = [](const std::string& conf) { return labels_of(other_pytorch_settings(conf, 64 * MiB)); };
  EXPECT_THAT(with(""), ElementsAre("expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:8",
                                    "garbage_collection_threshold:0.8"));
  EXPECT_THAT(with("max_split_size_mb:40"), ElementsAre("max_split_size_mb:40,expandable_segments:True",
                                                        "max_split_size_mb:40,roundup_power2_divisions:8",
                                                        "max_split_size_mb:40,garbage_collection_threshold:0.8"));
  EXPECT_THAT(with("expandable_segments:True"), ElementsAre("expandable_segments:True,roundup_power2_divisions:8"));
  EXPECT_THAT(with("large_segment_size_mb:33"),
              ElementsAre("large_segment_size_mb:33,roundup_power2_divisions:8",
                          "large_segment_size_mb:33,garbage_collection_threshold:0.8"))
      << "neither a limit below a segment nor pages of an odd number of mebibytes";
  for (const FitCandidate& candidate : other_pytorch_settings("expandable_segments:True", 64 * MiB))
    EXPECT_EQ(conf_of_policy(candidate.policy), candidate.label);
}

TEST(OtherAllocators, AreCalledByWhatIsSetAndHaveItsSettingsToo) {
  load_all_plugins();
  const StackConfig limited = allocator_from_spec("caching:roundup_power2_divisions=4");
  std::vector<std::string> settings;
  for (const std::string& label : labels_of(other_allocators(limited, 64 * MiB)))
    if (label.find(':') != std::string::npos) settings.push_back(label);
  EXPECT_THAT(settings, ElementsAre("caching:max_split_size=32MiB,roundup_power2_divisions=4",
                                    "caching:roundup_power2_divisions=4,garbage_collection_threshold=0.8"));
  const std::vector<std::string> of_caching = labels_of(other_allocators(limited, 64 * MiB));
  EXPECT_THAT(of_caching, ::testing::Contains("caching with its defaults"));
  EXPECT_THAT(of_caching, ::testing::Contains("direct"));
  settings.clear();
  for (const std::string& label : labels_of(other_allocators(allocator_from_spec("direct"), 64 * MiB)))
    if (label.find(':') != std::string::npos) settings.push_back(label);
  EXPECT_THAT(settings, ElementsAre("caching:max_split_size=32MiB", "caching:garbage_collection_threshold=0.8"));
}

TEST(SearchedSettings, ReachTwiceTheLargestRequest) {
  const auto values_of = [](std::uint64_t largest, const std::string& key) {
    for (const Dimension& dimension : pytorch_space(largest))
      if (dimension.key == key) return dimension.values;
    return std::vector<std::string>{"no such key"};
  };
  EXPECT_THAT(values_of(16 * MiB - 1, "max_split_size_mb"), ElementsAre(""));
  EXPECT_THAT(values_of(16 * MiB, "max_split_size_mb"), ElementsAre("", "32"));
  EXPECT_THAT(values_of(32 * MiB, "max_non_split_rounding_mb"), ElementsAre("", "32", "64"));
  EXPECT_THAT(values_of(1, "large_segment_size_mb"), ElementsAre("", "12", "16", "32", "64", "128", "256"));
  EXPECT_THAT(values_of(1, "garbage_collection_threshold"), ElementsAre("no such key")) << "it is not searched";
  EXPECT_EQ(values_of(100 * GiB, "max_split_size_mb").size(), 9U);
}

TEST(SearchedSettings, AreMergedWithWhatNoAdviceDecides) {
  EXPECT_EQ(merge_conf("", "expandable_segments:True"), "expandable_segments:True");
  EXPECT_EQ(merge_conf("max_split_size_mb:64", "expandable_segments:True"), "expandable_segments:True");
  EXPECT_EQ(merge_conf("pinned_use_background_threads:True", ""), "pinned_use_background_threads:True");
  EXPECT_EQ(merge_conf("pinned_use_background_threads:True,max_split_size_mb:64,per_process_memory_fraction:0.5",
                       "roundup_power2_divisions:8"),
            "roundup_power2_divisions:8,pinned_use_background_threads:True,per_process_memory_fraction:0.5");
  EXPECT_EQ(merge_conf("per_process_memory_fraction:0.5", "per_process_memory_fraction:0.9"),
            "per_process_memory_fraction:0.9");
  EXPECT_EQ(merge_conf("bogus:1", "expandable_segments:True"), "expandable_segments:True");
}

TEST(AllocatorTables, QuoteWhatIsNoNumberAndNoTruth) {
  load_all_plugins();
  EXPECT_EQ(toml_of(allocator_from_spec("caching")), "[allocator]\nname = \"caching\"\n");
  EXPECT_EQ(toml_of(allocator_from_spec("caching:max_split_size=64MiB")),
            "[allocator]\nname = \"caching\"\n[allocator.caching]\nmax_split_size = \"64MiB\"\n");
  EXPECT_EQ(toml_of(allocator_from_spec("caching:garbage_collection_threshold=0.8")),
            "[allocator]\nname = \"caching\"\n[allocator.caching]\ngarbage_collection_threshold = 0.8\n");
  EXPECT_EQ(spec_of(allocator_from_spec("caching:max_split_size=64MiB")), "caching:max_split_size=64MiB");
  EXPECT_EQ(spec_of(allocator_from_spec("direct")), "direct");
}

TEST(PlanFiles, AreNamedInTheOptionsOfWhatServesFromThem) {
  load_all_plugins();
  const Trace trace = read_one("a 0 1048576 0\nf 0\na 1 2097152 0\nf 1\n");
  const PlanOfHistory plan(trace, 1);
  const std::vector<FitCandidate> planned = plan.allocators();
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_TRUE(planned[0].is_planned);
  EXPECT_EQ(spec_of(with_plan_file(planned[0].policy, "runs/gpt2.trace.gz")), "planned:plan=gpt2.plan");
  EXPECT_THAT(spec_of(planned[0].policy), ::testing::StartsWith("planned:plan=/proc/self/fd/"));
  EXPECT_EQ(plan_name_for(".hidden"), "..plan") << "a dot at the beginning is no end of the name";
}

/// What ran out at its end: PyTorch's pinned segments, with 63 MiB that it could have.
Trace ran_out() {
  Trace trace = read_one(test::pinned_segments(test::kSmallPinned));
  trace.name = "run";
  trace.ooms.push_back({{.bytes = 28 * MiB, .reserved_bytes = 60 * MiB, .device_free_bytes = 3 * MiB}, 15});
  return trace;
}

TEST(Diagnosed, IsTheCapacityThatIsAskedForOrThatOfTheFailure) {
  load_all_plugins();
  const Trace trace = ran_out();
  const Diagnosis as_recorded = diagnose(trace, {});
  EXPECT_EQ(as_recorded.report.capacity_bytes, 63 * MiB);
  EXPECT_EQ(as_recorded.trace, "run");
  EXPECT_TRUE(as_recorded.is_pytorch);
  ASSERT_TRUE(as_recorded.failed_request);
  EXPECT_EQ(as_recorded.failed_request->bytes, 28 * MiB);
  EXPECT_EQ(as_recorded.report.current.label, "PyTorch's defaults");
  EXPECT_TRUE(as_recorded.report.is_reproduced());
  ASSERT_NE(as_recorded.report.best(), nullptr);
  EXPECT_EQ(as_recorded.how_to_set(*as_recorded.report.best()), "expandable_segments:True");
  EXPECT_FALSE(as_recorded.is_interrupted);
  EXPECT_TRUE(as_recorded.is_known);
  EXPECT_FALSE(as_recorded.is_hopeless());
  EXPECT_THAT(as_recorded.complaints(), IsEmpty());
  EXPECT_FALSE(as_recorded.without_growth);
  EXPECT_EQ(diagnose(trace, {.capacity_bytes = 100 * MiB}).report.capacity_bytes, 100 * MiB);
  EXPECT_TRUE(diagnose(trace, {.capacity_bytes = 42 * MiB - 1}).is_hopeless());
  EXPECT_FALSE(diagnose(trace, {.capacity_bytes = 42 * MiB}).is_hopeless()) << "just as much";
  Trace without = ran_out();
  without.ooms.clear();
  EXPECT_EQ(diagnose(without, {}).report.capacity_bytes, 0U);
  EXPECT_FALSE(diagnose(without, {}).is_hopeless());
  EXPECT_FALSE(diagnose(without, {}).failed_request);
}

TEST(Diagnosed, IsWhatWasRecordedUnlessTheUserSaysOtherwise) {
  load_all_plugins();
  Trace trace = ran_out();
  trace.recorded.emplace();
  trace.recorded->pytorch_conf = "roundup_power2_divisions:8,bogus:1";
  const Diagnosis recorded = diagnose(trace, {});
  EXPECT_EQ(recorded.report.current.label, "roundup_power2_divisions:8");
  EXPECT_THAT(recorded.dropped_settings, ElementsAre("bogus:1"));
  EXPECT_EQ(recorded.trust.caveats.back(),
            "run was recorded with bogus:1, which PyTorch's native allocator does not take: left out, so that what was "
            "in use is not what is replayed");
  const Diagnosis asked = diagnose(trace, {.pytorch_conf = "max_split_size_mb:32"});
  EXPECT_EQ(asked.report.current.label, "max_split_size_mb:32");
  EXPECT_THAT(asked.dropped_settings, IsEmpty());
  trace.header["allocator"] = "caching";
  trace.header["allocator_options"] = "max_split_size=32MiB";
  trace.header["allocator_plugin"] = "/lib/caching.so";
  const auto policy = recorded_policy(trace);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->name + " " + policy->options + " " + policy->plugin,
            "caching max_split_size=32MiB /lib/caching.so");
  const Diagnosis of_tenons = diagnose(trace, {});
  EXPECT_FALSE(of_tenons.is_pytorch);
  EXPECT_EQ(of_tenons.report.current.label, "caching:max_split_size=32MiB");
  EXPECT_TRUE(diagnose(trace, {.pytorch_conf = "max_split_size_mb:32"}).is_pytorch);
  const Diagnosis by_spec = diagnose(trace, {.allocator = "direct", .also = {"caching:max_split_size=48MiB"}});
  EXPECT_EQ(by_spec.report.current.label, "direct");
  EXPECT_FALSE(by_spec.is_pytorch);
  bool was_tried = false;
  for (const FitAttempt& other : by_spec.report.others) was_tried |= other.label == "caching:max_split_size=48MiB";
  EXPECT_TRUE(was_tried);
  trace.header.erase("allocator");
  EXPECT_FALSE(recorded_policy(trace));
  EXPECT_THROW(diagnose(trace, {.allocator = "no such one"}), ConfigError);
}

TEST(Diagnosed, AreTenonsOwnBesideWithoutSlowOnesThatNobodyNamed) {
  load_all_plugins();
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("a {0} 2097152 0\nf {0}\n", i);
  const Trace trace = read_one(text);
  const auto owns_of = [&](const std::vector<std::string>& also) {
    std::vector<std::string> labels;
    const Diagnosis found = diagnose(trace, {.capacity_bytes = 64 * MiB, .also = also});
    for (const FitAttempt& own : found.report.own) {
      labels.push_back(own.label);
      EXPECT_EQ(own.is_planned, own.label == "planned");
      EXPECT_EQ(found.how_to_set(own, true), own.is_planned ? "planned:plan=file.plan" : own.label);
      EXPECT_FALSE(own.is_slow && own.label != "direct");
    }
    return labels;
  };
  EXPECT_THAT(owns_of({}), ::testing::Contains("planned"));
  EXPECT_THAT(owns_of({}), ::testing::Not(::testing::Contains("direct")));
  EXPECT_THAT(owns_of({"direct"}), ::testing::Contains("direct"));
}

TEST(Diagnosed, IsNotKnownOnceItIsInterruptedAndNothingIsJudged) {
  load_all_plugins();
  const Diagnosis stopped = diagnose(ran_out(), {.is_stopping = [] { return true; }});
  EXPECT_TRUE(stopped.is_interrupted);
  EXPECT_FALSE(stopped.is_known);
  EXPECT_THAT(stopped.complaints(), IsEmpty()) << "what was in use was not replayed: no fault of its own";
  EXPECT_FALSE(stopped.report.is_reproduced());
  EXPECT_THAT(stopped.report.others, IsEmpty());
}

TEST(Diagnosed, IsNotKnownOfAPoorHistoryUnlessItIsHopeless) {
  load_all_plugins();
  const Trace poor = read_one("a 0 1048576 0\na 1 1048576 0\n");
  EXPECT_FALSE(diagnose(poor, {.capacity_bytes = 4 * MiB}).is_known);
  EXPECT_TRUE(diagnose(poor, {.capacity_bytes = 2 * MiB - 1}).is_known);
}

TEST(Diagnosed, AreThePinsOfTheStretchThatTheFailedRequestNeeded) {
  load_all_plugins();
  Trace trace = ran_out();
  trace.stacks.frames = {{"forward", "model.py", 3}, {"backward", "model.py", 7}};
  trace.stacks.stacks = {{}, {0}, {1}};
  Segment segment;
  segment.address = 4096;
  segment.bytes = 60 * MiB;
  std::uint64_t address = 4096;
  for (const auto& [bytes, stack] : std::vector<std::pair<std::size_t, StackId>>{
           {14 * MiB, 0}, {1 * MiB, 1}, {8 * MiB, 0}, {2 * MiB, 2}, {8 * MiB, 0}, {27 * MiB, 1}}) {
    segment.blocks.push_back({.address = address,
                              .bytes = bytes,
                              .requested_bytes = stack == 0 ? 0 : bytes,
                              .state = stack == 0 ? BlockState::kFree : BlockState::kActive,
                              .stack = stack});
    address += bytes;
  }
  trace.recorded.emplace().final_segments = {segment};
  const Diagnosis found = diagnose(trace, {});
  EXPECT_EQ(found.hole_bytes, 33 * MiB);
  EXPECT_THAT(found.pins,
              ElementsAre(std::pair("backward (model.py:7)", 2 * MiB), std::pair("forward (model.py:3)", 1 * MiB)))
      << "the largest first";
  trace.ooms.back().bytes = 60 * MiB;
  EXPECT_EQ(diagnose(trace, {}).hole_bytes, 60 * MiB) << "just as much as the whole segment";
  trace.ooms.back().bytes = 60 * MiB + 1;
  EXPECT_EQ(diagnose(trace, {}).hole_bytes, 0U);
  EXPECT_THAT(diagnose(trace, {}).pins, IsEmpty());
}

TEST(Diagnosed, AreTheHoldersOfThePeakByTheirCallSitesTheLargestFirst) {
  load_all_plugins();
  Trace trace = read_one("a 0 1048576 0\na 1 2097152 0\na 2 3145728 0\na 3 1048576 0\nf 0\nf 1\nf 2\nf 3\n");
  trace.stacks.frames = {
      {"forward", "model.py", 3}, {"backward", "model.py", 7}, {"call", "/site-packages/torch/nn/module.py", 9}};
  trace.stacks.stacks = {{}, {0}, {1}, {0, 2}};
  trace.stack_of_allocation = {1, 2, 1, 3};
  std::vector<std::string> shown;
  for (const auto& [site, holder] : diagnose(trace, {}).holders)
    shown.push_back(fmt::format("{}: {} in {}", site, format_bytes(holder.bytes), holder.blocks));
  EXPECT_THAT(shown, ElementsAre("forward (model.py:3): 5.00 MiB in 3", "backward (model.py:7): 2.00 MiB in 1"));
  EXPECT_EQ(diagnose(trace, {.names_all_frames = true}).holders.size(), 3U);
}

TEST(Diagnosed, AreComplaintsOfEverythingThatBreaks) {
  Diagnosis diagnosis;
  const auto broken = [](const std::string& label, const std::string& failure) {
    FitAttempt attempt;
    attempt.label = label;
    attempt.failure = failure;
    return attempt;
  };
  diagnosis.report.current = broken("mine", "it broke");
  diagnosis.report.others = {broken("fine", ""), broken("other", "it broke, too")};
  diagnosis.report.own = {broken("own", "and this")};
  EXPECT_THAT(diagnosis.complaints(),
              ElementsAre("'mine' is disqualified: it broke", "'other' is disqualified: it broke, too",
                          "'own' is disqualified: and this"));
  diagnosis.is_interrupted = true;
  EXPECT_EQ(diagnosis.complaints().size(), 2U);
}

/// Each step leaves a megabyte.
Trace growing(int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i)
    text += fmt::format("m step {0}\na {1} 1048576 0\na {2} 4194304 0\nf {2}\n", i, 2 * i, 2 * i + 1);
  Trace trace = read_one(text);
  trace.stacks.frames = {{"leak", "model.py", 3}, {"work", "model.py", 7}};
  trace.stacks.stacks = {{}, {0}, {1}};
  for (int i = 0; i < steps; ++i) {
    trace.stack_of_allocation.push_back(1);
    trace.stack_of_allocation.push_back(2);
  }
  return trace;
}

TEST(Diagnosed, IsReplayedWithoutWhatGrows) {
  load_all_plugins();
  const Diagnosis found = diagnose(growing(12), {.capacity_bytes = 48 * MiB});
  ASSERT_FALSE(found.growth.sites.empty());
  ASSERT_TRUE(found.without_growth);
  EXPECT_EQ(found.without_growth->label, "PyTorch's defaults");
  EXPECT_LT(found.without_growth->peak_reserved_bytes, found.report.current.peak_reserved_bytes);
}

}  // namespace
}  // namespace tenon::replay
