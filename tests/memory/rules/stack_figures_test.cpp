// What a stack says of itself: what it finds wrong with its figures, how they are reset, by label, and of private
// pools.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/pool.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

// ---- figures

/// Gives `short_by` bytes less than it is asked for, and counts how its figures are reset.
class ShortPolicy final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    if (is_empty) throw OutOfMemory({.requested_bytes = request.bytes});
    return {.data = this, .bytes = request.bytes - short_by, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void reset_stats(bool peaks, bool sums) override { resets.push_back(fmt::format("{} {}", peaks, sums)); }
  std::size_t short_by = 0;
  bool is_empty = false;
  std::vector<std::string> resets;
};

struct ShortStack {
  ShortStack() {
    StackConfig config;
    config.policy = {.name = "short", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                       return std::make_unique<ShortPolicy>();
                     }};
    stack = AllocatorStack::make(source, config);
  }
  ShortPolicy& policy() const { return static_cast<ShortPolicy&>(*stack->outermost()); }
  std::string broken() const {
    try {
      stack->check_invariants();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  AddressOnlySource source;
  std::shared_ptr<AllocatorStack> stack;
};

TEST(StackInvariants, AreThatNoFigureIsBelowZeroAndBlocksAreAsLargeAsTheirRequests) {
  const auto after_freeing = [](const auto& change) {
    const ShortStack one;
    Block block = one.stack->allocate({.bytes = 500});
    EXPECT_EQ(one.broken(), "");
    change(block);
    one.stack->deallocate(block);
    return one.broken();
  };
  EXPECT_EQ(after_freeing([](Block&) {}), "");
  EXPECT_EQ(after_freeing([](Block& block) { block.request.bytes = 501; }),
            "more was freed than allocated: 0 blocks, 0 bytes are live by count");
  EXPECT_EQ(after_freeing([](Block& block) { block.bytes = 501; }),
            "more was freed than allocated: 0 blocks, -1 bytes are live by count");
  EXPECT_EQ(after_freeing([](Block& block) { block.request.bytes = 499; }),
            "blocks are smaller than asked for: 1 bytes requested, 0 handed out");
  const ShortStack one;
  one.policy().short_by = 1;
  const Block block = one.stack->allocate({.bytes = 500});
  EXPECT_EQ(one.broken(), "blocks are smaller than asked for: 500 bytes requested, 499 handed out");
  one.stack->deallocate(block);
  EXPECT_EQ(one.broken(), "");
}

TEST(StackFigures, AreResetWithThoseOfThePolicyPeaksAndSumsApart) {
  const ShortStack one;
  one.policy().is_empty = true;
  EXPECT_THROW(one.stack->allocate({.bytes = 1}), OutOfMemory);
  EXPECT_EQ(one.stack->stats().ooms, 1);
  one.stack->reset_peak_stats();
  EXPECT_EQ(one.stack->stats().ooms, 1);
  one.stack->reset_accumulated_stats();
  EXPECT_EQ(one.stack->stats().ooms, 0);
  EXPECT_THAT(one.policy().resets, ElementsAre("true false", "false true"));
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = test::make_stack(source);
  stack->deallocate(stack->allocate({.bytes = 6 * MiB}));
  stack->deallocate(stack->allocate({.bytes = 8 * MiB}));
  EXPECT_EQ(stack->stats().policy.retries, 1);
  stack->reset_peak_stats();
  EXPECT_EQ(stack->stats().policy.retries, 1);
  stack->reset_accumulated_stats();
  EXPECT_EQ(stack->stats().policy.retries, 0);
}

/// Counts its retries and waits as long as it lives, whatever is reset.
class CountsForEver final : public Allocator {
 public:
  Block allocate(const Request& request) override { return {.data = this, .bytes = request.bytes, .request = request}; }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void report(PolicyStats& stats) const override { stats.retries = retries, stats.synchronizations = waits; }
  std::int64_t retries = 0, waits = 0;
};

TEST(StackFigures, OfAPolicyThatDoesNothingAtAResetOfSumsBeginAnewAllTheSame) {
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "for_ever", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                     return std::make_unique<CountsForEver>();
                   }};
  const auto stack = AllocatorStack::make(source, config);
  auto& policy = static_cast<CountsForEver&>(*stack->outermost());
  const auto said = [&] {
    const PolicyStats stats = stack->stats().policy;
    return std::pair(stats.retries, stats.synchronizations);
  };
  policy.retries = 3, policy.waits = 5;
  EXPECT_EQ(said(), std::pair(std::int64_t{3}, std::int64_t{5}));
  stack->reset_peak_stats();
  EXPECT_EQ(said(), std::pair(std::int64_t{3}, std::int64_t{5}));
  stack->reset_accumulated_stats();
  EXPECT_EQ(said(), std::pair(std::int64_t{0}, std::int64_t{0}));
  policy.retries = 4, policy.waits = 7;
  EXPECT_EQ(said(), std::pair(std::int64_t{1}, std::int64_t{2}));
  stack->reset_accumulated_stats();
  EXPECT_EQ(said(), std::pair(std::int64_t{0}, std::int64_t{0}));
}

TEST(LabelFigures, AreOfEachLabelThatWasUsedSinceTheSumsWereReset) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  std::vector<std::uint16_t> labels;
  for (const char* name : {"told.a", "told.b", "told.c"}) {
    const LabelGuard label(name);
    labels.push_back(current_label());
  }
  const auto said = [&] {
    std::string text;
    for (const LabelUsage& usage : stack->usage_by_label()) {
      const Stat& stat = usage.requested_bytes;
      text += fmt::format("{} {} {} {} {}; ", usage.label, stat.current, stat.peak, stat.allocated, stat.freed);
    }
    return text;
  };
  EXPECT_EQ(said(), "");
  const Block kept = stack->allocate({.bytes = 100, .label = labels[2]});
  EXPECT_EQ(said(), "told.c 100 100 100 0; ");
  const Block gone = stack->allocate({.bytes = 30, .label = labels[0]});
  stack->deallocate(gone);
  stack->deallocate(stack->allocate({.bytes = 5, .label = labels[2]}));
  EXPECT_EQ(said(), "told.a 0 30 30 30; told.c 100 105 105 5; ");
  stack->reset_peak_stats();
  EXPECT_EQ(said(), "told.a 0 0 30 30; told.c 100 100 105 5; ");
  stack->reset_accumulated_stats();
  EXPECT_EQ(said(), "told.c 100 100 0 0; ");
  stack->deallocate(kept);
  EXPECT_EQ(said(), "");
}

// ---- private pools

/// Counts what is known of its pools; refuses to configure them where that is asked.
class PickyPools final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    asked = request.pool;
    return {.data = this, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void begin_pool(std::uint64_t, StreamRef) override { calls.emplace_back("begin"); }
  void end_pool(std::uint64_t) override { calls.emplace_back("end"); }
  void release_pool(std::uint64_t) override { calls.emplace_back("release"); }
  void configure_pool(std::uint64_t, const PoolOptions&) override {
    calls.emplace_back("configure");
    if (refuses) throw Error("not like that");
  }
  std::uint64_t asked = 99;
  bool refuses = false;
  std::vector<std::string> calls;
};

TEST(PrivatePools, AreMadeKnownOnceAndGivenUpWhereTheirOptionsAreRefused) {
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "picky", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                     return std::make_unique<PickyPools>();
                   }};
  const auto stack = AllocatorStack::make(source, config);
  auto& policy = static_cast<PickyPools&>(*stack->outermost());
  const auto calls_of = [&](const std::function<void()>& act) {
    policy.calls.clear();
    act();
    return policy.calls;
  };
  EXPECT_THAT(calls_of([&] { const MemPool pool(stack); }), ElementsAre("begin", "end", "release"));
  EXPECT_THAT(calls_of([&] { const MemPool pool(stack, {.no_split = true}); }),
              ElementsAre("begin", "end", "configure", "release"));
  policy.refuses = true;
  EXPECT_THAT(calls_of([&] { EXPECT_THROW(MemPool(stack, {.use_on_oom = true}), Error); }),
              ElementsAre("begin", "end", "configure", "release"));
  policy.refuses = false;
  MemPool pool(stack);
  const auto pool_of = [&](const Request& request) {
    stack->deallocate(stack->allocate(request));
    return policy.asked;
  };
  for (const std::size_t alignment : {std::size_t{64}, 4 * KiB}) {
    const UseMemPool scope(pool);
    EXPECT_EQ(pool_of({.bytes = 1, .alignment = alignment}), pool.id());
    EXPECT_EQ(pool_of({.bytes = 1, .alignment = alignment, .pool = 12345}), 12345u) << "a request that names its own";
  }
  EXPECT_EQ(pool_of({.bytes = 1}), 0u);
}

}  // namespace
}  // namespace tenon
