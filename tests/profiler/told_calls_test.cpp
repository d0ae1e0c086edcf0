// Of which allocations and frees those are told who listen to memory: stacks know it by themselves (stack_watch.h).
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/for_trial.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::test {
namespace {

/// What it is told of, while it lives.
class Told final : public scopes::Listener {
 public:
  explicit Told(std::uint32_t wants = scopes::kWantsMemory) { scopes::add_listener(*this, wants); }
  ~Told() override { scopes::remove_listener(*this); }
  /// On any thread, at the same time.
  void allocated(const scopes::MemoryCall& call) noexcept override { keep(allocations, call); }
  void freed(const scopes::MemoryCall& call) noexcept override { keep(frees, call); }
  bool has_both() const {
    const std::lock_guard lock(mutex_);
    return !allocations.empty() && !frees.empty();
  }

  std::vector<scopes::MemoryCall> allocations, frees;  ///< for who is alone

 private:
  void keep(std::vector<scopes::MemoryCall>& calls, const scopes::MemoryCall& call) {
    const std::lock_guard lock(mutex_);
    calls.push_back(call);
  }
  mutable std::mutex mutex_;
};

class ToldCalls : public testing::Test {
 protected:
  /// A block comes and goes.
  void use(AllocatorStack& stack, Request request = {.bytes = 1000}) { stack.deallocate(stack.allocate(request)); }

  AddressOnlySource source_;
};

TEST_F(ToldCalls, AreThoseOfStacksThatWereThereBeforeTheListener) {
  const auto stack = make_stack(source_);
  const Block before = stack->allocate({.bytes = 500});
  Told told;
  const Block block = stack->allocate({.bytes = 1000, .stream = {3}, .purpose = Purpose::kGradient, .label = 7});
  stack->deallocate(block);
  stack->deallocate(before);
  ASSERT_EQ(told.allocations.size(), 1u);
  EXPECT_EQ(told.allocations[0].stack, stack.get());
  EXPECT_EQ(told.allocations[0].address, block.data);
  EXPECT_EQ(told.allocations[0].bytes, 1000u);
  EXPECT_EQ(told.allocations[0].block_bytes, block.bytes);
  EXPECT_EQ(told.allocations[0].reserved_bytes, 512u + 1024u);
  EXPECT_EQ(told.allocations[0].stream, 3u);
  EXPECT_EQ(told.allocations[0].purpose, static_cast<std::uint8_t>(Purpose::kGradient));
  EXPECT_EQ(told.allocations[0].label, 7);
  ASSERT_EQ(told.frees.size(), 2u);
  EXPECT_EQ(told.frees[0].address, block.data);
  EXPECT_EQ(told.frees[1].address, before.data);
  EXPECT_EQ(told.frees[1].bytes, 500u);
}

TEST_F(ToldCalls, AreThoseOfStacksThatAreMadeMeanwhile) {
  Told told;
  const auto stack = make_stack(source_);
  use(*stack);
  EXPECT_EQ(told.allocations.size(), 1u);
  EXPECT_EQ(told.frees.size(), 1u);
}

TEST_F(ToldCalls, EndWithTheLastListener) {
  const auto stack = make_stack(source_);
  Told* last = nullptr;
  {
    Told first;
    last = new Told;
    use(*stack);
    EXPECT_EQ(first.allocations.size(), 1u);
  }
  use(*stack);
  EXPECT_EQ(last->allocations.size(), 2u);
  delete last;
  use(*stack);
  Told other(scopes::kWantsScopes);
  use(*stack);
  EXPECT_EQ(other.allocations.size(), 0u);
  EXPECT_EQ(other.frees.size(), 0u);
}

TEST_F(ToldCalls, AreNotThoseOfTrials) {
  const auto trial = AllocatorStack::make_trial(source_, {.policy = simple_policy()}, nullptr);
  Told told;
  use(*trial);
  EXPECT_EQ(told.allocations.size(), 0u);
  EXPECT_EQ(told.frees.size(), 0u);
}

TEST_F(ToldCalls, SayOnceWhatWasAskedForWhateverAlignmentItHas) {
  const auto stack = make_stack(source_);
  Told told;
  const Block block = stack->allocate({.bytes = 1000, .alignment = 4096});
  // As the figures have it: with what the policy is asked for more.
  const auto asked = static_cast<std::size_t>(stack->stats().requested_bytes.current);
  EXPECT_GT(asked, 1000u);
  stack->deallocate(block);
  stack->deallocate(stack->allocate({.bytes = 0}));
  ASSERT_EQ(told.allocations.size(), 1u);
  EXPECT_EQ(told.allocations[0].address, block.data);
  EXPECT_EQ(told.allocations[0].bytes, asked);
  ASSERT_EQ(told.frees.size(), 1u);
  EXPECT_EQ(told.frees[0].address, block.data);
  EXPECT_EQ(told.frees[0].bytes, asked);
}

TEST_F(ToldCalls, GoToHistoriesAndListenersAlike) {
  const auto stack = make_stack(source_);
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  {
    Told told;
    use(*stack);
    EXPECT_EQ(told.allocations.size(), 1u);
    EXPECT_EQ(told.frees.size(), 1u);
  }
  use(*stack);  // the listener has gone, the history has not
  const auto events = history->events();
  history->stop();
  use(*stack);
  EXPECT_TRUE(history->events().empty());
  int allocations = 0, frees = 0;
  for (const MemoryEvent& event : events) {
    allocations += event.action == HistoryAction::kAlloc ? 1 : 0;
    frees += event.action == HistoryAction::kFreeCompleted ? 1 : 0;
  }
  EXPECT_EQ(allocations, 2);
  EXPECT_EQ(frees, 2);
}

TEST_F(ToldCalls, MayBeginAndEndWhileOthersAllocateAndStacksComeAndGo) {
  const auto stack = make_stack(source_);
  std::atomic<bool> is_done = false;
  std::thread others([&] {
    AddressOnlySource source;
    while (!is_done) {
      use(*stack);
      use(*make_stack(source));
    }
  });
  for (int round = 0; round < 200; ++round) {
    Told told;
    use(*stack);
    EXPECT_TRUE(told.has_both());
  }
  is_done = true;
  others.join();
}

}  // namespace
}  // namespace tenon::test
