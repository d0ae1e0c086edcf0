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
  const auto waits_of_freeing = [&](StreamRef last_use, std::initializer_list<StreamRef> users = {}) {
    const Block block = stack->allocate({.bytes = 100});
    for (const StreamRef user : users) stack->record_use(block, user);
    const std::int64_t before = stack->stats().device_synchronizations + stack->stats().device_waits;
    stack->deallocate(block, last_use);
    return stack->stats().device_synchronizations + stack->stats().device_waits - before;
  };
  EXPECT_EQ(waits_of_freeing({0}), 1);
  EXPECT_EQ(waits_of_freeing({3}), 2);
  EXPECT_EQ(waits_of_freeing({0}, {{5}}), 2);
  EXPECT_EQ(waits_of_freeing({3}, {{5}, {6}}), 4);
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

TEST(LayerRules, StatsBeginAnewWithTheProgramsOwn) {
  AddressOnlySource source({.capacity_bytes = 4 * KiB});
  const auto stack = make_stack(source, {{"stats", {}}});
  EXPECT_THROW(stack->allocate({.bytes = 8 * KiB}), OutOfMemory);
  stack->deallocate(stack->allocate({.bytes = 1000}));
  EXPECT_EQ(test::reported(*stack, "stats", "failures"), "1");
  stack->reset_accumulated_stats();
  for (const char* sum : {"failures", "allocations", "frees", "total_requested_bytes"})
    EXPECT_EQ(test::reported(*stack, "stats", sum), "0") << sum;
  EXPECT_EQ(test::reported(*stack, "stats", "sizes_from_power_of_two"), "");
  EXPECT_EQ(test::reported(*stack, "stats", "peak_requested_bytes"), "1000");
  stack->reset_peak_stats();
  EXPECT_EQ(test::reported(*stack, "stats", "peak_requested_bytes"), "0");
}

TEST(LayerRules, ARoutesBothAllocatorsAreToldOfALimit) {
  static std::vector<std::pair<std::string, std::size_t>> told;
  told.clear();
  struct Told final : Allocator {
    Told(std::string its_name, MemorySource& its_source) : name(std::move(its_name)), source(its_source) {}
    Block allocate(const Request& request) override {
      return {.data = source.acquire(request.bytes), .bytes = request.bytes, .request = request};
    }
    void deallocate(const Block& block, StreamRef) noexcept override { source.release(block.data, block.bytes); }
    void limit_changed(std::size_t limit_bytes) override { told.emplace_back(name, limit_bytes); }
    const std::string name;
    MemorySource& source;
  };
  const auto named = [](const std::string& name) {
    return AllocatorInfo{.name = name, .create = [name](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                           return std::make_unique<Told>(name, context.source);
                         }};
  };
  static AllocatorInfo other;
  other = named("other");
  set_allocator_resolver([](std::string_view) { return ResolvedAllocator{other, {}}; });
  AddressOnlySource source;
  LayerConfig route{"route", Options(find_layer("route").options)};
  route.options.set_text("to", "other");
  StackConfig config;
  config.policy = named("one");
  config.layers.push_back(route);
  const auto stack = AllocatorStack::make(source, config);
  told.clear();
  stack->set_reserved_limit(5 * MiB);
  EXPECT_THAT(told, ::testing::UnorderedElementsAre(std::pair("one", 5 * MiB), std::pair("other", 5 * MiB)));
  set_allocator_resolver(nullptr);
}

TEST(LayerRules, OfSeveralLimitsTheLowestIsReported) {
  const auto reported_limit = [](std::size_t of_allocated, std::size_t of_reserved) {
    AddressOnlySource source;
    const auto stack = make_stack(source, {{"limit", {{"bytes", std::to_string(of_allocated)}, {"of", "allocated"}}},
                                           {"limit", {{"bytes", std::to_string(of_reserved)}}}});
    try {
      stack->allocate({.bytes = 8 * MiB});
    } catch (const OutOfMemory& error) {
      return error.info().limit_bytes;
    }
    return std::size_t{0};
  };
  EXPECT_EQ(reported_limit(2 * MiB, 3 * MiB), 2 * MiB);
  EXPECT_EQ(reported_limit(3 * MiB, 2 * MiB), 2 * MiB);
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
