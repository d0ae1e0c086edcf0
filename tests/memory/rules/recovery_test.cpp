// How a stack is put together, and what it does where memory runs out: whom it asks, how often, and what it counts.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Fails so many requests in its own words, says that it gave back what it is told to, and writes down what it is
/// asked.
class Scripted final : public Allocator {
 public:
  explicit Scripted(MemorySource& source) : source_(source) {}
  ~Scripted() override {
    if (data_ != nullptr) source_.release(data_, MiB);
  }
  Block allocate(const Request& request) override {
    calls.push_back(fmt::format("allocate {}", request.bytes));
    if (failures > 0) {
      --failures;
      throw OutOfMemory(words);
    }
    if (data_ == nullptr) data_ = source_.acquire(MiB);
    return {.data = data_, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  std::size_t trim(std::size_t keep_bytes) override {
    calls.push_back(fmt::format("trim {}", keep_bytes));
    return gives;
  }
  void report(PolicyStats& stats) const override {
    stats.has_pools = has_pools;
    stats.retries = retries;
  }
  void limit_changed(std::size_t bytes) override { calls.push_back(fmt::format("limit {}", bytes)); }

  std::vector<std::string> calls;
  OutOfMemoryInfo words;
  int failures = 0;
  std::size_t gives = 0;
  std::int64_t retries = 0;
  bool has_pools = false;

 private:
  MemorySource& source_;
  void* data_ = nullptr;
};

struct ScriptedStack {
  explicit ScriptedStack(const std::vector<test::LayerText>& layers = {}) {
    StackConfig config;
    config.policy = {.name = "scripted",
                     .create = [this](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                       auto made = std::make_unique<Scripted>(context.source);
                       policy = made.get();
                       return made;
                     }};
    for (const test::LayerText& text : layers) config.layers.push_back(test::layer(text));
    stack = AllocatorStack::make(source, config);
  }
  /// One block of a few bytes makes the policy take a mebibyte, nearly all of which is cached.
  std::vector<std::string> calls_of_a_request() {
    policy->calls.clear();
    try {
      stack->deallocate(stack->allocate({.bytes = 8}));
      policy->calls.emplace_back("served");
    } catch (const OutOfMemory&) {
      policy->calls.emplace_back("failed");
    }
    return policy->calls;
  }
  AddressOnlySource source{{.capacity_bytes = 4 * MiB}};
  Scripted* policy = nullptr;
  std::shared_ptr<AllocatorStack> stack;
};

TEST(Recovery, EmptiesTheCacheOnceAndOnlyWhereThatGivesSomethingBack) {
  ScriptedStack one;
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "failed")) << "nothing is reserved";
  EXPECT_EQ(one.stack->stats().ooms, 1);
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "served"));
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "trim 0", "failed")) << "nothing came back";
  one.policy->gives = 1;
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "trim 0", "allocate 8", "served"));
  EXPECT_EQ(one.stack->stats().ooms, 2);
  EXPECT_EQ(one.stack->stats().policy.retries, 1);
  one.policy->failures = 2;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "trim 0", "allocate 8", "failed"));
  EXPECT_EQ(one.stack->stats().ooms, 3);
  EXPECT_EQ(one.stack->stats().policy.retries, 2);
  one.policy->has_pools = true;
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "failed")) << "it has done what it could";
}

TEST(Recovery, LetsWhatALayerDecidedStayDecided) {
  for (const OutOfMemoryInfo& words : {OutOfMemoryInfo{.hint = "a layer's words"}, OutOfMemoryInfo{.limit_bytes = 5}}) {
    ScriptedStack one;
    one.calls_of_a_request();
    one.policy->gives = 1;
    one.policy->failures = 1;
    one.policy->words = words;
    EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "failed"));
  }
}

TEST(Recovery, OfWhatThePolicyHasReservedOnlyWhatIsNotHandedOutIsCached) {
  ScriptedStack one;
  const Block all = one.stack->allocate({.bytes = MiB});
  one.policy->gives = 1;
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "failed"));
  one.stack->deallocate(all);
  const Block nearly = one.stack->allocate({.bytes = MiB - 1});
  one.policy->failures = 1;
  EXPECT_THAT(one.calls_of_a_request(), ElementsAre("allocate 8", "trim 0", "allocate 8", "served"));
  one.stack->deallocate(nearly);
}

TEST(Retries, AreThePolicysAndTheHostsOrWhatTheDeviceSaw) {
  /// Takes a segment for each block; refused, gives back what is cached and asks again.
  class Retrying final : public Allocator {
   public:
    explicit Retrying(MemorySource& source) : source_(source) {}
    Block allocate(const Request& request) override {
      void* data = source_.acquire(request.bytes);
      if (data == nullptr && cached_ != nullptr) {
        source_.release(std::exchange(cached_, nullptr), cached_bytes_);
        data = source_.acquire(request.bytes);
      }
      if (data == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
      return {.data = data, .bytes = request.bytes, .request = request};
    }
    void deallocate(const Block& block, StreamRef) noexcept override {
      cached_ = block.data;
      cached_bytes_ = block.bytes;
    }
    void report(PolicyStats& stats) const override {
      stats.retries = says;
      stats.has_pools = has_pools;
    }
    std::int64_t says = 0;
    bool has_pools = false;

   private:
    MemorySource& source_;
    void* cached_ = nullptr;
    std::size_t cached_bytes_ = 0;
  };
  AddressOnlySource source({.capacity_bytes = 4 * MiB});
  StackConfig config;
  config.policy = {.name = "retrying", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Retrying>(context.source);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  auto& policy = static_cast<Retrying&>(*stack->outermost());
  stack->deallocate(stack->allocate({.bytes = 3 * MiB}));
  stack->deallocate(stack->allocate({.bytes = 2 * MiB}));
  EXPECT_EQ(stack->stats().policy.retries, 1) << "it counts none itself";
  policy.says = 5;
  EXPECT_EQ(stack->stats().policy.retries, 5);
  policy.says = 0;
  policy.has_pools = true;
  EXPECT_EQ(stack->stats().policy.retries, 0) << "one that counts is believed";
}

TEST(OomObservers, RunInTheOrderOfTheirComingUntilTheyAreTakenAway) {
  ScriptedStack one;
  std::vector<std::string> told;
  std::vector<std::uint64_t> ids;
  for (const char* name : {"first", "second", "third"})
    ids.push_back(add_oom_observer([&told, name](const OutOfMemoryInfo& info) {
      told.push_back(fmt::format("{} of {}", name, info.requested_bytes));
      if (std::string(name) == "first") throw Error("an observer's own");
    }));
  const auto told_of_a_failure = [&] {
    told.clear();
    one.policy->failures = 1;
    one.calls_of_a_request();
    return told;
  };
  EXPECT_THAT(told_of_a_failure(), ElementsAre("first of 8", "second of 8", "third of 8"));
  remove_oom_observer(ids[1]);
  EXPECT_THAT(told_of_a_failure(), ElementsAre("first of 8", "third of 8"));
  remove_oom_observer(ids[1]);
  remove_oom_observer(ids[0]);
  EXPECT_THAT(told_of_a_failure(), ElementsAre("third of 8"));
  remove_oom_observer(ids[2]);
  EXPECT_THAT(told_of_a_failure(), IsEmpty());
}

// ---- how a stack is built

TEST(StackBuilding, TellsThePolicyOfALimitThatALayerHasSet) {
  EXPECT_THAT(ScriptedStack().policy->calls, IsEmpty());
  EXPECT_THAT(ScriptedStack({{"limit", {{"bytes", "3MiB"}}}}).policy->calls, ElementsAre("limit 3145728"));
  EXPECT_THAT(ScriptedStack({{"limit", {{"bytes", "3MiB"}}}, {"limit", {{"bytes", "2MiB"}}}}).policy->calls,
              ElementsAre("limit 2097152"));
  EXPECT_THAT(ScriptedStack({{"limit", {{"bytes", "3MiB"}, {"of", "allocated"}}}}).policy->calls, IsEmpty());
  ScriptedStack one({{"limit", {{"bytes", "3MiB"}}}});
  one.policy->calls.clear();
  EXPECT_EQ(one.stack->set_reserved_limit(2 * MiB), 0u);
  EXPECT_EQ(one.stack->set_reserved_limit(9 * MiB), 2 * MiB);
  EXPECT_EQ(one.stack->set_reserved_limit(0), 9 * MiB);
  EXPECT_THAT(one.policy->calls, ElementsAre("limit 2097152", "limit 3145728", "limit 3145728"));
}

TEST(StackBuilding, PutsTheFirstLayerOutermostAndItsHookNextToTheDevice) {
  const ScriptedStack one({{"inject", {{"call", "acquire"}, {"min_size", "1B"}}},
                           {"stats", {}},
                           {"inject", {{"call", "acquire"}, {"nth", "1"}}}});
  std::vector<std::string> names;
  for (const LayerReport& report : one.stack->layer_reports()) names.push_back(report.layer);
  EXPECT_THAT(names, ElementsAre("inject", "stats", "inject"));
  const auto counted = [&] {
    std::vector<std::string> calls;
    for (const LayerReport& report : one.stack->layer_reports())
      for (const auto& [key, value] : report.entries)
        if (key == "calls" || key == "injected_failures") calls.push_back(value);
    return calls;
  };
  // The policy's call comes to the last layer's hook first, which fails it.
  const Block nothing = one.stack->allocate({.bytes = 8});
  EXPECT_EQ(nothing.data, nullptr);
  EXPECT_THAT(counted(), ElementsAre("0", "0", "1", "1"));
  const Block block = one.stack->allocate({.bytes = 8});
  EXPECT_NE(block.data, nullptr);
  EXPECT_THAT(counted(), ElementsAre("1", "0", "2", "1"));
  one.stack->deallocate(block);
}

}  // namespace
}  // namespace tenon
