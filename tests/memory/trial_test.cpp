// A stack that a policy is tried in: the same figures, and nobody else is involved.
#include "memory/test_policy.h"

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/memory/stack/oom.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

struct CountingListener final : SourceListener {
  void acquired(const void*, std::size_t bytes) noexcept override { acquired_bytes += bytes; }
  void releasing(const void*, std::size_t) noexcept override {}
  void mapped(const void*, std::size_t, Physical, std::size_t) noexcept override {}
  void unmapped(const void*, std::size_t) noexcept override {}
  std::size_t acquired_bytes = 0;
};

TEST(Trial, UsageIsWhatStatsSay) {
  AddressOnlySource source;
  const auto stack = AllocatorStack::make_trial(source, {.policy = simple_policy()}, {});
  const Block small = stack->allocate({.bytes = 100});
  const Block large = stack->allocate({.bytes = 5 * MiB});
  stack->deallocate(small);
  const Usage usage = stack->usage();
  const MemoryStats stats = stack->stats();
  EXPECT_EQ(usage.requested_bytes, 5 * MiB);
  EXPECT_EQ(static_cast<std::int64_t>(usage.requested_bytes), stats.requested_bytes.current);
  EXPECT_EQ(static_cast<std::int64_t>(usage.allocated_bytes), stats.allocated_bytes.current);
  EXPECT_EQ(static_cast<std::int64_t>(usage.reserved_bytes), stats.reserved_bytes.current);
  EXPECT_EQ(usage.peak_reserved_bytes, 5 * MiB + 512);
  stack->deallocate(large);
}

TEST(Trial, LeavesThePolicysCacheAloneAndTellsNobodyWhenMemoryRunsOut) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = AllocatorStack::make_trial(source, {.policy = simple_policy()}, {});
  stack->deallocate(stack->allocate({.bytes = 6 * MiB}));
  int told = 0;
  const std::uint64_t observer = add_oom_observer([&](const OutOfMemoryInfo&) { ++told; });
  EXPECT_THROW(stack->allocate({.bytes = 8 * MiB}), OutOfMemory) << "in service the 6 MiB would go back first";
  remove_oom_observer(observer);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(stack->stats().ooms, 1);
  EXPECT_EQ(stack->usage().reserved_bytes, 6 * MiB);
}

TEST(Trial, ItsListenerHearsOfThePolicysCallsUntilTheStackGoes) {
  AddressOnlySource source;
  CountingListener listener;
  {
    const auto stack = AllocatorStack::make_trial(source, {.policy = simple_policy()}, &listener);
    stack->deallocate(stack->allocate({.bytes = 1 * MiB}));
  }
  EXPECT_EQ(listener.acquired_bytes, 1 * MiB);
}

}  // namespace
}  // namespace tenon::test
