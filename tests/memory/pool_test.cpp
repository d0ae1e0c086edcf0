// Private pools: which requests a scope routes.
#include <tenon/memory/pool.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <map>
#include <optional>
#include <thread>

namespace tenon {
namespace {

/// Remembers which pool each request was for, and how often each pool is open.
class Pools final : public Allocator {
 public:
  explicit Pools(MemorySource& source) : source_(source) {}
  Block allocate(const Request& request) override {
    last_pool = request.pool;
    return {.data = source_.acquire(request.bytes), .bytes = request.bytes};
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    last_freed_pool = block.request.pool;
    source_.release(block.data, block.bytes);
  }
  void begin_pool(std::uint64_t pool, StreamRef) override { ++uses[pool]; }
  void end_pool(std::uint64_t pool) override { --uses[pool]; }
  void release_pool(std::uint64_t pool) override { uses.erase(pool); }
  void configure_pool(std::uint64_t, const PoolOptions& options) override { configured = options; }

  std::map<std::uint64_t, int> uses;
  std::uint64_t last_pool = 0, last_freed_pool = 0;
  std::optional<PoolOptions> configured;

 private:
  MemorySource& source_;
};

struct PoolTest : ::testing::Test {
  PoolTest() {
    StackConfig config;
    config.policy = {.name = "pools", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                       return std::make_unique<Pools>(context.source);
                     }};
    stack = AllocatorStack::make(source, config);
  }
  Pools& policy() { return static_cast<Pools&>(*stack->outermost()); }
  std::uint64_t pool_of_a_request() {
    stack->deallocate(stack->allocate({.bytes = 512}));
    return policy().last_pool;
  }

  AddressOnlySource source;
  std::shared_ptr<AllocatorStack> stack;
};

TEST_F(PoolTest, ScopesRouteRequestsAndNest) {
  MemPool first(stack), second(stack);
  EXPECT_NE(first.id(), second.id());
  EXPECT_EQ(pool_of_a_request(), 0u);
  {
    const UseMemPool outer(first);
    EXPECT_EQ(pool_of_a_request(), first.id());
    EXPECT_EQ(policy().last_freed_pool, first.id());
    {
      const UseMemPool inner(second);
      EXPECT_EQ(pool_of_a_request(), second.id());
    }
    EXPECT_EQ(pool_of_a_request(), first.id());
    EXPECT_EQ(policy().uses[first.id()], 1);
  }
  EXPECT_EQ(pool_of_a_request(), 0u);
  EXPECT_EQ(policy().uses[first.id()], 0);
}

TEST_F(PoolTest, BelongToTheThreadThatOpenedThem) {
  MemPool pool(stack);
  const UseMemPool scope(pool);
  std::uint64_t elsewhere = 99;
  std::thread([&] { elsewhere = pool_of_a_request(); }).join();
  EXPECT_EQ(elsewhere, 0u);
  EXPECT_EQ(pool_of_a_request(), pool.id());
}

TEST_F(PoolTest, AreNoBusinessOfAnotherAllocator) {
  const auto other = test::make_stack(source);
  MemPool pool(stack);
  const UseMemPool scope(pool);
  const Block block = other->allocate({.bytes = 512});
  EXPECT_EQ(block.request.pool, 0u);
  other->deallocate(block);
}

TEST_F(PoolTest, AreGivenUpWithTheirOwner) {
  auto pool = std::make_unique<MemPool>(stack);
  const std::uint64_t id = pool->id();
  EXPECT_TRUE(policy().uses.contains(id));
  pool.reset();
  EXPECT_FALSE(policy().uses.contains(id));
}

TEST_F(PoolTest, AreConfiguredWhereOneOfTheirOptionsIsGiven) {
  for (const bool use_on_oom : {false, true}) {
    for (const bool no_split : {false, true}) {
      policy().configured.reset();
      const MemPool pool(stack, {.use_on_oom = use_on_oom, .no_split = no_split});
      ASSERT_EQ(policy().configured.has_value(), use_on_oom || no_split);
      if (!policy().configured) continue;
      EXPECT_EQ(policy().configured->use_on_oom, use_on_oom);
      EXPECT_EQ(policy().configured->no_split, no_split);
    }
  }
}

TEST_F(PoolTest, AreRefusedByAPolicyWithoutThem) { EXPECT_THROW(MemPool pool(test::make_stack(source)), Error); }

}  // namespace
}  // namespace tenon
