// Packing: every packing is one, the exact search finds what trying everything finds, and bounds are bounds.
#include <tenon/core/error.h>
#include <tenon/memory/packing/exact_search.h>
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/repeats.h>

#include <memory/packing/random_problem.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tenon::packing {
namespace {

constexpr unsigned kSeed = 47;

/// Lowest height over all orders of first fit, in the plainest way: one of them builds the lowest packing.
std::uint64_t lowest_height(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t lowest = ~std::uint64_t{0};
  do {
    std::vector<std::uint64_t> offsets(buffers.size());
    std::vector<Buffer> placed;
    std::vector<std::uint64_t> at;
    for (const std::size_t i : order) {
      placed.push_back(buffers[i]);
      at.push_back(0);
      while (!flaw_of(placed, at).empty()) ++at.back();
    }
    lowest = std::min(lowest, height_of(placed, at));
  } while (std::ranges::next_permutation(order).found);
  return lowest;
}

void expect_sound(const std::vector<Buffer>& buffers, const PackResult& result) {
  EXPECT_EQ(flaw_of(buffers, result.offsets), "");
  EXPECT_EQ(result.height, height_of(buffers, result.offsets));
  EXPECT_LE(result.load, result.lower_bound);
  EXPECT_LE(result.lower_bound, result.height);
}

TEST(Packing, FindsTheLowestOfSmallProblemsAndProvesIt) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", problem " << i);
    const std::vector<Buffer> buffers = random_problem(random, {.most_alignment = i % 3 == 0 ? 4U : 1U});
    const PackResult result = pack(buffers);
    expect_sound(buffers, result);
    EXPECT_TRUE(result.is_optimal());
    EXPECT_EQ(result.height, lowest_height(buffers));
  }
}

TEST(Packing, ACapacityIsReachedOrProvenTooSmall) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", problem " << i);
    const std::vector<Buffer> buffers = random_problem(random, {});
    const std::uint64_t lowest = lowest_height(buffers);
    EXPECT_LE(pack(buffers, {.capacity = lowest}).height, lowest);
    const PackResult below = pack(buffers, {.capacity = lowest - 1});
    expect_sound(buffers, below);
    EXPECT_EQ(below.lower_bound, lowest) << "proven";
  }
}

TEST(Packing, EveryOrderOfTheExactSearchAgrees) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", problem " << i);
    const std::vector<Buffer> buffers = random_problem(random, {.most_alignment = i % 2 == 0 ? 3U : 1U});
    const Timeline timeline(buffers);
    const std::uint64_t lowest = lowest_height(buffers);
    for (const Preorder preorder : kPreorders) {
      ExactSearch search(buffers, timeline);
      EXPECT_EQ(search.run(lowest - 1, preorder, 1U << 20), SearchEnd::kInfeasible);
      ASSERT_EQ(search.run(lowest, preorder, 1U << 20), SearchEnd::kFound);
      EXPECT_EQ(flaw_of(buffers, search.offsets()), "");
      EXPECT_LE(height_of(buffers, search.offsets()), lowest);
    }
  }
}

TEST(Packing, PacksWhatHasGaps) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", problem " << i);
    const std::vector<Buffer> buffers =
        random_problem(random, {.buffers = 40, .times = 30, .sizes = 50, .has_gaps = true});
    expect_sound(buffers, pack(buffers, {.time_limit_seconds = 0.01}));
  }
  // The second lies in the first one's gap.
  const std::vector<Buffer> nested = {{.lower = 0, .upper = 9, .size = 8, .gaps = {{2, 7, 4, 8}}},
                                      {.lower = 3, .upper = 6, .size = 4}};
  const PackResult result = pack(nested);
  expect_sound(nested, result);
  EXPECT_EQ(result.height, 8U);
}

TEST(Packing, KeepsFixedOffsets) {
  const std::vector<Buffer> buffers = {{.lower = 0, .upper = 4, .size = 4, .offset = 2},
                                       {.lower = 1, .upper = 3, .size = 2},
                                       {.lower = 2, .upper = 6, .size = 3}};
  const PackResult result = pack(buffers);
  expect_sound(buffers, result);
  EXPECT_EQ(result.offsets[0], 2U);
  EXPECT_EQ(result.height, 9U);
  EXPECT_TRUE(result.is_optimal());
}

TEST(Packing, WhatLivesAtOnceIsTheSumOfSizesWhereverTheyAreFixed) {
  const std::vector<Buffer> buffers = {{.lower = 0, .upper = 5, .size = 10, .offset = 0},
                                       {.lower = 0, .upper = 5, .size = 10, .offset = 100}};
  const PackResult result = pack(buffers);
  EXPECT_EQ(result.load, 20U);
  EXPECT_EQ(result.lower_bound, 110U);
  EXPECT_EQ(result.height, 110U);
}

TEST(Packing, RefusesFixedOffsetsThatOverlap) {
  const std::vector<Buffer> buffers = {{.lower = 0, .upper = 4, .size = 4, .offset = 2},
                                       {.lower = 1, .upper = 3, .size = 2, .offset = 4}};
  EXPECT_THROW(pack(buffers), ValueError);
}

TEST(Packing, RefusesWhatNoPackingHolds) {
  for (const Buffer& wrong :
       {Buffer{.lower = 3, .upper = 3, .size = 1}, Buffer{.lower = 0, .upper = 1, .size = 0},
        Buffer{.lower = 0, .upper = 1, .size = 1, .alignment = 0}, Buffer{.lower = 0, .upper = 1, .size = kMaxBytes},
        Buffer{.lower = 0, .upper = 1, .size = 1, .alignment = 4, .offset = 2},
        Buffer{.lower = 0, .upper = 9, .size = 4, .gaps = {{5, 10, 0, 0}}},
        Buffer{.lower = 0, .upper = 9, .size = 4, .gaps = {{5, 6, 0, 5}}}}) {
    EXPECT_NE(flaw_of(wrong), "");
    EXPECT_THROW(pack(std::vector{wrong}), ValueError);
  }
}

TEST(Packing, NothingTakesNothing) { EXPECT_EQ(pack({}).height, 0U); }

TEST(Packing, LargeProblemsArePackedSoundly) {
  std::mt19937_64 random(kSeed);
  for (const std::size_t count : {500U, 5000U}) {
    const std::vector<Buffer> buffers =
        random_problem(random, {.buffers = count, .times = 4000, .sizes = 1U << 20, .most_alignment = 64});
    const PackResult result = pack(buffers, {.time_limit_seconds = 0.3});
    expect_sound(buffers, result);
  }
}

TEST(Packing, EqualProblemsArePackedAlike) {
  std::mt19937_64 random(kSeed);
  const std::vector<Buffer> buffers = random_problem(random, {.buffers = 60, .times = 40, .sizes = 9});
  EXPECT_EQ(pack(buffers, {.capacity = 80}).offsets, pack(buffers, {.capacity = 80}).offsets);
}

TEST(Packing, EndsWhenItIsAskedTo) {
  std::mt19937_64 random(kSeed);
  const std::vector<Buffer> buffers = random_problem(random, {.buffers = 4000, .times = 4000, .sizes = 1U << 20});
  const PackResult result = pack(buffers, {.is_stopping = [] { return true; }});
  expect_sound(buffers, result);
  EXPECT_TRUE(result.is_stopped);
}

/// Layers that ask for the same: what ends within one, and one buffer that lives until the layer's turn comes again on
/// the way back, in which there are others that are alike. Before it, what lives all the time.
std::vector<Buffer> layered_problem(std::mt19937_64& random, int layers, int per_layer) {
  std::vector<Buffer> buffers;
  const std::int64_t end = 2 * static_cast<std::int64_t>(layers) * (per_layer + 1) + 7;
  for (int i = 0; i < 7; ++i) buffers.push_back({.lower = i, .upper = end, .size = 1 + random() % 90});
  for (const bool is_back : {false, true}) {
    std::vector<Buffer> layer;
    for (int i = 0; i < per_layer; ++i) {
      const auto lower = static_cast<std::int64_t>(i);
      const auto longest = static_cast<std::uint64_t>(per_layer + 1 - i);
      layer.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(random() % longest),
                       .size = 1 + random() % 60,
                       .alignment = std::uint64_t{1} << random() % 4});
    }
    for (int l = 0; l < layers; ++l) {
      const std::int64_t now = 7 + (is_back ? layers + l : l) * static_cast<std::int64_t>(per_layer + 1);
      for (const Buffer& buffer : layer) {
        buffers.push_back(buffer);
        buffers.back().lower += now;
        buffers.back().upper += now;
      }
      const std::int64_t kept = now + per_layer;  // until its layer on the way back
      const std::int64_t turn = 7 + (2 * layers - l) * static_cast<std::int64_t>(per_layer + 1);
      buffers.push_back({.lower = kept, .upper = is_back ? kept + 1 : turn, .size = 37});
    }
  }
  return buffers;
}

TEST(Repeats, OfLayersThatAreAlikeOneIsPackedAndAllLieLikeIt) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", problem " << i);
    const int layers = 3 + i % 9, per_layer = 4 + i % 7;
    const std::vector<Buffer> buffers = layered_problem(random, layers, per_layer);
    std::optional<Folded> folded = fold_repeats(buffers);
    ASSERT_TRUE(folded);
    EXPECT_GE(folded->copies.size(), static_cast<std::size_t>(layers - 1)) << "a beginning may cost one";
    EXPECT_GE(folded->part.size(), 2U);
    EXPECT_EQ(folded->rest_buffers.size() + folded->copies.size() * folded->part.size(), buffers.size());
    const PackResult part = pack(folded->part, {.time_limit_seconds = 1});
    folded->set_height(part.height);
    const PackResult rest = pack(folded->rest, {.time_limit_seconds = 1});
    const std::vector<std::uint64_t> offsets = folded->offsets(part.offsets, rest.offsets);
    EXPECT_EQ(flaw_of(buffers, offsets), "");
    EXPECT_LE(height_of(buffers, offsets), rest.height);
    for (const auto& copy : folded->copies)
      for (std::size_t b = 0; b < copy.size(); ++b)
        EXPECT_EQ(offsets[copy[b]] - offsets[copy[0]] + offsets[folded->copies[0][0]], offsets[folded->copies[0][b]]);
  }
}

TEST(Repeats, WhatDoesNotRepeatIsLeftAsItIs) {
  std::mt19937_64 random(kSeed);
  EXPECT_FALSE(fold_repeats(random_problem(random, {.buffers = 300, .times = 100, .sizes = 1U << 20})));
  EXPECT_FALSE(fold_repeats({}));
  std::vector<Buffer> fixed = layered_problem(random, 6, 5);
  fixed[0].offset = 0;
  EXPECT_FALSE(fold_repeats(fixed));
}

/// Adds buffers of these sizes, one a step, of which each lives for that step.
void add_row(std::vector<Buffer>& buffers, std::initializer_list<std::uint64_t> sizes) {
  for (const std::uint64_t size : sizes) {
    const std::int64_t lower = buffers.empty() ? 0 : buffers.back().lower + 1;
    buffers.push_back({.lower = lower, .upper = lower + 1, .size = size});
  }
}

TEST(Repeats, OfTwoLayersTheFirstBufferOfAllMayBeTheFirstOfItsLayer) {
  // A layer's first buffer is born with the last one of the layer before it.
  std::vector<Buffer> buffers;
  for (std::int64_t time = 0; time <= 3; time += 3)
    for (std::int64_t i = 0; i < 4; ++i)
      buffers.push_back({.lower = time + i, .upper = time + i + 1, .size = 5 + static_cast<std::uint64_t>(i)});
  const std::optional<Folded> folded = fold_repeats(buffers);
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->copies, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {4, 5, 6}}));
}

TEST(Repeats, EqualBuffersInARowAreNoLayersOfOneEach) {
  std::vector<Buffer> buffers;
  for (int layer = 0; layer < 10; ++layer) add_row(buffers, {11, 12, 13, 14, 15});
  for (int i = 0; i < 100; ++i) add_row(buffers, {1});
  const std::optional<Folded> folded = fold_repeats(buffers);
  ASSERT_TRUE(folded);
  EXPECT_GE(folded->part.size(), 2U);
}

TEST(Repeats, OfManyLengthsThatAreSeenOnceTheOneThatIsSeenOftenIsFound) {
  for (const int layers_first : {0, 40, 80}) {
    SCOPED_TRACE(testing::Message() << "after " << layers_first << " lengths");
    std::vector<Buffer> buffers;
    std::uint64_t other = 100;
    for (int length = 0; length < 80; ++length) {
      if (length == layers_first)
        for (int layer = 0; layer < 150; ++layer) add_row(buffers, {11, 12, 13, 14, 15, 16, 17});
      const std::uint64_t a = other++;
      add_row(buffers, {a, a, a + 1000000, a});
      for (int i = 0; i < length + 5; ++i) add_row(buffers, {other++});
      add_row(buffers, {a, a, a + 1000000, a});
    }
    if (layers_first == 80)
      for (int layer = 0; layer < 150; ++layer) add_row(buffers, {11, 12, 13, 14, 15, 16, 17});
    const std::optional<Folded> folded = fold_repeats(buffers);
    ASSERT_TRUE(folded);
    EXPECT_EQ(folded->part.size(), 7U);
    EXPECT_GE(folded->copies.size(), 149U);
  }
}

TEST(Repeats, AModelOfManyLayersIsPackedAsLowAsItCanBe) {
  std::mt19937_64 random(kSeed);
  const std::vector<Buffer> buffers = layered_problem(random, 400, 20);
  const PackResult result = pack(buffers, {.time_limit_seconds = 2});
  expect_sound(buffers, result);
  EXPECT_LE(result.height, result.lower_bound + result.lower_bound / 100) << result.method;
}

// By size alone the few long ones come first, and the many short ones then find no room below them all their lives.
TEST(Packing, LongBuffersBesideManyShortOnesArePackedTightly) {
  std::mt19937_64 random(kSeed);
  std::vector<Buffer> buffers, living;
  for (std::int64_t time = 0; time < 6000; ++time) {
    if (living.size() == 400) {
      std::swap(living[random() % living.size()], living.back());
      living.back().upper = time;
      buffers.push_back(living.back());
      living.pop_back();
    }
    const bool is_long = random() % 200 == 0;
    living.push_back(
        {.lower = time, .upper = 6000, .size = is_long ? 100'000 + random() % 300'000 : 1 + random() % 100});
  }
  buffers.insert(buffers.end(), living.begin(), living.end());
  const std::uint64_t load = Timeline(buffers).lower_bound();
  const PackResult result = pack(buffers, {.capacity = load + load / 50, .time_limit_seconds = 60});
  expect_sound(buffers, result);
  EXPECT_LE(result.height, load + load / 50) << result.method << ", seed " << kSeed;
}

TEST(Timeline, SectionsAndLoad) {
  const std::vector<Buffer> buffers = {
      {.lower = 0, .upper = 3, .size = 1}, {.lower = 1, .upper = 5, .size = 2}, {.lower = 3, .upper = 6, .size = 4}};
  const Timeline timeline(buffers);
  EXPECT_EQ(timeline.sections(), 2U);
  EXPECT_EQ(timeline.load(), (std::vector<std::uint64_t>{3, 6}));
  EXPECT_EQ(timeline.lower_bound(), 6U);
}

TEST(Timeline, WhatAlignmentsAddIsInTheBound) {
  const std::vector<Buffer> buffers = {{.lower = 0, .upper = 1, .size = 10, .alignment = 8},
                                       {.lower = 0, .upper = 1, .size = 10, .alignment = 8}};
  EXPECT_EQ(Timeline(buffers).lower_bound(), 25U);
  const PackResult result = pack(buffers);
  EXPECT_EQ(result.height, 26U);
  EXPECT_TRUE(result.is_optimal());
}

TEST(Components, PartInTime) {
  const std::vector<Buffer> buffers = {{.lower = 4, .upper = 6, .size = 1},
                                       {.lower = 0, .upper = 3, .size = 1},
                                       {.lower = 2, .upper = 4, .size = 1},
                                       {.lower = 5, .upper = 7, .size = 1}};
  EXPECT_EQ(components(buffers), (std::vector<std::vector<std::uint32_t>>{{1, 2}, {0, 3}}));
}

}  // namespace
}  // namespace tenon::packing
