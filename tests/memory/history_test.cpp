// The history of a stack: which events, in which order, with which figures.
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> actions(const History& history) {
  std::vector<std::string> words;
  for (const HistoryEvent& event : history.events()) words.emplace_back(name_of(event.action));
  return words;
}

TEST(History, TellsOfSegmentsBeforeTheBlocksThatNeededThem) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  stack->deallocate(stack->allocate({.bytes = 512}));
  EXPECT_TRUE(history->events().empty()) << "not recording yet";
  history->start({});
  const Block block = stack->allocate({.bytes = 1000, .stream = {4}, .purpose = Purpose::kGradient});
  stack->deallocate(block);
  stack->trim();
  EXPECT_THAT(actions(*history), ElementsAre("segment_alloc", "alloc", "free_requested", "free_completed",
                                             "segment_free", "segment_free"));
  const auto events = history->events();
  EXPECT_EQ(events[0].bytes, 1024u);
  EXPECT_EQ(events[0].stream.id, 4u);
  EXPECT_EQ(events[1].bytes, 1000u) << "as requested";
  EXPECT_EQ(events[1].address, reinterpret_cast<std::uint64_t>(block.data));
  EXPECT_EQ(events[1].purpose, Purpose::kGradient);
  EXPECT_LE(events[0].time_us, events[5].time_us);
  EXPECT_GT(events[0].time_us, 1600000000000000);
}

TEST(History, KeepsTheNewestEventsAndCountsTheLostOnes) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({.max_entries = 4});
  for (std::size_t i = 1; i <= 5; ++i) stack->deallocate(stack->allocate({.bytes = 512 * i}));
  EXPECT_EQ(history->recorded(), 20u);
  EXPECT_THAT(actions(*history), ElementsAre("segment_alloc", "alloc", "free_requested", "free_completed"));
  EXPECT_EQ(history->events().front().bytes, 2560u);
  history->start({.max_entries = 2});
  EXPECT_THAT(actions(*history), ElementsAre("free_requested", "free_completed")) << "a shorter ring keeps the newest";
  history->stop();
  EXPECT_TRUE(history->events().empty());
  EXPECT_FALSE(history->recording());
}

TEST(History, RecordsARunOfPagesAsOneMap) {
  // A policy that maps page by page for every request.
  class Pages final : public Allocator {
   public:
    explicit Pages(MemorySource& source) : source_(source), page_(source.traits().page_bytes) {}
    Block allocate(const Request& request) override {
      const std::size_t pages = (request.bytes + page_ - 1) / page_;
      auto* space = static_cast<char*>(source_.reserve(pages * page_));
      for (std::size_t i = 0; i < pages; ++i) {
        held_.push_back(source_.create(page_));
        source_.map(space + i * page_, page_, held_.back(), 0);
      }
      return {.data = space, .bytes = pages * page_};
    }
    void deallocate(const Block& block, StreamRef) noexcept override {
      for (std::size_t at = 0; at < block.bytes; at += page_) source_.unmap(static_cast<char*>(block.data) + at, page_);
      for (const Physical physical : held_) source_.destroy(physical, page_);
      held_.clear();
      source_.unreserve(block.data, block.bytes);
    }

   private:
    MemorySource& source_;
    const std::size_t page_;
    std::vector<Physical> held_;
  };
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "pages", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Pages>(context.source);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  stack->deallocate(stack->allocate({.bytes = 7 * MiB}));
  EXPECT_THAT(actions(*history),
              ElementsAre("segment_map", "alloc", "free_requested", "free_completed", "segment_unmap"));
  EXPECT_EQ(history->events()[0].bytes, 8 * MiB);
  EXPECT_EQ(stack->stats().device_maps, 4);
  EXPECT_EQ(stack->stats().device_growths, 1);
  EXPECT_EQ(stack->stats().device_shrinks, 1);
  EXPECT_EQ(stack->stats().reserved_bytes.peak, static_cast<std::int64_t>(8 * MiB));
}

/// Holds a freed block back while told so, as a policy does whose other stream has not got there yet.
class Deferring final : public Allocator {
 public:
  explicit Deferring(const AllocatorContext& context) : source_(context.source), observer_(context.observer) {}
  Block allocate(const Request& request) override {
    finish();
    return {.data = source_.acquire(request.bytes), .bytes = request.bytes};
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    if (used_) {
      pending_.push_back(block);
    } else {
      source_.release(block.data, block.bytes);
    }
  }
  void record_use(const Block&, StreamRef) override { used_ = true; }
  void walk(SegmentVisitor& visitor) const override {
    for (const Block& block : pending_) {
      visitor.segment({.address = block.data, .bytes = block.bytes});
      visitor.block({.address = block.data, .bytes = block.bytes, .state = BlockState::kAwaitingStream});
    }
  }

 private:
  void finish() {
    for (const Block& block : pending_) {
      observer_->free_completed(block.data, block.request.bytes, block.request.stream);
      source_.release(block.data, block.bytes);
    }
    pending_.clear();
    used_ = false;
  }
  MemorySource& source_;
  PolicyObserver* observer_;
  bool used_ = false;
  std::vector<Block> pending_;
};

TEST(History, TellsOfADeferredFreeWhenItCompletes) {
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "deferring", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Deferring>(context);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  const Block first = stack->allocate({.bytes = 512});
  stack->record_use(first, {9});
  stack->deallocate(first);
  EXPECT_THAT(actions(*history), ElementsAre("segment_alloc", "alloc", "free_requested"));
  const Block second = stack->allocate({.bytes = 1024});
  EXPECT_THAT(actions(*history), ElementsAre("segment_alloc", "alloc", "free_requested", "free_completed",
                                             "segment_free", "segment_alloc", "alloc"));
  EXPECT_EQ(history->events()[3].address, reinterpret_cast<std::uint64_t>(first.data));
  stack->deallocate(second);
}

TEST(History, RecordsAnOutOfMemoryWithWhatTheDeviceHadLeft) {
  AddressOnlySource source({.capacity_bytes = 2 * MiB});
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  EXPECT_THROW(stack->allocate({.bytes = 3 * MiB}), OutOfMemory);
  ASSERT_THAT(actions(*history), ElementsAre("oom"));
  EXPECT_EQ(history->events()[0].bytes, 3 * MiB);
  EXPECT_EQ(history->events()[0].address, 2 * MiB);
}

[[gnu::noinline]] Block allocate_in_a_function_with_a_name(AllocatorStack& stack) {
  Block block = stack.allocate({.bytes = 512});
  return block;
}

TEST(History, KeepsTheStacksOfLiveBlocksAndNamesTheirFunctions) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({.max_entries = 0, .stacks = StackContext::kState});
  const Block block = allocate_in_a_function_with_a_name(*stack);
  EXPECT_TRUE(history->events().empty());
  const StackId id = history->live_stack(reinterpret_cast<std::uint64_t>(block.data));
  ASSERT_NE(id, 0u);
  std::string all;
  for (const StackFrame& frame : history->frames(id)) all += frame.name + "\n";
  EXPECT_THAT(all, HasSubstr("allocate_in_a_function_with_a_name"));
  EXPECT_THAT(history->frames(id).front().name, HasSubstr("AllocatorStack::allocate"))
      << "machinery below it is left out";
  stack->deallocate(block);
  EXPECT_EQ(history->live_stack(reinterpret_cast<std::uint64_t>(block.data)), 0u);
}

TEST(History, SharesEqualStacksAndSamplesThemWhenAsked) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({.stacks = StackContext::kAlloc, .stack_every = 2});
  std::vector<Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(allocate_in_a_function_with_a_name(*stack));
  std::vector<StackId> stacks;
  for (const HistoryEvent& event : history->events()) {
    if (event.action == HistoryAction::kAlloc) stacks.push_back(event.stack);
  }
  ASSERT_EQ(stacks.size(), 6u);
  const auto with_stack = std::count_if(stacks.begin(), stacks.end(), [](StackId id) { return id != 0; });
  EXPECT_GT(with_stack, 0);
  EXPECT_LT(with_stack, 6);
  for (const Block& block : blocks) stack->deallocate(block);
  for (const HistoryEvent& event : history->events()) {
    if (event.action == HistoryAction::kFreeRequested) {
      EXPECT_EQ(event.stack, 0u) << "only allocations have stacks";
    }
  }
}

}  // namespace
}  // namespace tenon
