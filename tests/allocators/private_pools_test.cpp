// Private pools of the caching policy: who gets memory from them, and when it goes back.
#include <caching/policy.h>
#include <tenon/core/error.h>
#include <tenon/memory/address_only_source.h>

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

using caching::Policy;

struct World {
  AddressOnlySource device;
  Policy policy{device, {}};
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
  World world;
  const Block outside = world.get(30 * MiB);
  world.put(outside);
  world.policy.begin_pool(1, {});
  const Block inside = world.get(30 * MiB);
  world.policy.end_pool(1);
  EXPECT_NE(inside.data, outside.data);
  world.put(inside);
  const Block again = world.get(30 * MiB);
  EXPECT_EQ(again.data, outside.data);
  world.put(again);
}

TEST(PrivatePools, BelongToTheThreadThatOpenedThem) {
  World world;
  world.policy.begin_pool(1, {});
  const Block inside = world.get(30 * MiB);
  world.put(inside);
  Block other;
  std::thread([&] { other = world.get(30 * MiB); }).join();
  EXPECT_NE(other.data, inside.data);
  world.policy.end_pool(1);
  world.put(other);
}

TEST(PrivatePools, TheInnermostScopeCounts) {
  World world;
  world.policy.begin_pool(1, {});
  const Block one = world.get(30 * MiB);
  world.put(one);
  world.policy.begin_pool(2, {});
  const Block two = world.get(30 * MiB);
  EXPECT_NE(two.data, one.data);
  world.policy.end_pool(2);
  EXPECT_EQ(world.get(30 * MiB).data, one.data);
  world.policy.end_pool(1);
}

TEST(PrivatePools, KeepTheirMemoryUntilTheyAreReleased) {
  World world;
  world.policy.begin_pool(1, {});
  const Block block = world.get(30 * MiB);
  const Block longer = world.get(1000);
  world.policy.end_pool(1);
  world.put(block);
  world.policy.trim(0);
  EXPECT_EQ(world.device.used_bytes(), 32 * MiB);
  world.policy.release_pool(1);
  EXPECT_EQ(world.device.used_bytes(), 2 * MiB);  // what is still out
  world.put(longer);
  world.policy.trim(0);
  EXPECT_EQ(world.device.used_bytes(), 0u);
}

TEST(PrivatePools, MistakesAreNamed) {
  World world;
  EXPECT_THROW(world.policy.begin_pool(0, {}), Error);
  EXPECT_THROW(world.policy.end_pool(5), Error);
}

}  // namespace
}  // namespace tenon
