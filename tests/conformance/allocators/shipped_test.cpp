// Every allocator that is shipped passes the conformance kit, with its defaults and with the options that change its
// ways.
#include "conformance/allocators/option_set.h"

#include <tenon/conformance/conformance.h>
#include <tenon/core/option_edges.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/forwarding.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace tenon {
namespace {

bool is_full_run() { return std::getenv("TENON_TEST_MOMENTS") != nullptr; }

/// Beyond it something hangs, under a sanitizer and on a busy machine, too.
constexpr double kDeadlineSeconds = 280;

conformance::KitOptions kit_of_a_test() {
  return {.histories = 15, .lose_device = true, .deadline_seconds = kDeadlineSeconds};
}

class Shipped : public ::testing::TestWithParam<OptionSet> {};

TEST_P(Shipped, PassesTheKit) {
  const AllocatorInfo& info = allocator_of(GetParam());
  const Options options = options_of(GetParam());
  conformance::KitOptions run = kit_of_a_test();
  // As PyTorch's does, the cache of pinned memory leaves the retry to the host.
  if (info.name == "pinned") run.skip = {"retries_before_out_of_memory"};
  const conformance::Report report = conformance::run(info, &options, run);
  EXPECT_TRUE(report.passed()) << report.text();
}

/// Threads take turns for longer than a slice of the scheduler.
void serve_threads(const AllocatorInfo& info, const Options& options) {
  const conformance::Report report = conformance::run(
      info, &options, {.history_length = 5'000, .only = "threads", .deadline_seconds = kDeadlineSeconds});
  EXPECT_EQ(report.checks.size(), 2U);
  EXPECT_TRUE(report.passed()) << report.text();
}

TEST_P(Shipped, ServesThreads) { serve_threads(allocator_of(GetParam()), options_of(GetParam())); }

/// With its defaults.
class ShippedByName : public ::testing::TestWithParam<std::string> {
 protected:
  const AllocatorInfo& info() const { return find_allocator(GetParam()); }
};

TEST_P(ShippedByName, PassesTheKit) {
  const conformance::Report report = conformance::run(info(), nullptr, kit_of_a_test());
  EXPECT_TRUE(report.passed()) << report.text();
}

TEST_P(ShippedByName, ServesThreads) { serve_threads(info(), Options(info().options)); }

/// The option at that edge, or, where a size is too large for the kit's devices, at the largest half of it that is not;
/// false where none can be tested.
bool take_edge(const AllocatorInfo& info, const OptionEdge& edge, Options& options) {
  options.set(edge.option, edge.value);
  if (!std::holds_alternative<std::size_t>(edge.value)) return conformance::why_untestable(info, options).empty();
  const std::size_t least = Options(info.options).size(edge.option);
  for (std::size_t bytes = std::get<std::size_t>(edge.value); bytes >= least && bytes != 0; bytes /= 2) {
    options.set(edge.option, bytes);
    if (conformance::why_untestable(info, options).empty()) return true;
  }
  return false;
}

// One history of each random check: a round of `./dev kit` or `./dev test --full` (TENON_TEST_MOMENTS) plays more.
TEST_P(ShippedByName, PassesTheKitAtTheEdgesOfItsOptions) {
  for (const OptionEdge& edge : option_edges(info().options)) {
    Options options(info().options);
    if (!take_edge(info(), edge, options)) continue;
    conformance::KitOptions run{.histories = is_full_run() ? 15 : 1, .deadline_seconds = kDeadlineSeconds};
    // It is there to lift that promise.
    if (edge.option == "throw_on_cudamalloc_oom") run.skip = {"retries_before_out_of_memory"};
    const conformance::Report report = conformance::run(info(), &options, run);
    EXPECT_TRUE(report.passed()) << options.spec() << '\n' << report.text();
  }
}

/// So many operations of each random check that holds blocks, streams, sources, layouts and figures against a model of
/// its own after every one of them; the last one on a device that is full most of the time.
void agree_with_the_model(const AllocatorInfo& info, const Options& options, int operations) {
  constexpr int kHistories = 20;
  for (const auto& [check, blocks] : {std::pair("never_overlaps", 48), std::pair("respects_streams", 1000),
                                      std::pair("survives_a_small_device", 48)}) {
    const conformance::Report report = conformance::run(info, &options,
                                                        {.histories = kHistories,
                                                         .history_length = operations / kHistories,
                                                         .history_blocks = blocks,
                                                         .only = check,
                                                         .deadline_seconds = kDeadlineSeconds});
    EXPECT_TRUE(report.passed()) << report.text();
  }
}

// In a round of `./dev kit` and of `./dev test --full` a million operations each, and else fewer.
TEST_P(Shipped, AgreesWithTheModelForAMillionOperations) {
  agree_with_the_model(allocator_of(GetParam()), options_of(GetParam()), is_full_run() ? 1'000'000 : 10'000);
}

TEST_P(ShippedByName, AgreesWithTheModelForAMillionOperations) {
  agree_with_the_model(info(), Options(info().options), is_full_run() ? 1'000'000 : 100'000);
}

std::vector<std::string> shipped_names() {
  load_all_plugins();
  return allocator_names();
}
INSTANTIATE_TEST_SUITE_P(Shipped, ShippedByName, ::testing::ValuesIn(shipped_names()),
                         [](const auto& param) { return param.param; });

TEST(ShippedAllocators, AreFoundWithTheirOptions) {
  std::size_t edges = 0;
  for (const std::string& name : shipped_names()) edges += option_edges(find_allocator(name).options).size();
  EXPECT_GE(shipped_names().size(), 15U);
  EXPECT_GE(edges, 40U);
}

/// As the one within, but that it has forgotten its retries.
class ForgetsRetries final : public ForwardingAllocator {
 public:
  using ForwardingAllocator::ForwardingAllocator;
  void report(PolicyStats& stats) const override {
    inner_->report(stats);
    stats.retries = 0;
  }
};

// A policy with figures of its own is believed; of another one the host counts the retries.
TEST(ShippedAllocators, WithoutItsRetriesOneOfThemIsFoundOut) {
  const AllocatorInfo& caching = find_allocator("caching");
  AllocatorInfo forgets = caching;
  forgets.create = [&caching](const AllocatorContext& context) {
    return std::make_unique<ForgetsRetries>(caching.create(context));
  };
  const conformance::Report report = conformance::run(forgets, nullptr, {.histories = 2, .only = "reports_truly"});
  ASSERT_FALSE(report.passed());
  EXPECT_NE(report.checks[0].failure.find("report() gives retries as 0"), std::string::npos) << report.text();
}

INSTANTIATE_TEST_SUITE_P(
    Allocators, Shipped,
    ::testing::Values(
        OptionSet{"CachingAs1_13", "caching", {{"compat", "1.13"}}},
        OptionSet{"CachingSplitLimit", "caching", {{"max_split_size", "24MiB"}}},
        OptionSet{"CachingRoundup", "caching", {{"roundup_power2_divisions", "[1:4,16:8,>:2]"}}},
        OptionSet{"CachingGarbage",
                  "caching",
                  {{"garbage_collection_threshold", "0.5"}, {"per_process_memory_fraction", "0.9"}}},
        OptionSet{"ExpandableSplitLimit", "expandable", {{"max_split_size", "24MiB"}}},
        OptionSet{"CubBinsKeepAll",
                  "cub_bins",
                  {{"bin_growth", "2"}, {"min_bin", "9"}, {"max_bin", "36"}, {"max_cached", "1TiB"}}},
        OptionSet{"CubBinsKeepNothing", "cub_bins", {{"max_cached", "0"}}},
        OptionSet{"TlsfInSegments", "tlsf", {{"growth", "segments"}}},
        OptionSet{"TlsfInShortSegments", "tlsf", {{"growth", "segments"}, {"segment", "512"}}},
        OptionSet{"ArenaOfShortChunks", "arena", {{"chunk", "2MiB"}}},
        OptionSet{"BuddyOfShortChunks", "buddy", {{"chunk", "512"}}},
        OptionSet{"BfcAsRequested", "bfc", {{"arena_extend_strategy", "same_as_requested"}}},
        OptionSet{"BfcOneRegion", "bfc", {{"arena_extend_strategy", "single_region"}}},
        OptionSet{"BfcCutsEarly", "bfc", {{"max_dead_bytes_per_chunk", "512"}}},
        OptionSet{"RmmPoolFilledAtOnce", "rmm_pool", {{"initial_pool_size", "1GiB"}}},
        OptionSet{"RmmPoolBounded", "rmm_pool", {{"maximum_pool_size", "64GiB"}}},
        OptionSet{"RmmArenaOfItsSize", "rmm_arena", {{"arena_size", "64GiB"}}},
        OptionSet{"SlabInPowers", "slab_by_lcm", {{"steps", "1"}, {"by_purpose", "false"}}},
        OptionSet{"SlabInQuarters", "slab_by_lcm", {{"steps", "4"}, {"largest_small", "16KiB"}}},
        OptionSet{"DriverAsyncKeepsAll", "driver_async", {{"release_threshold", "1TiB"}}},
        OptionSet{"DriverAsyncAlone",
                  "driver_async",
                  {{"reuse_allow_opportunistic", "false"}, {"reuse_allow_internal_dependencies", "false"}}},
        OptionSet{"PlannedInOrder", "planned", {{"window", "0"}}},
        OptionSet{"MortiseWithoutJoints", "mortise", {{"join", "false"}}},
        OptionSet{"MortiseJoinsWholePages", "mortise", {{"share_ends", "false"}}},
        OptionSet{"MortiseWithoutQuick", "mortise", {{"quick", "false"}}},
        OptionSet{"MortiseWithoutRhythm", "mortise", {{"rhythm", "false"}}},
        OptionSet{"MortiseSparing", "mortise", {{"slack_fraction", "0"}, {"growth_fraction", "0"}}},
        OptionSet{"MortisePagesApart", "mortise", {{"pages_apart", "true"}}},
        OptionSet{"MortiseAllLarge", "mortise", {{"small", "512"}}},
        OptionSet{"StitchingAll", "stitching", {{"share_below", "1GiB"}, {"stitch_from", "0"}, {"growth", "512"}}},
        OptionSet{"StitchingWholeChunks", "stitching", {{"share_below", "0"}, {"stitch_from", "0"}}},
        OptionSet{"StitchingFewRanges", "stitching", {{"most_ranges", "4"}, {"stitch_from", "0"}}},
        OptionSet{"StitchingShortBlocks", "stitching", {{"most_chunks", "4"}}},
        OptionSet{"StitchingLongChunks", "stitching", {{"chunk", "16MiB"}}}, OptionSet{"Pinned", "pinned", {}},
        OptionSet{"PinnedAs1_13", "pinned", {{"compat", "1.13"}}},
        OptionSet{"PinnedBounded", "pinned", {{"max_round_threshold", "1MiB"}, {"max_cached_size", "8MiB"}}}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tenon
