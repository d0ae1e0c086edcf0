// Threads: churn, frees from elsewhere, threads that end, and the figures after all of it.
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <mutex>
#include <random>
#include <thread>

namespace tenon {
namespace {

class Concurrency : public ::testing::TestWithParam<bool> {};

TEST_P(Concurrency, ChurnOnManyThreadsEndsWithTheBooksBalanced) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source, {}, {.safe = GetParam()});
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({.max_entries = 1000, .stacks = StackContext::kAll, .stack_every = 100});
  std::mutex mutex;
  std::vector<Block> handed_over;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(1000 + t);
      std::vector<Block> live;
      for (int step = 0; step < 1500; ++step) {
        if (live.empty() || random() % 2 == 0) {
          live.push_back(stack->allocate({.bytes = 1 + random() % 4000,
                                          .stream = {static_cast<std::uint64_t>(t)},
                                          .purpose = static_cast<Purpose>(random() % kPurposeCount)}));
        } else if (random() % 3 == 0) {
          std::lock_guard lock(mutex);
          if (handed_over.empty() || random() % 2 == 0) {
            handed_over.push_back(live.back());
            live.pop_back();
          } else {
            stack->deallocate(handed_over.back());  // another thread's
            handed_over.pop_back();
          }
        } else {
          stack->deallocate(live.back());
          live.pop_back();
        }
        if (step % 200 == 0) {
          const MemoryStats stats = stack->stats();
          EXPECT_LE(stats.requested_bytes.current, stats.allocated_bytes.current);
          EXPECT_LE(stats.allocated_bytes.current, stats.allocated_bytes.peak);
          stack->trim();
        }
      }
      std::lock_guard lock(mutex);
      handed_over.insert(handed_over.end(), live.begin(), live.end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Block& block : handed_over) stack->deallocate(block);
  const MemoryStats stats = stack->stats();
  EXPECT_EQ(stats.allocated_bytes.current, 0);
  EXPECT_EQ(stats.requested_bytes.current, 0);
  EXPECT_EQ(stats.allocations.current, 0);
  EXPECT_EQ(stats.allocations.allocated, stats.allocations.freed);
  for (const Stat& purpose : stats.requested_by_purpose) EXPECT_EQ(purpose.current, 0);
  stack->trim();
  EXPECT_EQ(stack->stats().reserved_bytes.current, 0);
  stack->check_invariants();
  EXPECT_EQ(source.used_bytes(), 0u);
}

TEST_P(Concurrency, TheReservedLimitHoldsWhenThreadsRaceForTheLastOfIt) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source, {{"limit", {{"bytes", "1MiB"}}}}, {.safe = GetParam()});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Block> live;
      for (int step = 0; step < 400; ++step) {
        try {
          live.push_back(stack->allocate({.bytes = 64 * KiB, .stream = {static_cast<std::uint64_t>(t)}}));
        } catch (const OutOfMemory&) {
          for (const Block& block : live) stack->deallocate(block);
          live.clear();
        }
      }
      for (const Block& block : live) stack->deallocate(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(stack->stats().reserved_bytes.peak, static_cast<std::int64_t>(MiB));
  EXPECT_EQ(stack->stats().allocated_bytes.current, 0);
}

INSTANTIATE_TEST_SUITE_P(, Concurrency, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ThreadSafePolicy" : "SerialisedPolicy"; });

}  // namespace
}  // namespace tenon
