// The memory API over PyTorch's policy: its worked history, its worked snapshot, its well-known figures, its pools.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>

#include <caching/caching_allocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<AllocatorStack> caching_stack(MemorySource& source,
                                              const std::vector<std::pair<std::string, std::string>>& options = {}) {
  StackConfig config;
  config.policy = {.name = "caching",
                   .options = caching::option_schema(false),
                   .create = [](const AllocatorContext& context) { return caching::make_allocator(context, false); }};
  config.options = Options(config.policy.options);
  for (const auto& [name, value] : options) config.options.set_text(name, value);
  return AllocatorStack::make(source, config);
}

/// "alloc 1000" for each event.
std::vector<std::string> told(const History& history) {
  std::vector<std::string> lines;
  for (const HistoryEvent& event : history.events()) {
    lines.push_back(std::string(name_of(event.action)) + " " + std::to_string(event.bytes));
  }
  return lines;
}

// PyTorch's own trace for: 1000 B, 2 MiB, free the first, free the second after another stream used it, 500 B,
// empty_cache().
TEST(WorkedExamples, W29TheHistoryOfAShortRun) {
  AddressOnlySource source({.manual_completion = true});
  const auto stack = caching_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  const Block small = stack->allocate({.bytes = 1000});
  const Block large = stack->allocate({.bytes = 2 * MiB});
  EXPECT_EQ(stack->stats().allocated_bytes.current, 2098176);
  EXPECT_EQ(stack->stats().reserved_bytes.current, 23068672);
  stack->deallocate(small);
  stack->record_use(large, {1});
  stack->deallocate(large);
  EXPECT_EQ(memory_stats_table(stack->stats()).at("active_bytes.all.current"), static_cast<std::int64_t>(2 * MiB));
  EXPECT_EQ(memory_stats_table(stack->stats()).at("allocated_bytes.all.current"), 0);
  source.complete(StreamRef{1});
  const Block again = stack->allocate({.bytes = 500});
  stack->trim();
  EXPECT_THAT(told(*history),
              ElementsAre("segment_alloc 2097152", "alloc 1000", "segment_alloc 20971520", "alloc 2097152",
                          "free_requested 1000", "free_completed 1000", "free_requested 2097152",
                          "free_completed 2097152", "alloc 500", "segment_free 20971520"));
  EXPECT_EQ(history->events()[8].address, reinterpret_cast<std::uint64_t>(small.data));
  stack->deallocate(again);
}

TEST(CachingSnapshot, ShowsABlockAndTheRestOfItsSegment) {
  AddressOnlySource source;
  const auto stack = caching_stack(source);
  const Block block = stack->allocate({.bytes = 4000000});
  const MemorySnapshot snapshot = take_snapshot(kCPU, *stack, nullptr);
  ASSERT_EQ(snapshot.segments.size(), 1u);
  const Segment& segment = snapshot.segments[0];
  EXPECT_EQ(segment.bytes, 20971520u);
  EXPECT_EQ(segment.allocated_bytes(), 4000256u);
  EXPECT_EQ(segment.active_bytes(), 4000256u);
  EXPECT_EQ(segment.requested_bytes(), 4000000u);
  EXPECT_TRUE(segment.is_large);
  EXPECT_FALSE(segment.is_expandable);
  ASSERT_EQ(segment.blocks.size(), 2u);
  EXPECT_EQ(segment.blocks[0].bytes, 4000256u);
  EXPECT_EQ(segment.blocks[0].state, BlockState::kActive);
  EXPECT_EQ(segment.blocks[1].address, segment.address + 4000256);
  EXPECT_EQ(segment.blocks[1].bytes, 16971264u);
  EXPECT_EQ(segment.blocks[1].state, BlockState::kFree);
  stack->deallocate(block);
}

TEST(CachingStats, HostAndPolicyAgreeOnWhatBothCount) {
  AddressOnlySource source;
  const auto stack = caching_stack(source);
  std::vector<Block> blocks;
  for (std::size_t i = 1; i < 200; ++i) blocks.push_back(stack->allocate({.bytes = i * 40009 % 5000000 + 1}));
  for (std::size_t i = 0; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
  const MemoryStats stats = stack->stats();
  const auto same = [](const Stat& host, const Stat& policy) {
    EXPECT_EQ(host.current, policy.current);
    EXPECT_EQ(host.peak, policy.peak);
    EXPECT_EQ(host.allocated, policy.allocated);
    EXPECT_EQ(host.freed, policy.freed);
  };
  ASSERT_TRUE(stats.policy.has_pools);
  same(stats.allocations, stats.policy.allocation[0]);
  same(stats.allocated_bytes, stats.policy.allocated_bytes[0]);
  same(stats.requested_bytes, stats.policy.requested_bytes[0]);
  same(stats.reserved_bytes, stats.policy.reserved_bytes[0]);
  same(stats.segments, stats.policy.segment[0]);
  for (std::size_t i = 1; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
  stack->check_invariants();
}

TEST(CachingPools, HaveKeysOfTheirOwnInTheStatistics) {
  AddressOnlySource source;
  const auto stack = caching_stack(source);
  MemPool pool(stack, {.no_split = true});
  Block block;
  {
    const UseMemPool scope(pool);
    block = stack->allocate({.bytes = 1000});
  }
  EXPECT_EQ(block.bytes, 2 * MiB);
  const MemoryStatsTable table = memory_stats_table(stack->stats());
  const std::string key = "reserved_bytes_by_private_pools.0_" + std::to_string(pool.id());
  EXPECT_EQ(table.at(key + ".all.current"), static_cast<std::int64_t>(2 * MiB));
  EXPECT_EQ(table.at(key + ".small_pool.peak"), static_cast<std::int64_t>(2 * MiB));
  EXPECT_EQ(table.at(key + ".large_pool.allocated"), 0);
  stack->deallocate(block);
}

TEST(CachingPools, KeepTheirMemoryApartUntilTheyGo) {
  AddressOnlySource source;
  const auto stack = caching_stack(source);
  auto pool = std::make_unique<MemPool>(stack);
  const Block outside = stack->allocate({.bytes = 1 * MiB});
  Block inside;
  {
    const UseMemPool scope(*pool);
    inside = stack->allocate({.bytes = 1 * MiB});
  }
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(4 * MiB)) << "a segment for each";
  stack->deallocate(inside);
  const Block second = stack->allocate({.bytes = 1 * MiB});
  EXPECT_NE(second.data, inside.data) << "what the pool caches is not for requests outside of it";
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(4 * MiB));
  pool.reset();
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(2 * MiB));
  stack->deallocate(outside);
  stack->deallocate(second);
}

// PyTorch's worked example W26, the limit set while the program runs instead of by an option.
TEST(CachingLimit, GarbageIsCollectedBelowTheHostsCeiling) {
  AddressOnlySource source({.capacity_bytes = 1000 * MiB});
  const auto stack = caching_stack(source, {{"garbage_collection_threshold", "0.6"}});
  const auto age_three_segments = [&] {
    std::vector<Block> blocks;
    for (const std::size_t size : {100, 110, 120}) blocks.push_back(stack->allocate({.bytes = size * MiB}));
    for (const Block& block : blocks) stack->deallocate(block);
    return stack->allocate({.bytes = 130 * MiB});
  };
  Block block = age_three_segments();
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(460 * MiB)) << "no limit, no garbage";
  stack->deallocate(block);
  stack->trim();
  stack->set_reserved_limit(500 * MiB);
  block = age_three_segments();
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(130 * MiB));
  EXPECT_EQ(stack->stats().policy.retries, 0);
  stack->deallocate(block);
  stack->trim();
  stack->set_reserved_limit(0);
  block = age_three_segments();
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(460 * MiB));
  stack->deallocate(block);
}

TEST(CachingLimit, TheLowerOfTheHostsCeilingAndTheOptionsCounts) {
  AddressOnlySource source({.capacity_bytes = 1000 * MiB});
  const auto stack = caching_stack(source, {{"per_process_memory_fraction", "0.5"}});
  EXPECT_THROW(stack->allocate({.bytes = 600 * MiB}), OutOfMemory);
  stack->set_reserved_limit(800 * MiB);
  EXPECT_THROW(stack->allocate({.bytes = 600 * MiB}), OutOfMemory);
  stack->set_reserved_limit(200 * MiB);
  EXPECT_THROW(stack->allocate({.bytes = 300 * MiB}), OutOfMemory);
  stack->set_reserved_limit(0);
  stack->deallocate(stack->allocate({.bytes = 500 * MiB}));
}

TEST(CachingLimit, TheHostsCeilingActsLikeAFullDevice) {
  AddressOnlySource source;
  const auto stack = caching_stack(source);
  stack->set_reserved_limit(100 * MiB);
  stack->deallocate(stack->allocate({.bytes = 60 * MiB}));
  stack->deallocate(stack->allocate({.bytes = 80 * MiB}));
  EXPECT_EQ(stack->stats().policy.retries, 1) << "flushed and retried";
  EXPECT_THROW(stack->allocate({.bytes = 101 * MiB}), OutOfMemory);
  EXPECT_LE(stack->stats().reserved_bytes.peak, static_cast<std::int64_t>(100 * MiB));
  EXPECT_EQ(stack->stats().ooms, 1);
}

}  // namespace
}  // namespace tenon
