// Rules of layers, and of the stack itself, that only show in what they ask of the policy and of the device.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

namespace tenon {
namespace {

using test::make_stack;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(LayerRules, ALeakHasNoStackUnlessStacksAreAskedFor) {
  AddressOnlySource source;
  auto stack = make_stack(source, {{"track", {}}});
  stack->allocate({.bytes = 777});
  ::testing::internal::CaptureStderr();
  stack.reset();
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("777 bytes"));
  EXPECT_THAT(text, Not(HasSubstr("TestBody")));
}

/// Remembers where it handed a block out, and which one it was told of.
class Rememberer final : public Allocator {
 public:
  explicit Rememberer(MemorySource& source) : source_(source) {}
  Block allocate(const Request& request) override {
    return {.data = given = source_.acquire(request.bytes), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }
  void record_use(const Block& block, StreamRef stream) override { used = block.data, used_on = stream; }

  void* given = nullptr;
  void* used = nullptr;
  StreamRef used_on{};

 private:
  MemorySource& source_;
};

TEST(AllocatorStack, TellsThePolicyOfAUseByTheBlockThatThePolicyGave) {
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "rememberer", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Rememberer>(context.source);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  const auto& policy = static_cast<Rememberer&>(*stack->outermost());
  const Block before = stack->allocate({.bytes = 512});  // so that the next one does not happen to be aligned
  const Block block = stack->allocate({.bytes = 1000, .alignment = 64 * KiB});
  stack->record_use(block, {3});
  EXPECT_EQ(policy.used, policy.given);
  EXPECT_EQ(policy.used_on.id, 3u);
  stack->deallocate(block);
  stack->deallocate(before);
}

}  // namespace
}  // namespace tenon
