// Rules of layers that only show in what they ask of the policy and of the device.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

namespace tenon {
namespace {

using test::make_stack;

TEST(LayerRules, TheLimitGivesBackABlockThatRoundingMadeTooLarge) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"limit", {{"bytes", "1000"}, {"of", "allocated"}}}});
  EXPECT_THROW(stack->allocate({.bytes = 900}), OutOfMemory);  // the policy rounds to 1024
  stack->trim(0);
  EXPECT_EQ(source.used_bytes(), 0u);
}

TEST(LayerRules, TheGuardWaitsOnceForEachStreamThatUsedTheBlock) {
  HostMemorySource source({});
  const auto stack = make_stack(source, {{"guard", {}}});
  const auto waits_of_freeing = [&](StreamRef last_use) {
    const Block block = stack->allocate({.bytes = 100});
    const std::int64_t before = stack->stats().device_synchronizations + stack->stats().device_waits;
    stack->deallocate(block, last_use);
    return stack->stats().device_synchronizations + stack->stats().device_waits - before;
  };
  EXPECT_EQ(waits_of_freeing({0}), 1);
  EXPECT_EQ(waits_of_freeing({3}), 2);
}

}  // namespace
}  // namespace tenon
