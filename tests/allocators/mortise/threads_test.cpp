// mortise under threads that have streams of their own: what one has left behind serves others, what one uses is left
// to it, and small blocks stay apart where joints take too much time.
#include <mortise/pages.h>
#include <mortise/stream_cache.h>
#include <tenon/core/units.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tenon::mortise {
namespace {

class MortiseThreads : public testing::Test {
 protected:
  AddressOnlySource source_;
  const std::shared_ptr<AllocatorStack> stack_ = AllocatorStack::make(source_, allocator_from_spec("mortise"));
};

/// The stream's lock is still its thread's own, who will not come back.
TEST_F(MortiseThreads, WhatAThreadHasLeftBehindServesOthersBeforeLong) {
  const auto use = [&](std::uint64_t stream, std::size_t bytes, int count) {
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(stack_->allocate({.bytes = bytes, .stream = {stream}}));
    for (const Block& block : blocks) stack_->deallocate(block);
  };
  std::thread([&] {
    for (int i = 0; i < 10; ++i) use(1, 4 * KiB, 100);  // until it owns the lock
    use(1, 4 * MiB, 100);
  }).join();
  use(2, 1 * MiB, 400);
  EXPECT_LE(stack_->stats().reserved_bytes.peak, static_cast<std::int64_t>(500 * MiB))
      << "at no time lived more than 400";
  stack_->check_invariants();
}

/// A thread may lose its processor for long. Its stream looks unused then, and is not.
TEST_F(MortiseThreads, AStreamThatIsUsedAgainAfterOthersTookFromItIsLeftAloneForLonger) {
  TilePool pool;
  StreamCache cache({}, 0, pool, 2 * MiB);
  std::size_t bytes = 0;
  const auto looks_until_unused = [&] {
    cache.held_bytes.set(bytes += 1 * MiB);  // it is used
    EXPECT_FALSE(cache.seems_unused());
    int looks = 1;
    while (!cache.seems_unused()) ++looks;
    return looks;
  };
  const int at_first = looks_until_unused();
  EXPECT_EQ(looks_until_unused(), at_first) << "nobody took anything";
  cache.was_taken_from();
  EXPECT_TRUE(cache.seems_unused()) << "it has not been used since";
  EXPECT_EQ(looks_until_unused(), 2 * at_first);
  EXPECT_EQ(looks_until_unused(), 2 * at_first);
  for (int i = 0; i < 40; ++i) {
    cache.was_taken_from();
    looks_until_unused();
  }
  EXPECT_LE(looks_until_unused(), 1 << 20) << "not for ever";
}

/// As long as joints take little time, small blocks fill what is left between large ones.
TEST_F(MortiseThreads, SmallBlocksHaveMemoryOfTheirOwnWhereJointsHaveTakenTooMuchTime) {
  std::thread([&] { stack_->deallocate(stack_->allocate({.bytes = 1 * MiB, .stream = {1}})); }).join();
  std::vector<Block> kept, gone;
  for (int i = 0; i < 3000; ++i) {
    kept.push_back(stack_->allocate({.bytes = 1 * MiB}));
    gone.push_back(stack_->allocate({.bytes = i % 2 == 0 ? 1536 * KiB : 3 * MiB}));
  }
  for (const Block& block : gone) stack_->deallocate(block);
  const auto among_large_of_new_ones = [&] {
    const std::size_t before = kept.size();
    for (int i = 0; i < 300; ++i) kept.push_back(stack_->allocate({.bytes = 100 * KiB}));
    const std::vector<Segment> shown = mapped_segments_of(*stack_);
    return std::count_if(kept.begin() + static_cast<std::ptrdiff_t>(before), kept.end(), [&](const Block& block) {
      return std::ranges::any_of(shown, [&](const Segment& segment) {
        return segment.is_large && Address(block.data) - segment.address < segment.bytes;
      });
    });
  };
  EXPECT_GT(among_large_of_new_ones(), 200);
  for (int i = 0; i < 100; ++i) kept.push_back(stack_->allocate({.bytes = 64 * MiB}));  // of pieces
  EXPECT_EQ(among_large_of_new_ones(), 0);
  for (const Block& block : kept) stack_->deallocate(block);
  stack_->check_invariants();
}

}  // namespace
}  // namespace tenon::mortise
