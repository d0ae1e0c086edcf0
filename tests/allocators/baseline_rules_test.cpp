// Baselines decide as the peers that they stand for: a rule a test, each as its source or its documentation states it.
// How much memory they take is held against the peers in tests/replay/baselines_test.cpp.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

/// An allocator on a device whose streams get somewhere when the test says so.
struct Bench {
  explicit Bench(const std::string& spec, std::size_t capacity = 64 * GiB)
      : device({.capacity_bytes = capacity, .manual_completion = true}),
        stack(AllocatorStack::make_trial(device, allocator_from_spec(spec), nullptr)) {}

  Block take(std::size_t bytes, std::uint64_t stream = 0, Purpose purpose = Purpose::kActivation) {
    return stack->allocate({.bytes = bytes, .stream = {stream}, .purpose = purpose});
  }
  void give(const Block& block) { stack->deallocate(block); }
  std::uintptr_t address_of(std::size_t bytes, std::uint64_t stream = 0) {
    return reinterpret_cast<std::uintptr_t>(take(bytes, stream).data);
  }
  std::size_t reserved() const { return device.used_bytes(); }

  AddressOnlySource device;
  std::unique_ptr<AllocatorStack> stack;
};

std::uintptr_t at(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.data); }

// CUB, util_allocator.cuh.

TEST(CubBins, SizesAreRoundedUpToPowersOfTheGrowthAndLargerOnesAreTakenAsTheyAre) {
  Bench bench("cub_bins");
  for (const auto& [asked, given] : {std::pair<std::size_t, std::size_t>{1, 512},
                                     {512, 512},
                                     {513, 4 * KiB},
                                     {4 * KiB + 1, 32 * KiB},
                                     {256 * KiB + 1, 2 * MiB},
                                     {2 * MiB + 512, 2 * MiB + 512}})
    EXPECT_EQ(bench.take(asked).bytes, given) << asked;
}

TEST(CubBins, ABlockServesItsOwnBinAndIsNeitherSplitNorJoined) {
  Bench bench("cub_bins");
  const Block large = bench.take(32 * KiB);
  bench.give(large);
  EXPECT_NE(bench.address_of(512), at(large));
  EXPECT_EQ(bench.address_of(20 * KiB), at(large));
}

TEST(CubBins, AnotherStreamGetsABlockOnceItsWorkIsDone) {
  Bench bench("cub_bins");
  const Block block = bench.take(4 * KiB, 1);
  bench.give(block);
  EXPECT_NE(bench.address_of(4 * KiB, 2), at(block));
  bench.device.complete(StreamRef{1});
  EXPECT_EQ(bench.address_of(4 * KiB, 2), at(block));
}

TEST(CubBins, WhatWouldPassTheLimitOfTheCacheGoesBack) {
  Bench bench("cub_bins:max_cached=6291455");  // CUB's default: three of the largest bin, less a byte
  std::vector<Block> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(bench.take(2 * MiB));
  for (const Block& block : blocks) bench.give(block);
  EXPECT_EQ(bench.reserved(), 4 * MiB);
}

// RMM, pool_memory_resource.

TEST(RmmPool, GrowsByAsMuchAsItHas) {
  Bench bench("rmm_pool:initial_pool_size=1MiB");
  const std::vector<std::size_t> expected = {1 * MiB, 2 * MiB, 4 * MiB, 4 * MiB, 8 * MiB};
  for (const std::size_t reserved : expected) {
    bench.take(1 * MiB);
    EXPECT_EQ(bench.reserved(), reserved);
  }
}

TEST(RmmPool, TowardsItsMaximumItGrowsByHalfOfWhatIsLeft) {
  Bench bench("rmm_pool:initial_pool_size=1MiB,maximum_pool_size=17MiB");
  bench.take(1 * MiB);
  bench.take(1 * MiB);
  EXPECT_EQ(bench.reserved(), 9 * MiB);
  EXPECT_THROW(bench.take(17 * MiB), OutOfMemory);
}

TEST(RmmPool, ARefusedGrowthIsHalvedDownToTheRequest) {
  Bench bench("rmm_pool:initial_pool_size=40MiB", 64 * MiB);
  bench.take(40 * MiB);
  bench.take(1 * MiB);
  EXPECT_EQ(bench.reserved(), 60 * MiB) << "40 more were refused, 20 were there";
}

TEST(RmmPool, TakesHalfOfWhatIsFreeWhereItsFirstSizeIsNotSaid) {
  Bench bench("rmm_pool", 8 * GiB);
  bench.take(1);
  EXPECT_EQ(bench.reserved(), 4 * GiB);
}

TEST(RmmPool, AStreamTakesWhatAnotherOneFreedBeforeThePoolGrows) {
  Bench bench("rmm_pool:initial_pool_size=4MiB");
  const Block block = bench.take(4 * MiB, 1);
  bench.give(block);
  EXPECT_EQ(bench.address_of(4 * MiB, 2), at(block)) << "the one that frees is waited for";
}

TEST(RmmPool, TheSmallestFreeBlockThatSufficesIsTakenAndOfEqualOnesTheLowest) {
  Bench bench("rmm_pool:initial_pool_size=64MiB");
  std::vector<Block> blocks;
  for (const std::size_t mebibytes : {4, 1, 2, 1, 2, 1, 53}) blocks.push_back(bench.take(mebibytes * MiB));
  for (const std::size_t i : {0, 2, 4}) bench.give(blocks[i]);
  EXPECT_EQ(bench.address_of(2 * MiB - 4 * KiB), at(blocks[2]));
}

// RMM, arena_memory_resource.

TEST(RmmArena, TakesHalfOfWhatIsFreeAtOnceAndNoMore) {
  Bench bench("rmm_arena", 8 * GiB);
  bench.take(1);
  EXPECT_EQ(bench.reserved(), 4 * GiB);
  EXPECT_THROW(bench.take(5 * GiB), OutOfMemory);
  EXPECT_EQ(bench.reserved(), 4 * GiB);
}

TEST(RmmArena, SizesAreThoseOfItsClasses) {
  Bench bench("rmm_arena:arena_size=2TiB", 4 * TiB);
  for (const auto& [asked, given] : {std::pair<std::size_t, std::size_t>{2049, 2560},
                                     {4 * KiB + 1, 5 * KiB},
                                     {33 * KiB, 40 * KiB},
                                     {49 * KiB, 54 * KiB},  // where all others are 8 KiB apart
                                     {55 * KiB, 64 * KiB},
                                     {1 * MiB + 1, 1280 * KiB},
                                     {9 * GiB, 10 * GiB},
                                     {225 * GiB, 256 * GiB}})
    EXPECT_EQ(bench.take(asked).bytes, given) << asked;
  EXPECT_THROW(bench.take(256 * GiB + 1), OutOfMemory) << "there is no longer class";
}

TEST(RmmArena, SmallBlocksLieInSuperblocksOfTheirStream) {
  Bench bench("rmm_arena:arena_size=64MiB");
  const std::uintptr_t first = bench.address_of(1000, 1);
  EXPECT_EQ(bench.address_of(1000, 2), first + 1 * MiB);
  EXPECT_EQ(bench.address_of(1000, 1), first + 1 * KiB);
  EXPECT_EQ(bench.address_of(1 * MiB, 1), first + 2 * MiB) << "not in the rest of its own, which is too short";
}

TEST(RmmArena, TheLowestFreeBlockThatSufficesIsTaken) {
  Bench bench("rmm_arena:arena_size=64MiB");
  std::vector<Block> blocks;
  for (const std::size_t mebibytes : {8, 2, 4, 2}) blocks.push_back(bench.take(mebibytes * MiB));
  bench.give(blocks[0]);
  bench.give(blocks[2]);
  EXPECT_EQ(bench.address_of(4 * MiB), at(blocks[0])) << "and not the one that fits best";
}

// TensorFlow, bfc_allocator.cc; ONNX Runtime, bfc_arena.cc.

TEST(Bfc, RegionsDoubleFromTheFirstOne) {
  Bench bench("bfc");
  std::vector<std::size_t> reserved;
  for (int i = 0; i < 4; ++i) {
    bench.take(2 * MiB);
    reserved.push_back(bench.reserved());
  }
  EXPECT_EQ(reserved, (std::vector<std::size_t>{2 * MiB, 6 * MiB, 6 * MiB, 14 * MiB}));
  bench.take(40 * MiB);
  EXPECT_EQ(bench.reserved(), (14 + 64) * MiB) << "doubled until it suffices";
  bench.take(60 * MiB);
  EXPECT_EQ(bench.reserved(), (14 + 64 + 64) * MiB) << "a region that was doubled for a request is not doubled again";
}

TEST(Bfc, RegionsAreAsRequestedWhereThatIsSaid) {
  Bench bench("bfc:arena_extend_strategy=same_as_requested");
  bench.take(3 * MiB);
  bench.take(1 * MiB);
  EXPECT_EQ(bench.reserved(), 4 * MiB);
}

TEST(Bfc, ASingleRegionIsTheWholeDevice) {
  Bench bench("bfc:arena_extend_strategy=single_region", 1 * GiB);
  bench.take(1);
  EXPECT_EQ(bench.reserved(), 1 * GiB);
}

TEST(Bfc, AChunkIsCutWhereItIsTwiceAsLongOrTheRestIsLarge) {
  Bench bench("bfc:arena_extend_strategy=same_as_requested,max_dead_bytes_per_chunk=4MiB");
  const auto given = [&](std::size_t chunk, std::size_t request) {
    bench.give(bench.take(chunk));
    const Block block = bench.take(request);
    bench.stack->trim(0);
    return block.bytes;
  };
  EXPECT_EQ(given(3 * MiB, 2 * MiB), 3 * MiB);
  EXPECT_EQ(given(5 * MiB, 2 * MiB), 2 * MiB);
  EXPECT_EQ(given(13 * MiB, 9 * MiB), 9 * MiB);
}

// Jenga, SOSP 2025.

TEST(SlabByLcm, ALargePageServesAnyTypeOnceAllOfItIsFree) {
  Bench bench("slab_by_lcm");
  constexpr std::size_t kLargePage = 3 * 128 * KiB;  // what 512, 1 KiB, 1.5 KiB … 128 KiB divide
  const auto fill = [&](std::size_t bytes) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < kLargePage / bytes; ++i) blocks.push_back(bench.take(bytes));
    EXPECT_EQ(at(blocks.back()) - at(blocks.front()), kLargePage - bytes) << "tiled without a rest";
    return blocks;
  };
  const std::vector<Block> first = fill(1536);
  const std::vector<Block> other = fill(2 * KiB);
  EXPECT_GE(at(other.front()) - at(first.front()), kLargePage);
  for (const Block& block : first) bench.give(block);
  EXPECT_EQ(at(fill(128 * KiB).front()), at(first.front()));
}

TEST(SlabByLcm, TypesDoNotShareALargePage) {
  Bench bench("slab_by_lcm");
  const Block block = bench.take(1 * KiB);
  const auto page_of = [&](const Block& other) { return (at(other) - at(block)) / (384 * KiB); };
  EXPECT_EQ(page_of(bench.take(1 * KiB)), 0U);
  EXPECT_NE(page_of(bench.take(512)), 0U) << "another size";
  EXPECT_NE(page_of(bench.take(1 * KiB, 0, Purpose::kGradient)), 0U) << "another purpose";
}

// Knowlton, CACM 8 (10), 1965.

TEST(Buddy, BlocksArePowersOfTwoAtMultiplesOfTheirSize) {
  Bench bench("buddy");
  const std::uintptr_t chunk = bench.address_of(512);
  for (const std::size_t bytes : {std::size_t{513}, std::size_t{3000}, 5 * MiB, 1 * MiB}) {
    const Block block = bench.take(bytes);
    EXPECT_EQ(block.bytes, std::bit_ceil(bytes));
    EXPECT_EQ((at(block) - chunk) % block.bytes, 0U) << bytes;
  }
}

TEST(Buddy, OnlyTheTwoHalvesOfABlockAreJoined) {
  Bench bench("buddy");
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(bench.take(8 * MiB));
  bench.give(blocks[1]);
  bench.give(blocks[2]);
  bench.give(bench.take(16 * MiB));
  EXPECT_EQ(bench.reserved(), 64 * MiB) << "neighbours, but halves of different blocks";
  bench.give(blocks[0]);
  EXPECT_EQ(bench.address_of(16 * MiB), at(blocks[0]));
}

// The CUDA driver's pool: "Stream Ordered Memory Allocator" of the CUDA programming guide.

TEST(DriverAsync, AStreamThatHasGotToItsFreeLendsWhatItFreed) {
  Bench bench("driver_async:reuse_allow_internal_dependencies=false");
  const Block block = bench.take(20 * MiB, 1);
  bench.give(block);
  EXPECT_NE(bench.address_of(20 * MiB, 2), at(block)) << "it has work";
  bench.device.complete(StreamRef{1});
  static_cast<void>(bench.device.mark({1}));  // more work, behind the free
  EXPECT_EQ(bench.address_of(20 * MiB, 3), at(block));
}

TEST(DriverAsync, AStreamIsMadeToWaitForAnotherOne) {
  Bench bench("driver_async:reuse_allow_opportunistic=false");
  const Block block = bench.take(20 * MiB, 1);
  bench.give(block);
  EXPECT_EQ(bench.address_of(20 * MiB, 2), at(block));
}

TEST(DriverAsync, WithoutBothStreamsShareNothing) {
  Bench bench(
      "driver_async:reuse_allow_opportunistic=false,reuse_allow_internal_dependencies=false,release_threshold=1TiB");
  const Block block = bench.take(20 * MiB, 1);
  bench.give(block);
  bench.device.complete(StreamRef{1});
  EXPECT_NE(bench.address_of(20 * MiB, 2), at(block));
}

TEST(DriverAsync, WhatIsUnusedBeyondTheThresholdGoesBackBeforeThePoolGrows) {
  const auto reserved_after_growth = [](const std::string& options) {
    Bench bench("driver_async" + options);
    bench.give(bench.take(64 * MiB));
    bench.device.complete(StreamRef{0});
    bench.take(128 * MiB);
    return bench.reserved();
  };
  EXPECT_EQ(reserved_after_growth(""), 128 * MiB) << "nothing is kept, CUDA's default";
  EXPECT_EQ(reserved_after_growth(":release_threshold=1TiB"), 192 * MiB);
}

// Masmano et al., ECRTS 2004: a free block of the class above suffices whatever its place there.

TEST(Tlsf, NeighboursAreJoinedAtOnceAndTheBestClassIsTaken) {
  Bench bench("tlsf:growth=segments,segment=64MiB");
  std::vector<Block> blocks;
  for (const std::size_t mebibytes : {4, 4, 1, 16, 1}) blocks.push_back(bench.take(mebibytes * MiB));
  for (const std::size_t i : {0, 1, 3}) bench.give(blocks[i]);
  EXPECT_EQ(bench.address_of(8 * MiB), at(blocks[0])) << "two of 4 MiB, and not a part of 16";
}

TEST(Arena, AStepBeginsWhereTheOneBeforeItDidAndFillsNoHolesMeanwhile) {
  Bench bench("arena");
  const Block weights = bench.take(3 * MiB);
  for (int step = 0; step < 3; ++step) {
    std::vector<Block> blocks;
    for (int i = 0; i < 5; ++i) blocks.push_back(bench.take(1 * MiB));
    EXPECT_EQ(at(blocks.front()), at(weights) + 3 * MiB);
    bench.give(blocks[1]);
    blocks[1] = bench.take(512);
    EXPECT_EQ(at(blocks[1]), at(blocks.back()) + 1 * MiB);
    for (const std::size_t i : {2, 0, 4, 3, 1}) bench.give(blocks[i]);
  }
}

}  // namespace
}  // namespace tenon
