// Private pools of the caching policy: who gets memory from them, and when it goes back.
#include <caching/caching_allocator.h>
#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

using caching::CachingAllocator;

struct PoolTrial {
  AddressOnlySource device;
  CachingAllocator policy{device, {}};
  Block get(std::size_t bytes) {
    const Block block = policy.allocate({.bytes = bytes});
    policy.check_invariants();
    return block;
  }
  void put(const Block& block) {
    policy.deallocate(block, block.request.stream);
    policy.check_invariants();
  }
};

TEST(PrivatePools, ShareNothingWithTheDefaultPool) {
  PoolTrial trial;
  const Block outside = trial.get(30 * MiB);
  trial.put(outside);
  trial.policy.begin_pool(1, {});
  const Block inside = trial.get(30 * MiB);
  trial.policy.end_pool(1);
  EXPECT_NE(inside.data, outside.data);
  trial.put(inside);
  const Block again = trial.get(30 * MiB);
  EXPECT_EQ(again.data, outside.data);
  trial.put(again);
}

TEST(PrivatePools, BelongToTheThreadThatOpenedThem) {
  PoolTrial trial;
  trial.policy.begin_pool(1, {});
  const Block inside = trial.get(30 * MiB);
  trial.put(inside);
  Block other;
  std::thread([&] { other = trial.get(30 * MiB); }).join();
  EXPECT_NE(other.data, inside.data);
  trial.policy.end_pool(1);
  trial.put(other);
}

TEST(PrivatePools, TheInnermostScopeCounts) {
  PoolTrial trial;
  trial.policy.begin_pool(1, {});
  const Block one = trial.get(30 * MiB);
  trial.put(one);
  trial.policy.begin_pool(2, {});
  const Block two = trial.get(30 * MiB);
  EXPECT_NE(two.data, one.data);
  trial.policy.end_pool(2);
  EXPECT_EQ(trial.get(30 * MiB).data, one.data);
  trial.policy.end_pool(1);
}

TEST(PrivatePools, KeepTheirMemoryUntilTheyAreReleased) {
  PoolTrial trial;
  trial.policy.begin_pool(1, {});
  const Block block = trial.get(30 * MiB);
  const Block longer = trial.get(1000);
  trial.policy.end_pool(1);
  trial.put(block);
  trial.policy.trim(0);
  EXPECT_EQ(trial.device.used_bytes(), 32 * MiB);
  trial.policy.release_pool(1);
  EXPECT_EQ(trial.device.used_bytes(), 2 * MiB);  // what is still out
  trial.put(longer);
  trial.policy.trim(0);
  EXPECT_EQ(trial.device.used_bytes(), 0u);
}

TEST(PrivatePools, WithoutSplitsHandTheirSegmentsOutWhole) {
  PoolTrial trial;
  trial.policy.begin_pool(1, {});
  trial.policy.configure_pool(1, {.no_split = true});
  const Block small = trial.get(1000), large = trial.get(3 * MiB), own = trial.get(11 * MiB);
  EXPECT_EQ(small.bytes, 2 * MiB);
  EXPECT_EQ(large.bytes, 20 * MiB);
  EXPECT_EQ(own.bytes, 12 * MiB);
  trial.put(large);
  const Block again = trial.get(2 * MiB);
  EXPECT_EQ(again.data, large.data);
  EXPECT_EQ(again.bytes, 20 * MiB);
  trial.policy.end_pool(1);
  EXPECT_EQ(trial.get(1000).bytes, 1024u) << "outside nothing has changed";
  trial.put(again);
  trial.policy.release_pool(1);
  trial.put(small);
  trial.put(own);
}

// What fits into a pool's cache is handed out whole or split as in that pool, and goes back there.
TEST(PrivatePools, LendTheirCacheBeforeOthersRunOutOfMemory) {
  for (const bool lends : {false, true}) {
    AddressOnlySource device({.capacity_bytes = 100 * MiB});
    CachingAllocator policy(device, {});
    policy.begin_pool(1, {});
    policy.configure_pool(1, {.use_on_oom = lends});
    const Block inside = policy.allocate({.bytes = 60 * MiB});
    policy.end_pool(1);
    policy.deallocate(inside, {});
    if (!lends) {
      EXPECT_THROW(policy.allocate({.bytes = 50 * MiB}), OutOfMemory);
      continue;
    }
    const Block lent = policy.allocate({.bytes = 50 * MiB});
    EXPECT_EQ(lent.data, inside.data);
    PolicyStats stats;
    policy.report(stats);
    EXPECT_EQ(stats.retries, 0) << "before anything is flushed";
    EXPECT_THROW(policy.allocate({.bytes = 50 * MiB, .stream = {1}}), OutOfMemory) << "another stream gets nothing";
    policy.deallocate(lent, {});
    policy.check_invariants();
    policy.trim(0);
    EXPECT_EQ(device.used_bytes(), 60 * MiB) << "it went back to the pool";
    policy.release_pool(1);
    EXPECT_EQ(device.used_bytes(), 0u);
  }
}

TEST(PrivatePools, CountTheirReservedBytes) {
  PoolTrial trial;
  const Block outside = trial.get(30 * MiB);
  trial.policy.begin_pool(5, {});
  const Block small = trial.get(1000), large = trial.get(30 * MiB);
  trial.policy.end_pool(5);
  PolicyStats stats;
  trial.policy.report(stats);
  ASSERT_EQ(stats.private_pools.size(), 1u);
  EXPECT_EQ(stats.private_pools[0].pool, 5u);
  EXPECT_EQ(stats.private_pools[0].reserved_bytes[0].current, static_cast<std::int64_t>(32 * MiB));
  EXPECT_EQ(stats.private_pools[0].reserved_bytes[1].current, static_cast<std::int64_t>(2 * MiB));
  for (const Block& block : {outside, small, large}) trial.put(block);
  trial.policy.release_pool(5);
  PolicyStats after;
  trial.policy.report(after);
  EXPECT_TRUE(after.private_pools.empty());
}

TEST(PrivatePools, MistakesAreNamed) {
  PoolTrial trial;
  EXPECT_THROW(trial.policy.configure_pool(9, {}), Error);
  EXPECT_THROW(trial.policy.begin_pool(0, {}), Error);
  EXPECT_THROW(trial.policy.end_pool(5), Error);
}

}  // namespace
}  // namespace tenon
