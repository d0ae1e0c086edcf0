// Greedy passes: each is sound, and finds what it is there for.
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/pack.h>

#include <memory/packing/random_problem.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace tenon::packing {
namespace {

constexpr unsigned kGreedySeed = 47;

TEST(Greedy, EveryPassIsSound) {
  std::mt19937_64 random(kGreedySeed);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kGreedySeed << ", problem " << i);
    const std::vector<Buffer> buffers =
        random_problem(random, {.buffers = 200, .times = 60, .sizes = 40, .most_alignment = 8});
    Workspace work(buffers);
    Offsets offsets;
    for (const Ordering& ordering : kOrderings) {
      EXPECT_FALSE(first_fit(work, order_by(work, ordering), kMaxBytes, offsets).failed);
      EXPECT_EQ(flaw_of(buffers, offsets), "") << name_of(ordering.criterion);
    }
    EXPECT_EQ(flaw_of(buffers, split_and_fuse(work)), "");
    for (const double usage : {0.3, 0.7, 1.0})
      EXPECT_EQ(flaw_of(buffers, fit_groups(work, {Criterion::kBirth}, usage)), "") << usage;
    EXPECT_EQ(flaw_of(buffers, birth_best_fit(work)), "");
    EXPECT_EQ(flaw_of(buffers, death_best_fit(work)), "");
    for (const bool is_backwards : {false, true})
      EXPECT_EQ(flaw_of(buffers, fit_beside_alike(work, is_backwards, 2)), "") << is_backwards;
  }
}

/// Caches of a decoder: at each token each is copied into a longer one, which is there before the shorter one goes.
std::vector<Buffer> growing_caches(std::uint64_t caches, std::int64_t tokens) {
  std::vector<Buffer> buffers;
  const auto count = static_cast<std::int64_t>(caches);
  for (std::int64_t token = 0; token < tokens; ++token)
    for (std::int64_t cache = 0; cache < count; ++cache) {
      const std::int64_t birth = token * count + cache;
      buffers.push_back(
          {.lower = birth, .upper = birth + count + 1, .size = 8 * static_cast<std::uint64_t>(token + 1)});
    }
  return buffers;
}

// From their beginnings each is a little longer than the hole that the last one left.
TEST(Greedy, WhatGrowsByBeingCopiedIsPackedFromItsEnd) {
  const std::vector<Buffer> buffers = growing_caches(24, 60);
  const Workspace work(buffers);
  const std::uint64_t load = work.timeline.lower_bound();
  EXPECT_GT(height_of(buffers, birth_best_fit(work)), load + load / 50);
  EXPECT_EQ(height_of(buffers, death_best_fit(work)), load);
  EXPECT_EQ(pack(buffers, {.time_limit_seconds = 1e-9}).height, load) << "without any time, too";
}

// Of two sizes in turn one lives ten times as long: among the short ones the long ones would leave holes that no two of
// them fill.
TEST(Greedy, WhatEndsAlikeLiesTogether) {
  std::mt19937_64 random(kGreedySeed);
  std::vector<Buffer> buffers;
  for (std::int64_t time = 0; time < 3000; ++time) {
    const auto life = static_cast<std::int64_t>(random() % 10 == 0 ? 1000 + random() % 1000 : 20 + random() % 20);
    buffers.push_back({.lower = time, .upper = time + life, .size = 50 + random() % 100});
  }
  const Workspace work(buffers);
  EXPECT_EQ(flaw_of(buffers, fit_beside_alike(work, false, 2)), "");
  EXPECT_LT(height_of(buffers, fit_beside_alike(work, false, 2)), height_of(buffers, birth_best_fit(work)))
      << "seed " << kGreedySeed;
}

// Of three layers each makes four buffers that go together; by size, two of one layer would lie with two of another.
TEST(Greedy, AGroupIsPlacedAsOne) {
  std::vector<Buffer> buffers;
  for (std::int64_t layer = 0; layer < 3; ++layer)
    for (std::uint64_t size : {40, 7, 20, 9})
      buffers.push_back({.lower = 10 * layer, .upper = 10 * layer + 14, .size = size});
  Workspace work(buffers);
  const Offsets offsets = fit_groups(work, {Criterion::kBirth}, 0.9);
  EXPECT_EQ(flaw_of(buffers, offsets), "");
  for (std::size_t first = 0; first < buffers.size(); first += 4) {
    const std::span<const std::uint64_t> layer = std::span(offsets).subspan(first, 4);
    std::uint64_t top = 0;
    for (std::size_t i = 0; i < 4; ++i) top = std::max(top, layer[i] + buffers[first + i].size);
    EXPECT_EQ(top - std::ranges::min(layer), 76U) << "no other layer's between them";
  }
  EXPECT_EQ(height_of(buffers, offsets), 2 * 76U);
}

TEST(Greedy, ByLoadThoseComeFirstThatLiveAtTheFullestMoments) {
  std::mt19937_64 random(kGreedySeed);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kGreedySeed << ", problem " << i);
    const std::vector<Buffer> buffers =
        random_problem(random, {.buffers = 50, .times = 40, .sizes = 12, .has_gaps = i % 2 == 0});
    const Workspace work(buffers);
    const auto fullest = [&](std::uint32_t b) {
      std::uint64_t most = 0;
      for (const Piece& piece : work.timeline.pieces(b))
        for (std::uint32_t s = piece.begin; s < piece.end; ++s) most = std::max(most, work.timeline.load()[s]);
      return most;
    };
    EXPECT_TRUE(std::ranges::is_sorted(order_by(work, {Criterion::kLoad}), std::greater<>(), fullest));
  }
}

TEST(Greedy, FirstFitIsTheLowestFreePlace) {
  std::mt19937_64 random(kGreedySeed);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kGreedySeed << ", problem " << i);
    const std::vector<Buffer> buffers =
        random_problem(random, {.buffers = 30, .times = 20, .sizes = 12, .most_alignment = 4, .has_gaps = i % 2 == 0});
    Workspace work(buffers);
    const Order order = order_by(work, {Criterion::kSize});
    Offsets offsets;
    first_fit(work, order, kMaxBytes, offsets);
    std::vector<Buffer> placed;
    std::vector<std::uint64_t> at;
    for (const std::uint32_t b : order) {
      placed.push_back(buffers[b]);
      at.push_back(0);
      while (!flaw_of(placed, at).empty()) ++at.back();
      ASSERT_EQ(offsets[b], at.back());
    }
  }
}

TEST(Greedy, AFixedBufferMayEndAtTheLimitAndNotBeyondIt) {
  for (const std::uint64_t offset : {0U, 5U, 6U, 7U}) {
    const std::vector<Buffer> buffers = {{.lower = 0, .upper = 2, .size = 4, .offset = offset}};
    Workspace work(buffers);
    Offsets offsets;
    EXPECT_EQ(first_fit(work, {0}, 10, offsets).failed.has_value(), offset == 7) << offset;
  }
}

TEST(Greedy, ReportsWhoDidNotFit) {
  const std::vector<Buffer> buffers = {{.lower = 0, .upper = 2, .size = 4}, {.lower = 1, .upper = 3, .size = 3}};
  Workspace work(buffers);
  Offsets offsets;
  const FirstFit result = first_fit(work, {0, 1}, 6, offsets);
  EXPECT_EQ(result.failed, 1U);
}

}  // namespace
}  // namespace tenon::packing
