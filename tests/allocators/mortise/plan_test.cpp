// mortise with a plan: its blocks lie where the plan says, what it has not is served online, and memory that the plan
// holds goes back when others need it.
#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/units.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

constexpr unsigned kSeed = 47;
constexpr std::size_t kPage = 2 * MiB;

class MortisePlan : public testing::Test {
 protected:
  MortisePlan() : file_(std::filesystem::temp_directory_path() / ("tenon-mortise-" + std::to_string(::getpid()))) {
    std::mt19937_64 random(kSeed);
    for (int i = 0; i < 200; ++i) sizes_.push_back(300 * KiB + random() % (7 * MiB));
    for (std::size_t i = 0; i < sizes_.size(); ++i) until_.push_back(i + 1 + random() % 24);
  }
  ~MortisePlan() override { std::filesystem::remove(file_); }

  std::string spec() {
    std::vector<packing::RecordedRequest> recording;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      recording.push_back({.bytes = sizes_[i], .until = std::min(until_[i], sizes_.size())});
    const packing::Plan plan =
        plan_of("a run", recording, pack(packing::buffers_of(recording), {.time_limit_seconds = 1}));
    height_ = plan.height;
    for (const packing::PlannedBlock& block : plan.blocks) offsets_.push_back(block.offset);
    write_atomically(file_.string(), text_of(plan));
    return "mortise:plan=" + file_.string();
  }

  /// Plays the run; `also` many bytes that no plan knows are asked for before every tenth request and kept for a while.
  std::vector<std::uint64_t> play(AllocatorStack& stack, std::size_t also = 0) {
    std::vector<std::uint64_t> addresses;
    std::vector<Block> blocks(sizes_.size()), others;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j)
        if (until_[j] == i) stack.deallocate(blocks[j]);
      if (also != 0 && i % 10 == 0) {
        others.push_back(stack.allocate({.bytes = also + i * KiB}));
        if (others.size() > 4) {
          stack.deallocate(others.front());
          others.erase(others.begin());
        }
      }
      blocks[i] = stack.allocate({.bytes = sizes_[i]});
      addresses.push_back(Address(blocks[i].data));
      stack.check_invariants();
    }
    for (const Block& block : others) stack.deallocate(block);
    for (std::size_t j = 0; j < sizes_.size(); ++j)
      if (until_[j] >= sizes_.size()) stack.deallocate(blocks[j]);
    return addresses;
  }

  const std::filesystem::path file_;
  std::vector<std::size_t> sizes_, until_, offsets_;
  std::size_t height_ = 0;
  AddressOnlySource source_;
};

TEST_F(MortisePlan, BlocksLieWhereThePlanSaysAndTakeNoMoreThanItsHeight) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto stack = AllocatorStack::make(source_, allocator_from_spec(spec()));
  const std::vector<std::uint64_t> addresses = play(*stack);
  for (std::size_t i = 0; i < addresses.size(); ++i)
    EXPECT_EQ(addresses[i] - addresses[0], offsets_[i] - offsets_[0]) << "request " << i;
  EXPECT_LE(stack->stats().reserved_bytes.peak, static_cast<std::int64_t>(height_ + kPage));
}

TEST_F(MortisePlan, WhatItHasNotIsServedOnline) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto stack = AllocatorStack::make(source_, allocator_from_spec(spec()));
  const std::vector<std::uint64_t> addresses = play(*stack, 3 * MiB + 512);
  std::size_t in_place = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    in_place += addresses[i] - addresses[0] == offsets_[i] - offsets_[0] ? 1 : 0;
  EXPECT_GE(in_place, addresses.size() * 9 / 10);
  stack->trim(0);
  EXPECT_EQ(stack->stats().reserved_bytes.current, 0) << "of both kinds of memory";
}

/// What is longer than the plan is served online: so many of them, and none that looks on between, make the thread the
/// owner of its stream's lock (BiasedLock), which has a quick way of its own.
TEST_F(MortisePlan, AThreadThatOwnsItsStreamsLockIsServedByThePlanToo) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto stack = AllocatorStack::make(source_, allocator_from_spec(spec()));
  std::vector<Block> blocks(sizes_.size());
  std::size_t in_place = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (until_[j] == i) stack->deallocate(blocks[j]);
    stack->deallocate(stack->allocate({.bytes = height_ + kPage + i * KiB}));
    blocks[i] = stack->allocate({.bytes = sizes_[i]});
    in_place += Address(blocks[i].data) - Address(blocks[0].data) == offsets_[i] - offsets_[0] ? 1 : 0;
  }
  EXPECT_EQ(in_place, sizes_.size());
  for (std::size_t j = 0; j < sizes_.size(); ++j)
    if (until_[j] >= sizes_.size()) stack->deallocate(blocks[j]);
}

TEST_F(MortisePlan, ItsMemoryGoesBackWhereAnotherRequestNeedsIt) {
  AddressOnlySource small({.capacity_bytes = 192 * MiB});
  const auto stack = AllocatorStack::make(small, allocator_from_spec(spec()));
  play(*stack);
  ASSERT_GT(stack->stats().reserved_bytes.current, 0);
  const Block large = stack->allocate({.bytes = 190 * MiB});
  stack->check_invariants();
  stack->deallocate(large);
}

TEST_F(MortisePlan, AFreeThatWaitedForAStreamIsInTheHistoryWhenItIsDone) {
  AddressOnlySource source({.manual_completion = true});
  const auto stack = AllocatorStack::make(source, allocator_from_spec(spec()));
  const auto history = std::make_shared<History>();
  stack->attach_history(history);
  history->start({});
  const Block block = stack->allocate({.bytes = sizes_[0]});
  stack->record_use(block, {1});
  stack->deallocate(block);
  source.complete(StreamRef{1});
  const Block next = stack->allocate({.bytes = sizes_[1]});
  EXPECT_EQ(Address(next.data) - Address(block.data), offsets_[1] - offsets_[0]) << "both are the plan's";
  const std::vector<HistoryEvent> events = history->events();
  EXPECT_EQ(std::ranges::count(events, HistoryAction::kFreeCompleted, &HistoryEvent::action), 1);
  stack->deallocate(next);
}

TEST_F(MortisePlan, AFileThatIsNoPlanIsRefused) {
  write_atomically(file_.string(), "no plan");
  EXPECT_THROW(AllocatorStack::make(source_, allocator_from_spec("mortise:plan=" + file_.string())), ConfigError);
}

}  // namespace
}  // namespace tenon
