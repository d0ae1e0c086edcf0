// What a stack tells of its calls, field by field: those who listen, and its history.
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/core/units.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- those who listen

/// Keeps the last call of each kind.
struct LastCalls final : scopes::Listener {
  void allocated(const scopes::MemoryCall& call) noexcept override { came = call, ++count; }
  void freed(const scopes::MemoryCall& call) noexcept override { went = call, ++count; }
  scopes::MemoryCall came, went;
  int count = 0;
};

void expect_tells(const scopes::MemoryCall& call, const AllocatorStack& stack, const Block& block) {
  const std::size_t alignment = block.request.alignment;
  EXPECT_EQ(call.stack, &stack);
  EXPECT_EQ(call.address, block.data);
  EXPECT_EQ(call.bytes, block.request.bytes + (alignment > kMaxAlignment ? alignment - kMaxAlignment : 0));
  EXPECT_EQ(call.block_bytes, block.bytes);
  EXPECT_EQ(call.reserved_bytes, static_cast<std::size_t>(stack.stats().reserved_bytes.current));
  EXPECT_EQ(call.stream, block.request.stream.id);
  EXPECT_EQ(call.purpose, static_cast<std::uint8_t>(block.request.purpose));
  EXPECT_EQ(call.elements, static_cast<std::uint8_t>(block.request.elements));
  EXPECT_EQ(call.label, block.request.label);
}

void expect_same_request(const Request& is, const Request& wanted) {
  EXPECT_EQ(is.bytes, wanted.bytes);
  EXPECT_EQ(is.alignment, wanted.alignment);
  EXPECT_EQ(is.stream, wanted.stream);
  EXPECT_EQ(is.purpose, wanted.purpose);
  EXPECT_EQ(is.label, wanted.label);
  EXPECT_EQ(is.elements, wanted.elements);
  EXPECT_EQ(is.pool, wanted.pool);
}

Request drawn_request(std::mt19937_64& random) {
  return {.bytes = 1 + random() % 5000,
          .alignment = std::size_t{64} << random() % 6,
          .stream = {random() % 3},
          .purpose = static_cast<Purpose>(random() % kPurposeCount),
          .label = static_cast<std::uint16_t>(random() % 4),
          .elements = static_cast<ElementKind>(random() % kElementKindCount),
          .pool = random() % 3};
}

TEST(ToldCalls, HaveEveryFieldOfTheBlockAndTheBlockOfItsRequest) {
  std::mt19937_64 random(21);
  for (const bool is_safe : {false, true}) {
    AddressOnlySource source;
    const auto stack = test::make_stack(source, {}, {.safe = is_safe});
    LastCalls last;
    for (int step = 0; step < 200; ++step) {
      SCOPED_TRACE(step);
      const bool is_told = step % 4 != 0;  // the usual way as well
      const int before = last.count;
      if (is_told) scopes::add_listener(last, scopes::kWantsMemory);
      const Request request = drawn_request(random);
      const Block block = stack->allocate(request);
      expect_same_request(block.request, request);
      if (is_told) expect_tells(last.came, *stack, block);
      stack->deallocate(block);
      if (is_told) expect_tells(last.went, *stack, block);
      stack->deallocate(stack->allocate({.bytes = 0}));  // of which nobody is told
      if (is_told) scopes::remove_listener(last);
      EXPECT_EQ(last.count, before + (is_told ? 2 : 0));
    }
  }
}

// ---- a history

/// "alloc 1000 gradient 3 on 4 of 0": without its address and time.
std::string event_text(const HistoryEvent& event) {
  return fmt::format("{} {} {} {} on {} of {}", name_of(event.action), event.bytes, name_of(event.purpose), event.label,
                     event.stream.id, event.pool);
}

std::vector<std::string> event_texts(const tenon::History& history, std::size_t from = 0) {
  std::vector<std::string> texts;
  const std::vector<HistoryEvent> events = history.events();
  for (std::size_t i = from; i < events.size(); ++i)
    if (!takes_memory(events[i].action) && !gives_memory(events[i].action)) texts.push_back(event_text(events[i]));
  return texts;
}

TEST(ToldHistories, HaveTheFieldsOfTheRequestInEachEvent) {
  AddressOnlySource source({.capacity_bytes = MiB});
  const auto stack = test::make_stack(source);
  const auto history = std::make_shared<tenon::History>();
  stack->attach_history(history);
  history->start({});
  const Block block =
      stack->allocate({.bytes = 1000, .stream = {4}, .purpose = Purpose::kGradient, .label = 3, .pool = 7});
  stack->deallocate(block);
  EXPECT_THROW(stack->allocate({.bytes = 2 * MiB, .stream = {5}, .purpose = Purpose::kData, .label = 2}), OutOfMemory);
  EXPECT_THAT(event_texts(*history),
              ElementsAre("alloc 1000 gradient 3 on 4 of 7", "free_requested 1000 gradient 3 on 4 of 0",
                          "free_completed 1000 gradient 3 on 4 of 0", "oom 2097152 data 2 on 5 of 0"));
  const std::vector<HistoryEvent> events = history->events();
  for (const HistoryEvent& event : events)
    if (event.action != HistoryAction::kOom) {
      EXPECT_EQ(event.address, Address(block.data));
    }
  EXPECT_EQ(events.back().address, MiB) << "what the device has left";
}

/// Hands out what it has, and frees as it is told: at once, or kept until somebody says that it may go.
class KeepingPolicy final : public Allocator {
 public:
  enum class Way { kAtOnce, kKeeps, kTellsAtOnce, kShowsAnother, kShowsItFree };
  explicit KeepingPolicy(const AllocatorContext& context) : source_(context.source), observer_(context.observer) {}
  Block allocate(const Request& request) override {
    if (data_ == nullptr) data_ = source_.acquire(4096);
    return {.data = data_, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    freed_ = block;
    if (way == Way::kTellsAtOnce) tell();
  }
  void record_use(const Block&, StreamRef) override { ++uses; }
  void tell() { observer_->free_completed(freed_.data, 77, {88}); }
  void walk(SegmentVisitor& visitor) const override {
    ++walks;
    const Address address(data_);
    visitor.segment({.address = address, .bytes = 4096});
    if (way == Way::kKeeps)
      visitor.block({.address = address, .bytes = 2048, .state = BlockState::kAwaitingStream});
    else
      visitor.block({.address = address, .bytes = 2048, .state = BlockState::kFree});
    if (way == Way::kShowsAnother)
      visitor.block({.address = address + 2048, .bytes = 2048, .state = BlockState::kAwaitingStream});
  }
  Way way = Way::kAtOnce;
  int uses = 0;
  mutable int walks = 0;

 private:
  MemorySource& source_;
  PolicyObserver* observer_;
  void* data_ = nullptr;
  Block freed_;
};

struct KeepingStack {
  KeepingStack() {
    StackConfig config;
    config.policy = {.name = "keeping", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                       return std::make_unique<KeepingPolicy>(context);
                     }};
    stack = AllocatorStack::make(source, config);
    stack->attach_history(history);
    history->start({});
  }
  KeepingPolicy& policy() const { return static_cast<KeepingPolicy&>(*stack->outermost()); }
  /// What is told of a free; the block is used on `used_on` as well, and for the last time on `last_use`.
  std::vector<std::string> freeing(std::uint64_t used_on, std::uint64_t last_use) const {
    const Block block = stack->allocate({.bytes = 500, .stream = {1}, .purpose = Purpose::kData, .label = 2});
    stack->record_use(block, {used_on});
    const std::size_t before = history->events().size();
    stack->deallocate(block, {last_use});
    return event_texts(*history, before);
  }

  AddressOnlySource source;
  std::shared_ptr<AllocatorStack> stack;
  std::shared_ptr<tenon::History> history = std::make_shared<tenon::History>();
};

TEST(ToldFrees, CompleteAtOnceUnlessAnotherStreamUsedTheBlockAndThePolicyKeepsIt) {
  const std::string asked = "free_requested 500 data 2 on 1 of 0", done = "free_completed 500 data 2 on 1 of 0";
  using Way = KeepingPolicy::Way;
  for (const Way way : {Way::kAtOnce, Way::kKeeps, Way::kShowsAnother, Way::kShowsItFree})
    for (const std::uint64_t used_on : {1, 2})
      for (const std::uint64_t last_use : {1, 2}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(way) << ", " << used_on << ", " << last_use);
        const KeepingStack one;
        one.policy().way = way;
        const bool is_elsewhere = used_on != 1 || last_use != 1;
        if (is_elsewhere && way == Way::kKeeps) {
          EXPECT_THAT(one.freeing(used_on, last_use), ElementsAre(asked));
          const std::size_t before = one.history->events().size();
          one.policy().tell();
          EXPECT_THAT(event_texts(*one.history, before), ElementsAre("free_completed 77 other 0 on 88 of 0"));
        } else {
          EXPECT_THAT(one.freeing(used_on, last_use), ElementsAre(asked, done));
        }
        EXPECT_EQ(one.policy().uses, used_on != 1 ? 1 : 0) << "a use on its own stream is none";
        EXPECT_EQ(one.policy().walks, is_elsewhere ? 1 : 0) << "and only then it is looked for";
        // The address is another block's now, which nobody uses elsewhere.
        EXPECT_THAT(one.freeing(1, 1), ElementsAre(asked, done));
      }
}

TEST(ToldFrees, ThatThePolicyTellsOfItselfAreToldOnce) {
  const KeepingStack one;
  one.policy().way = KeepingPolicy::Way::kTellsAtOnce;
  EXPECT_THAT(one.freeing(2, 1),
              ElementsAre("free_requested 500 data 2 on 1 of 0", "free_completed 77 other 0 on 88 of 0"));
  one.history->stop();
  one.policy().tell();
  EXPECT_THAT(one.history->events(), IsEmpty()) << "nobody records";
}

TEST(ToldUses, OfAnEmptyBlockAndOnTheBlocksOwnStreamAreNone) {
  const KeepingStack one;
  const Block block = one.stack->allocate({.bytes = 10, .stream = {3}});
  one.stack->record_use(block, {3});
  one.stack->record_use({.request = {.stream = {3}}}, {4});
  EXPECT_EQ(one.policy().uses, 0);
  one.stack->record_use(block, {4});
  EXPECT_EQ(one.policy().uses, 1);
}

// ---- what is kept live

TEST(KeptLive, BlocksOfAStackHaveTheirStackWhoeverElseRecords) {
  for (const StackContext asked : {StackContext::kNone, StackContext::kState, StackContext::kAll})
    for (const bool is_started : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(asked) << ", " << is_started);
      AddressOnlySource source;
      const auto stack = test::make_stack(source);
      const auto history = std::make_shared<tenon::History>();
      stack->attach_history(history);
      history->drop_live();  // of one that was opened before
      stack->deallocate(stack->allocate({.bytes = 1}));
      EXPECT_FALSE(history->recording());
      history->keep_live();
      if (is_started) history->start({.stacks = asked});
      const Block block = stack->allocate({.bytes = 300, .purpose = Purpose::kData, .label = 6});
      EXPECT_NE(history->live_stack(Address(block.data)), 0u);
      const std::vector<LiveBlock> live = history->live_blocks();
      ASSERT_EQ(live.size(), 1u);
      EXPECT_EQ(live[0].stack, history->live_stack(Address(block.data)));
      EXPECT_EQ(live[0].bytes, 300u);
      EXPECT_EQ(live[0].purpose, Purpose::kData);
      EXPECT_EQ(live[0].label, 6u);
      EXPECT_EQ(history->events().empty(), !is_started);
      EXPECT_EQ(history->settings().stacks, is_started && asked == StackContext::kAll ? asked : StackContext::kState);
      stack->deallocate(block);
      for (const HistoryEvent& event : history->events())
        EXPECT_EQ(event.stack != 0, asked == StackContext::kAll && event.action != HistoryAction::kFreeCompleted);
      EXPECT_TRUE(history->live_blocks().empty());
      history->stop();
      EXPECT_TRUE(history->recording()) << "it goes on for what is kept";
      const Block again = stack->allocate({.bytes = 1});
      EXPECT_EQ(history->live_blocks().size(), 1u);
      history->drop_live();
      EXPECT_FALSE(history->recording());
      EXPECT_EQ(history->live_stack(Address(again.data)), 0u);
      stack->deallocate(again);
    }
}

}  // namespace
}  // namespace tenon
