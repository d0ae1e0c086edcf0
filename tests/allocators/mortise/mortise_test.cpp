// mortise: blocks share the pages at their ends, a step that repeats maps nothing, and a program that never repeats
// itself is not made to wait for the device again and again.
#include "../repeated_step.h"

#include <mortise/free_tiles.h>
#include <mortise/home.h>
#include <mortise/joint.h>
#include <mortise/stream_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>
#include <tiled/rhythm.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace tenon::mortise {
namespace {

constexpr unsigned kSeed = 47;
constexpr std::size_t kPage = 2 * MiB;

/// Free tiles with live ones between them, in one range.
std::vector<std::unique_ptr<Tile>> scattered(std::mt19937_64& random, int count) {
  std::vector<std::unique_ptr<Tile>> tiles;
  std::uintptr_t at = std::uintptr_t{1} << 40;
  for (int i = 0; i < count; ++i) {
    at += (1 + random() % 3000) * kCoarseGrain + random() % 4 * kGrain;  // somebody else's
    auto tile = std::make_unique<Tile>();
    tile->address = at;
    tile->bytes = (1 + random() % 12000) * kCoarseGrain;
    tile->state = TileState::kFree;
    at = tile->end();
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

TEST(MortiseJoint, IsMadeOfFreePiecesThatMeetAtPages) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  int made = 0;
  for (int round = 0; round < 500; ++round) {
    const auto owners = scattered(random, 1 + static_cast<int>(random() % 20));
    std::vector<Tile*> free;
    for (const auto& tile : owners) free.push_back(tile.get());
    const std::size_t bytes = (1 + random() % 40000) * kCoarseGrain;
    const Joint joint = plan_joint(free, bytes, kPage);
    if (joint.missing_pages != 0) {
      EXPECT_TRUE(joint.pieces.empty());
      continue;
    }
    ++made;
    std::size_t sum = 0;
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> taken;
    for (std::size_t i = 0; i < joint.pieces.size(); ++i) {
      const Piece& piece = joint.pieces[i];
      const std::uintptr_t end = piece.address + piece.bytes;
      sum += piece.bytes;
      EXPECT_TRUE(std::ranges::any_of(free, [&](const Tile* tile) {
        return tile->address <= piece.address && end <= tile->end();
      })) << "a piece lies outside of what is free";
      if (i != 0) {
        EXPECT_EQ(piece.address % kPage, 0U) << "only the first piece begins within a page";
      }
      if (i + 1 != joint.pieces.size()) {
        EXPECT_EQ(end % kPage, 0U) << "only the last piece ends within a page";
      }
      taken.emplace_back(piece.address, end);
    }
    EXPECT_EQ(sum, bytes);
    std::ranges::sort(taken);
    for (std::size_t i = 1; i < taken.size(); ++i) EXPECT_LE(taken[i - 1].second, taken[i].first) << "pieces overlap";
  }
  EXPECT_GT(made, 100) << "the test has to see joints";
}

TEST(MortiseJoint, SaysHowManyPagesAreMissing) {
  Tile tile;
  tile.address = (std::uintptr_t{1} << 40) + kPage / 2;
  tile.bytes = 2 * kPage;  // half a page, a page, half a page
  EXPECT_EQ(plan_joint({&tile}, 4 * kPage, kPage).missing_pages, 2U);
  EXPECT_EQ(plan_joint({&tile}, 2 * kPage, kPage).missing_pages, 0U) << "both halves and the page between them";
  EXPECT_EQ(plan_joint({}, kPage + kGrain, kPage).missing_pages, 2U);
}

TEST(MortiseJoint, WithoutSharedEndsBeginsWithAPage) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  int made = 0, others = 0;
  for (int round = 0; round < 200; ++round) {
    const auto owners = scattered(random, 1 + static_cast<int>(random() % 20));
    std::vector<Tile*> free;
    for (const auto& tile : owners) free.push_back(tile.get());
    const std::size_t bytes = (1 + random() % 20000) * kCoarseGrain;
    const Joint joint = plan_joint(free, bytes, kPage, false);
    for (const Piece& piece : joint.pieces) EXPECT_EQ(piece.address % kPage, 0U);
    made += joint.pieces.empty() ? 0 : 1;
    const Joint sharing = plan_joint(free, bytes, kPage);
    EXPECT_LE(sharing.missing_pages, joint.missing_pages) << "sharing needs no more";
    others += sharing.missing_pages < joint.missing_pages ? 1 : 0;
  }
  EXPECT_GT(made, 50);
  EXPECT_GT(others, 20);
}

class MortiseSteps : public testing::Test {
 protected:
  std::shared_ptr<AllocatorStack> stack_of(const char* spec) {
    return AllocatorStack::make(source_, allocator_from_spec(spec));
  }
  AddressOnlySource source_;
};

/// Activations are kept until their gradients need them; what an optimizer remembers comes with the first step.
TEST_F(MortiseSteps, FromTheThirdOnNothingIsMapped) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto stack = stack_of("mortise:slack_fraction=0,growth_fraction=0");
  std::vector<Block> kept;
  for (int i = 0; i < 30; ++i) kept.push_back(stack->allocate({.bytes = (1 + i % 7) * 700 * KiB}));
  std::int64_t calls_after_two = 0, joints = 0;
  for (int step = 0; step < 6; ++step) {
    test::repeat_step(*stack, kSeed, /*remembers=*/step == 0, kept);
    const MemoryStats stats = stack->stats();
    const std::int64_t calls = stats.device_maps + stats.device_allocations + stats.device_unmaps + stats.device_frees;
    if (step == 1) {
      calls_after_two = calls;
      joints = stats.device_maps - stats.device_allocations;
    }
    if (step > 1) {
      EXPECT_EQ(calls, calls_after_two) << "step " << step;
    }
    stack->check_invariants();
  }
  EXPECT_GT(joints, 0) << "the test has to see joints";
  for (const Block& block : kept) stack->deallocate(block);
}

/// Two neighbours that were freed are one hole for what comes next, and a longer one stays for what needs it.
TEST_F(MortiseSteps, ALongFreedBlockIsMergedBeforeAnotherSizeIsLookedFor) {
  const auto stack = stack_of("mortise:slack_fraction=0,growth_fraction=0,rhythm=false");
  const Block longest = stack->allocate({.bytes = 250 * MiB}), between = stack->allocate({.bytes = 2 * MiB});
  const Block left = stack->allocate({.bytes = 100 * MiB}), right = stack->allocate({.bytes = 100 * MiB});
  const Block behind = stack->allocate({.bytes = 2 * MiB});
  for (const Block& block : {longest, left, right}) stack->deallocate(block);
  const std::int64_t maps = stack->stats().device_maps;
  const Block middle = stack->allocate({.bytes = 120 * MiB});
  const Block again = stack->allocate({.bytes = 250 * MiB});
  EXPECT_EQ(again.data, longest.data);
  EXPECT_EQ(stack->stats().device_maps, maps) << "nothing had to be put together";
  for (const Block& block : {middle, again, between, behind}) stack->deallocate(block);
}

/// What stays of a step are blocks of a third of a page between long ones that go.
TEST_F(MortiseSteps, ShortBlocksThatStayDoNotKeepLongHolesApart) {
  const auto stack = stack_of("mortise");
  std::vector<Block> kept;
  for (const std::size_t bytes : {3 * MiB, 5 * MiB, 9 * MiB, 17 * MiB}) {
    std::vector<Block> gone;
    for (std::size_t taken = 0; taken < 512 * MiB; taken += bytes) {
      gone.push_back(stack->allocate({.bytes = bytes}));
      kept.push_back(stack->allocate({.bytes = 600 * KiB}));
    }
    for (const Block& block : gone) stack->deallocate(block);
  }
  const MemoryStats stats = stack->stats();
  EXPECT_LE(100 * stats.reserved_bytes.peak, 105 * stats.requested_bytes.peak + 800 * static_cast<std::int64_t>(MiB));
  for (const Block& block : kept) stack->deallocate(block);
}

/// One and a half pages each: with pages of their own they would take a third more than they are.
TEST_F(MortiseSteps, BlocksShareThePagesAtTheirEnds) {
  const auto stack = stack_of("mortise");
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(stack->allocate({.bytes = kPage * 3 / 2}));
  // Every second one goes: a hundred whole pages in holes of one and a half. What comes then takes four of them each.
  for (std::size_t i = 0; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
  std::vector<Block> longer;
  for (int i = 0; i < 25; ++i) longer.push_back(stack->allocate({.bytes = kPage * 4}));
  const MemoryStats stats = stack->stats();
  EXPECT_LE(stats.reserved_bytes.peak,
            200 * static_cast<std::int64_t>(kPage * 3 / 2) * 105 / 100 + 8 * static_cast<std::int64_t>(MiB));
  stack->check_invariants();
  for (const Block& block : longer) stack->deallocate(block);
  for (std::size_t i = 1; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
  EXPECT_EQ(stack->trim(0), static_cast<std::size_t>(stats.reserved_bytes.current)) << "all of it goes back";
}

/// Very many short blocks take little more than what is asked for.
TEST_F(MortiseSteps, ShortBlocksLieCloseToEachOther) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  const auto stack = stack_of("mortise");
  std::vector<Block> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(stack->allocate({.bytes = 1 + random() % 600}));
  EXPECT_LE(100 * stack->stats().reserved_bytes.peak,
            (100 * 364 / 300 + 5) * stack->stats().requested_bytes.peak + 800 * static_cast<std::int64_t>(MiB))
      << "half of 128 bytes beside each of them";
  for (const Block& block : blocks) stack->deallocate(block);
}

/// What is cut off before and behind it is free for others, and merges with it again.
TEST_F(MortiseSteps, AnAlignedBlockTakesNoMoreThanItsBytes) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  const auto stack = stack_of("mortise:slack_fraction=0,growth_fraction=0");
  std::vector<Block> blocks;
  for (int i = 0; i < 20'000; ++i) {
    if (blocks.size() > 300) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      stack->deallocate(blocks.back());
      blocks.pop_back();
    }
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (4 + random() % 19));
    const Request request{.bytes = bytes, .alignment = std::size_t{64} << random() % 4};
    const Block block = stack->allocate(request);
    ASSERT_EQ(Address(block.data) % request.alignment, 0U) << bytes << " bytes";
    ASSERT_EQ(block.request.alignment, request.alignment);
    ASSERT_GE(block.bytes, bytes);
    ASSERT_LT(block.bytes, bytes + (bytes <= kLongestOfGrain ? kGrain : kCoarseGrain));
    blocks.push_back(block);
    if (i % 1000 != 0) continue;
    stack->check_invariants();
    std::int64_t shown = 0;
    for (const Segment& segment : mapped_segments_of(*stack)) shown += static_cast<std::int64_t>(segment.bytes);
    ASSERT_EQ(shown, stack->stats().reserved_bytes.current) << "also what lies beside a joined one";
  }
  const MemoryStats stats = stack->stats();
  EXPECT_GT(stats.device_maps, stats.device_allocations) << "the test has to see joints";
  for (const Block& block : blocks) stack->deallocate(block);
  stack->check_invariants();
  EXPECT_EQ(stack->trim(0), static_cast<std::size_t>(stats.reserved_bytes.current));
}

TEST_F(MortiseSteps, WithoutQuickAFreedBlockIsMergedAtOnce) {
  const auto idle_in_one_piece = [&](const char* spec) {
    const auto stack = stack_of(spec);
    std::vector<Block> blocks;
    for (int i = 0; i < 64; ++i)
      blocks.push_back(stack->allocate({.bytes = static_cast<std::size_t>(1 + i % 4) * KiB}));
    for (const Block& block : blocks) stack->deallocate(block);
    return stack->stats().policy.largest_free_bytes;
  };
  const std::size_t merged = idle_in_one_piece("mortise:quick=false");
  EXPECT_EQ(merged % kPage, 0U) << "whatever was taken";
  EXPECT_GT(merged, idle_in_one_piece("mortise"));
}

/// Sizes that never come in the same order again.
TEST_F(MortiseSteps, AProgramThatNeverRepeatsItselfGetsMemoryInsteadOfDeviceCalls) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const auto stack = stack_of("mortise");
  std::mt19937_64 random(kSeed);
  const auto bytes = [&] { return std::size_t{1} << (9 + random() % 15) | (random() % 512 * 512); };
  std::vector<Block> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(stack->allocate({.bytes = bytes()}));
  const auto calls_of = [&](int replaced) {
    const std::int64_t before = stack->stats().device_maps;
    for (int i = 0; i < replaced; ++i) {
      Block& block = blocks[random() % blocks.size()];
      stack->deallocate(block);
      block = {};
      block = stack->allocate({.bytes = bytes()});
    }
    return stack->stats().device_maps - before;
  };
  const std::int64_t at_first = calls_of(5'000);
  calls_of(25'000);
  const MemoryStats stats = stack->stats();
  EXPECT_LE(stats.reserved_bytes.peak, stats.requested_bytes.peak / 100 * 105 + std::int64_t{8 * MiB})
      << "as long as joints have taken little time";
  calls_of(270'000);
  const std::int64_t at_last = calls_of(5'000);
  EXPECT_LE(10 * at_last, at_first) << "mappings of 5000 requests each";
  for (const Block& block : blocks) stack->deallocate(block);
}

/// What is cached goes back, as far as no block lies on the same piece of the device's memory.
TEST_F(MortiseSteps, ALimitThatShrinksIsMetAtOnceAndServedWithin) {
  const auto stack = stack_of("mortise");
  std::vector<Block> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(stack->allocate({.bytes = 16 * MiB}));
  for (int i = 0; i < 10; ++i) {
    stack->deallocate(blocks.back());
    blocks.pop_back();
  }
  const auto reserved = [&] { return static_cast<std::size_t>(stack->stats().reserved_bytes.current); };
  const std::size_t live = 160 * MiB, limit = live + 48 * MiB;
  ASSERT_GT(reserved(), limit);
  stack->set_reserved_limit(limit);
  EXPECT_LE(reserved(), limit);
  EXPECT_GE(reserved(), live);
  int more = 0;
  EXPECT_THROW(for (; more < 7; ++more) blocks.push_back(stack->allocate({.bytes = 8 * MiB})), OutOfMemory);
  EXPECT_GE(more, 5) << "of 8 MiB each";
  stack->set_reserved_limit(0);
  blocks.push_back(stack->allocate({.bytes = 8 * MiB}));
  stack->check_invariants();
  for (const Block& block : blocks) stack->deallocate(block);
}

/// Every page on which no block lies goes back, wherever it is.
TEST_F(MortiseSteps, ALimitThatShrinksLeavesThePagesThatBlocksTouch) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  const auto stack = stack_of("mortise:pages_apart=true");
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(stack->allocate({.bytes = 300 * KiB + random() % (9 * MiB)}));
  std::ranges::shuffle(blocks, random);
  for (int i = 0; i < 150; ++i) {
    stack->deallocate(blocks.back());
    blocks.pop_back();
  }
  const auto reserved = [&] { return static_cast<std::size_t>(stack->stats().reserved_bytes.current); };
  std::vector<std::uintptr_t> touched;
  std::size_t live = 0;
  for (const Block& block : blocks) {
    live += block.bytes;
    const std::uintptr_t begin = Address(block.data), end = begin + block.bytes;
    for (std::uintptr_t page = begin / kPage; page <= (end - 1) / kPage; ++page) touched.push_back(page);
  }
  std::ranges::sort(touched);
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  ASSERT_GT(reserved(), 2 * touched.size() * kPage) << "there is much to give back";
  stack->set_reserved_limit(live);
  EXPECT_EQ(reserved(), touched.size() * kPage);
  stack->check_invariants();
  // Nothing that goes back is needed for what lives, and a higher limit is used at once.
  stack->set_reserved_limit(touched.size() * kPage + 64 * MiB);
  for (int i = 0; i < 6; ++i) blocks.push_back(stack->allocate({.bytes = 9 * MiB}));
  stack->check_invariants();
  for (const Block& block : blocks) stack->deallocate(block);
  stack->trim(0);
  EXPECT_EQ(reserved(), 0U);
}

/// What was taken in long pieces before anybody thought of a limit: of each at most so much is held by a small block.
TEST_F(MortiseSteps, OfALongBlockThatIsGoneNoMoreThanAPieceIsHeld) {
  const auto stack = stack_of("mortise");
  const Block longest = stack->allocate({.bytes = 1 * GiB});
  stack->deallocate(longest);
  const Block small = stack->allocate({.bytes = 1 * MiB});
  stack->set_reserved_limit(2 * MiB);
  EXPECT_LE(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(256 * MiB));
  stack->deallocate(small);
}

/// Beyond it free pieces are joined where new pages would be taken otherwise.
TEST_F(MortiseSteps, BeyondTheSoftLimitPiecesAreJoinedBeforePagesAreTaken) {
  const auto reserved_with = [&](const char* spec) {
    const auto stack = stack_of(spec);
    std::vector<Block> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(stack->allocate({.bytes = 8 * MiB}));
    for (std::size_t i = 0; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
    const Block longer = stack->allocate({.bytes = 24 * MiB});
    const auto reserved = static_cast<std::size_t>(stack->stats().reserved_bytes.current);
    stack->deallocate(longer);
    for (std::size_t i = 1; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
    return reserved;
  };
  EXPECT_GE(reserved_with("mortise:slack_fraction=1"), 184 * MiB) << "there is room: new pages are quicker";
  EXPECT_LE(reserved_with("mortise:slack_fraction=1,soft_limit=160MiB"), 168 * MiB);
}

}  // namespace
}  // namespace tenon::mortise
