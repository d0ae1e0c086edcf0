// Advice by rule: which of equal settings is recommended and what it saves, what is tried and written for it.
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
  EXPECT_EQ(toml_of(with_plan_file(planned[0].policy, "a \"b\".pickle")),
            "[allocator]\nname = \"planned\"\n[allocator.planned]\nplan = \"a \\\"b\\\".plan\"\n");
  EXPECT_EQ(plan_name_for(".hidden"), "..plan") << "a dot at the beginning is no end of the name";
}

}  // namespace
}  // namespace tenon::replay
