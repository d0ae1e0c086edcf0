// What is kept as plain data: the calls that threads have under way, and segments as a snapshot lists them, against a
// list of bytes.
#include <tenon/memory/snapshot.h>
#include <tenon/memory/watch/call_board.h>

#include <gtest/gtest.h>

#include <support/has_sanitizer.h>

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tenon {
namespace {

// ---- calls under way

TEST(CallBoards, ShowTheCallOfAThreadFromItsBeginToItsEnd) {
  auto board = std::make_unique<CallBoard>();
  const std::int32_t me = ::gettid();
  EXPECT_EQ(board->under_way(me), nullptr);
  for (std::uint32_t call = 0; call < 3; ++call) {
    CallSlot* const slot = board->begins({.call = Call::kTrim, .allocator = 2, .bytes = 100 + call});
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(slot->count, 2 * call + 1);
    EXPECT_EQ(slot->thread, me);
    EXPECT_TRUE(slot->is_under_way());
    EXPECT_EQ(board->under_way(me), slot);
    EXPECT_EQ(board->under_way(me + 1), nullptr);
    EXPECT_EQ(slot->facts.call, Call::kTrim);
    EXPECT_EQ(slot->facts.allocator, 2);
    EXPECT_EQ(slot->facts.bytes, 100 + call);
    std::thread([&] {
      EXPECT_EQ(board->under_way(::gettid()), nullptr);
      CallSlot* const other = board->begins({.call = Call::kWalk});
      EXPECT_NE(other, slot);
      EXPECT_EQ(board->under_way(::gettid()), other);
      EXPECT_EQ(board->under_way(me), slot);
      CallBoard::ended(other);
      EXPECT_EQ(board->under_way(::gettid()), nullptr);
    }).join();
    CallBoard::ended(slot);
    EXPECT_FALSE(slot->is_under_way());
    EXPECT_EQ(board->under_way(me), nullptr);
  }
  CallBoard::ended(nullptr);
}

TEST(CallBoards, HaveASlotForEachThreadButThoseBeyondTheTable) {
  auto board = std::make_unique<CallBoard>();
  constexpr int kThreads = kThreadSlots + 4;
  std::barrier together(kThreads);
  std::mutex mutex;
  std::multiset<CallSlot*> slots;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        CallSlot* const slot = board->begins({.call = Call::kReport});
        {
          const std::lock_guard lock(mutex);
          slots.insert(slot);
        }
        together.arrive_and_wait();
        CallBoard::ended(slot);
      });
  }
  const auto without = static_cast<int>(slots.count(nullptr));
  EXPECT_GE(without, kThreads - (kThreadSlots - 1));
  EXPECT_EQ(static_cast<int>(std::set(slots.begin(), slots.end()).size()), kThreads - without + 1) << "each its own";
}

TEST(CallBoards, HandTheSlotOfAThreadThatEndsOnToTheNext) {
  auto board = std::make_unique<CallBoard>();
  std::set<CallSlot*> slots;
  for (int i = 0; i < 3 * kThreadSlots; ++i)
    std::thread([&] {
      CallSlot* const slot = board->begins({.call = Call::kReport});
      slots.insert(slot);
      CallBoard::ended(slot);
    }).join();
  EXPECT_EQ(slots.size(), 1u);
  EXPECT_FALSE(slots.contains(nullptr));
}

TEST(CallBoards, GiveAThreadThatCallsForTheFirstTimeASignalStack) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "signals are left to the sanitizer";
  auto board = std::make_unique<CallBoard>();
  std::thread([&] {
    stack_t now{};
    ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
    EXPECT_NE(now.ss_flags & SS_DISABLE, 0);
    CallBoard::ended(board->begins({.call = Call::kReport}));
    ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
    EXPECT_EQ(now.ss_flags & SS_DISABLE, 0);
  }).join();
}

// ---- segments

TEST(MappedSegments, AreEachRangeOfBytesThatIsMappedByAddress) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    SegmentCollector collector;
    collector.block({std::uint64_t{1}, 512, 0, BlockState::kFree, 0});  // of no segment
    std::vector<std::uint64_t> bases{4096, 1 << 20, 2 << 20, 3 << 20};
    std::ranges::shuffle(bases, random);
    std::map<std::uint64_t, std::vector<BlockInfo>> ranges;  // by where they begin
    std::map<std::uint64_t, std::uint64_t> streams;
    std::size_t reserved = 0, active = 0, requested = 0, allocated = 0;
    for (const std::uint64_t base : bases) {
      collector.segment({.address = base, .bytes = 7, .stream = {base}, .is_expandable = true});
      std::uint64_t at = base, begin = 0;
      for (std::uint64_t blocks = random() % 7; blocks > 0; --blocks) {
        const BlockInfo block{at, 512 * (1 + random() % 4), random() % 512, static_cast<BlockState>(random() % 4), 0};
        collector.block(block);
        at += block.bytes;
        if (block.state == BlockState::kUnmapped) {
          begin = 0;
          continue;
        }
        if (begin == 0) begin = block.address;
        ranges[begin].push_back(block);
        streams[begin] = base;
        reserved += block.bytes;
        const bool is_handed_out = block.state == BlockState::kActive,
                   is_active = is_handed_out || block.state == BlockState::kAwaitingStream;
        allocated += is_handed_out ? block.bytes : 0;
        active += is_active ? block.bytes : 0;
        requested += is_active ? block.requested_bytes : 0;
      }
    }
    const Snapshot snapshot{.segments = mapped_segments(collector.take()), .events = {}, .stacks = {}};
    ASSERT_EQ(snapshot.segments.size(), ranges.size());
    auto wanted = ranges.begin();
    for (const Segment& segment : snapshot.segments) {
      const auto& [begin, blocks] = *wanted++;
      EXPECT_EQ(segment.address, begin);
      EXPECT_EQ(segment.stream.id, streams[begin]);
      EXPECT_TRUE(segment.is_expandable);
      ASSERT_EQ(segment.blocks.size(), blocks.size());
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_EQ(segment.blocks[i].address, blocks[i].address);
        EXPECT_EQ(segment.blocks[i].bytes, blocks[i].bytes);
        EXPECT_EQ(segment.blocks[i].state, blocks[i].state);
        bytes += blocks[i].bytes;
      }
      EXPECT_EQ(segment.bytes, bytes);
      allocated -= segment.allocated_bytes();
      requested -= segment.requested_bytes();
    }
    EXPECT_EQ(snapshot.reserved_bytes(), reserved);
    EXPECT_EQ(snapshot.active_bytes(), active);
    EXPECT_EQ(allocated, 0u);
    EXPECT_EQ(requested, 0u);
  }
}

}  // namespace
}  // namespace tenon
