// The parts of mortise that are asked at every request: where a tile lies, which free tile suffices, what a step
// expects.
#include <mortise/chain.h>
#include <mortise/free_tiles.h>
#include <mortise/quick_tiles.h>
#include <mortise/stream_cache.h>
#include <mortise/stripes.h>
#include <tiled/rhythm.h>

#include <tenon/core/units.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace tenon::mortise {
namespace {

constexpr unsigned kPartsSeed = 47;
constexpr std::size_t kPartsPage = 2 * MiB;

/// A range of one tile, which is cut and joined at random.
class CutRange {
 public:
  CutRange() : live_{&first_} {
    first_.address = kBegin;
    first_.bytes = kBytes;
    stripes.cover(kBegin, kBytes);
    stripes.came(&first_);
  }
  void change(std::mt19937_64& random) {
    Tile* tile = live_[random() % live_.size()];
    if (live_.size() < 300 && tile->bytes > kGrain) {
      const std::size_t kept = (1 + random() % (tile->bytes / kGrain - 1)) * kGrain;
      spare_.push_back(std::make_unique<Tile>(
          Tile{.address = tile->address + kept, .bytes = tile->bytes - kept, .left = tile, .right = tile->right}));
      Tile* rest = spare_.back().get();
      if (rest->right != nullptr) rest->right->left = rest;
      tile->right = rest;
      tile->bytes = kept;
      stripes.came(rest);
      live_.push_back(rest);
    } else if (tile->left != nullptr) {
      stripes.goes(tile);
      tile->left->bytes += tile->bytes;
      tile->left->right = tile->right;
      if (tile->right != nullptr) tile->right->left = tile->left;
      std::erase(live_, tile);
    }
  }
  void ask(std::mt19937_64& random) {
    const std::uintptr_t address = kBegin + random() % kBytes;
    const Tile* found = stripes.at_or_before(address, &first_);
    EXPECT_LE(found->address, address);
    EXPECT_GT(found->end(), address);
  }
  bool is_right() { return stripes.agrees_with(&first_); }

 private:
  static constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 40;
  static constexpr std::size_t kBytes = 256 * MiB;
  Stripes stripes;
  Tile first_;
  std::vector<Tile*> live_;
  std::vector<std::unique_ptr<Tile>> spare_;
};

TEST(MortiseStripes, KnowWhereTilesLieAfterNobodyHasAskedForAWhile) {
  SCOPED_TRACE(testing::Message() << "seed " << kPartsSeed);
  std::mt19937_64 random(kPartsSeed);
  CutRange range;
  for (int phase = 0; phase < 4; ++phase) {
    for (int step = 0; step < 500; ++step) {
      range.change(random);
      ASSERT_TRUE(range.is_right());
      range.ask(random);
    }
    for (int step = 0; step < 10'000; ++step) range.change(random);
    for (int step = 0; step < 500; ++step) range.ask(random);
    ASSERT_TRUE(range.is_right());
  }
}

TEST(MortiseFreeTiles, AreFoundAsLongAsTheyAreThere) {
  SCOPED_TRACE(testing::Message() << "seed " << kPartsSeed);
  std::mt19937_64 random(kPartsSeed);
  const auto bytes = [&] { return (1 + random() % (std::size_t{1} << random() % 27)) * kGrain; };  // up to 64 GiB
  const auto free = std::make_unique<FreeTiles>();
  std::vector<std::unique_ptr<Tile>> tiles;
  EXPECT_EQ(free->any(), nullptr);
  for (int step = 0; step < 20'000; ++step) {
    if (tiles.size() < 3 || (tiles.size() < 200 && random() % 2 == 0)) {
      tiles.push_back(std::make_unique<Tile>());
      tiles.back()->bytes = bytes();
      free->insert(tiles.back().get());
    } else {
      std::swap(tiles[random() % tiles.size()], tiles.back());
      free->erase(tiles.back().get());
      tiles.pop_back();
    }
    const std::size_t wanted = bytes();
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    for (const auto& tile : tiles)
      if (tile->bytes >= wanted) shortest = std::min(shortest, tile->bytes);
    const Tile* found = free->find(wanted);
    const Tile* best =
        free->shortest(wanted, std::numeric_limits<std::size_t>::max(), [](const Tile&) { return true; });
    ASSERT_EQ(best != nullptr ? best->bytes : std::numeric_limits<std::size_t>::max(), shortest);
    if (found != nullptr) {
      ASSERT_GE(found->bytes, wanted);
    }
    std::size_t count = 0;
    free->for_each([&](const Tile*) { ++count; });
    ASSERT_EQ(count, tiles.size());
  }
  while (Tile* tile = free->any()) free->erase(tile);
  EXPECT_EQ(free->find(kGrain), nullptr);
}

/// A step of forty activations; a burst of gradients comes at another moment in each.
template <class Request>
void play_step(int step, Request&& request) {
  for (int i = 0; i < 40; ++i) {
    if (i == 5 + 9 * step)
      for (int gradient = 0; gradient < 12; ++gradient) request(Purpose::kGradient, 100 + gradient);
    request(Purpose::kActivation, i % 4 == 0 ? 4 : i);
  }
}

/// What is left of its tile is a page's beginning or end, not its middle.
TEST(MortiseStreamCache, ALongBlockLeavesWhatAJointCanUse) {
  TilePool pool;
  StreamCache cache({}, 0, pool, kPartsPage);
  const std::uintptr_t at = std::uintptr_t{1} << 40;
  cache.provide_chain(0, at, at + 4 * kPartsPage);
  cache.add(0, kLarge, at, 1536 * KiB);
  const Tile* tile = cache.take(kLarge, 1 * MiB);
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(tile->address, at + 512 * KiB) << "the page's beginning is left";
  cache.add(0, kLarge, at + 2 * kPartsPage + 512 * KiB, 1536 * KiB);
  tile = cache.take(kLarge, 1 * MiB);
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(tile->address, at + 2 * kPartsPage + 512 * KiB) << "its end is left";
}

TEST(MortiseQuickTiles, OfSizesThatDoNotComeAgainNoneIsKeptForAWhile) {
  std::vector<Tile> tiles(100);
  QuickTiles quick;
  const auto push = [&](std::size_t i) { return quick.push(&tiles[i], (i + 1) * kCoarseGrain); };
  const auto flush = [&] {
    std::size_t count = 0;
    while (quick.pop_any() != nullptr) ++count;
    quick.were_taken(count);
    return count;
  };
  for (std::size_t i = 0; i < tiles.size(); ++i) ASSERT_TRUE(push(i));
  for (std::size_t i = 0; i < tiles.size(); ++i) ASSERT_NE(quick.pop((i + 1) * kCoarseGrain), nullptr);
  for (std::size_t i = 0; i < tiles.size(); ++i) ASSERT_TRUE(push(i));
  EXPECT_EQ(flush(), tiles.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) EXPECT_TRUE(push(i)) << "each has served a request";
  EXPECT_EQ(flush(), tiles.size());
  EXPECT_FALSE(push(0)) << "none has";
  int passed = 1;
  while (!push(0)) ASSERT_LT(++passed, 100'000);
}

TEST(MortiseQuickTiles, AreKeptWhereHalfOfThemHaveServedOrFewAreThere) {
  // Of `waiting` tiles that are taken at last, `served` have served a request: whether the next one is kept.
  const auto is_kept_after = [](std::size_t waiting, std::size_t served) {
    std::vector<Tile> tiles(waiting + 1);
    QuickTiles quick;
    for (std::size_t i = 0; i < waiting; ++i) EXPECT_TRUE(quick.push(&tiles[i], (i + 1) * kCoarseGrain));
    for (std::size_t i = 0; i < served; ++i) {
      EXPECT_EQ(quick.pop((i + 1) * kCoarseGrain), &tiles[i]);
      EXPECT_TRUE(quick.push(&tiles[i], (i + 1) * kCoarseGrain));
    }
    std::size_t count = 0;
    while (quick.pop_any() != nullptr) ++count;
    EXPECT_EQ(count, waiting);
    quick.were_taken(count);
    return quick.push(&tiles.back(), kCoarseGrain);
  };
  EXPECT_TRUE(is_kept_after(64, 32));
  EXPECT_FALSE(is_kept_after(64, 31));
  EXPECT_FALSE(is_kept_after(100, 49));
  EXPECT_TRUE(is_kept_after(100, 50));
  EXPECT_TRUE(is_kept_after(63, 0)) << "too few to judge";
}

TEST(MortiseRhythms, RequestsOfAnotherPurposeDoNotComeBetween) {
  using Counting = tiled::Rhythm<int>;
  const auto found_in_the_third_step = [](auto&& rhythm_of) {
    std::map<Counting*, int> noted;
    int found = 0;
    for (int step = 0; step < 3; ++step) {
      std::map<Counting*, int> in_step;
      play_step(step, [&](Purpose purpose, int size) {
        Counting* const rhythm = rhythm_of(purpose);
        const Counting::Key key = Counting::key_of({}, static_cast<std::size_t>(size) * MiB);
        const int* const place = rhythm->expect(key);
        // As far in the step before.
        if (step == 2 && place != nullptr && *place == 1000 + in_step[rhythm]) ++found;
        rhythm->note(key, 1000 * step + in_step[rhythm]++);
      });
    }
    return found;
  };
  tiled::Rhythms<Counting> apart;
  EXPECT_EQ(found_in_the_third_step([&](Purpose purpose) { return apart.of(purpose); }), 40 + 12);
  Counting together(false);
  EXPECT_LT(found_in_the_third_step([&](Purpose) { return &together; }), 40)
      << "the test has to see what comes between";
  EXPECT_EQ(apart.of(Purpose::kParameter), nullptr) << "it is kept, and does not come again";
}

/// A step that is tried once more would end the same, were it served at the same places.
TEST(MortiseRhythms, AfterASecondRequestWithoutMemoryNothingIsExpected) {
  tiled::Rhythms<tiled::Rhythm<int>> rhythms;
  const auto expected_in = [&](int steps) {
    int expected = 0;
    for (int step = 0; step < steps; ++step)
      for (int i = 0; i < 40; ++i) {
        const auto key = tiled::Rhythm<int>::key_of({}, static_cast<std::size_t>(i + 1) * MiB);
        auto* const rhythm = rhythms.of(Purpose::kActivation);
        expected += rhythm->expect(key) != nullptr ? 1 : 0;
        rhythm->note(key, i);
      }
    return expected;
  };
  expected_in(3);
  EXPECT_EQ(expected_in(1), 40);
  rhythms.ran_out();
  EXPECT_EQ(expected_in(1), 40) << "it may have been that one step";
  rhythms.ran_out();
  EXPECT_EQ(expected_in(1), 0);
  EXPECT_GT(expected_in(2), 60) << "and is learnt anew";
  rhythms.ran_out();
  expected_in(200);
  rhythms.ran_out();
  EXPECT_EQ(expected_in(1), 40) << "long after the first";
}

TEST(MortiseRecords, AreHandedFromStreamToStreamAndNoneIsLostOrThereTwice) {
  constexpr std::size_t kBatch = TilePool::kBatch;
  TilePool pool;
  TileStore store(pool), other(pool);
  std::set<Tile*> all;
  const auto take_from = [&](TileStore& from, std::size_t count) {
    std::vector<Tile*> taken;
    for (std::size_t i = 0; i < count; ++i) {
      taken.push_back(from.take());
      EXPECT_EQ(taken.back()->bytes, 0u) << "a new one";
      EXPECT_EQ(taken.back()->left, nullptr);
      taken.back()->bytes = taken.back()->address = 7;
      taken.back()->left = taken.back();
    }
    return taken;
  };
  std::vector<Tile*> taken = take_from(store, 3 * kBatch + 5);
  all.insert(taken.begin(), taken.end());
  EXPECT_EQ(all.size(), taken.size()) << "none is there twice";
  for (Tile* tile : taken) store.give(tile);
  store.give_surplus();
  // What is left there is less than three batches; one went to the pool, and the other stream gets it first.
  std::vector<Tile*> handed = take_from(other, kBatch);
  EXPECT_EQ(std::set<Tile*>(handed.begin(), handed.end()).size(), kBatch);
  for (Tile* tile : handed) EXPECT_TRUE(all.contains(tile));
  std::vector<Tile*> rest = take_from(store, 2 * kBatch + 5);
  for (Tile* tile : rest) {
    EXPECT_TRUE(all.contains(tile));
    EXPECT_EQ(std::ranges::count(handed, tile), 0);
  }
  for (Tile* tile : rest) store.give(tile);
  store.give_all();
  for (Tile* tile : handed) other.give(tile);
  other.give_all();
  std::vector<Tile*> again = take_from(store, 3 * kBatch + 5);
  EXPECT_EQ(std::set<Tile*>(again.begin(), again.end()).size(), again.size());
  EXPECT_TRUE(std::ranges::any_of(again, [&](Tile* tile) { return tile == handed.back(); })) << "of those given back";
}

TEST(MortiseRecords, WhatIsProvidedCanBeTakenWithoutMore) {
  for (const std::size_t count : {0U, 1U, 1023U, 1024U, 1025U, 5000U}) {
    TilePool pool;
    TileStore store(pool);
    store.provide(count);
    std::set<Tile*> taken;
    for (std::size_t i = 0; i < count; ++i) taken.insert(store.take());
    EXPECT_EQ(taken.size(), count);
  }
}

TEST(MortiseRecords, BatchesComeBackTheLastFirstEachAsLongAsItWas) {
  TilePool pool;
  std::size_t count = 0;
  Tile* const first = pool.more(count);
  EXPECT_GT(count, 2u);
  std::size_t linked = 1;
  for (const Tile* tile = first; tile->next != nullptr; tile = tile->next) ++linked;
  EXPECT_EQ(linked, count);
  Tile* const second = first->next;
  first->next = nullptr;
  pool.give(first, 1);
  pool.give(second, count - 1);
  std::size_t got = 0;
  EXPECT_EQ(pool.more(got), second);
  EXPECT_EQ(got, count - 1);
  EXPECT_EQ(pool.more(got), first);
  EXPECT_EQ(got, 1u);
  EXPECT_NE(pool.more(got), first);
}

TEST(MortiseChains, FindTheLastTileThatBeginsAtAnAddressOrBeforeItAmongThoseThatCameAndWent) {
  std::mt19937_64 random(kPartsSeed);
  constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 40;
  constexpr std::size_t kTiles = 64, kStep = 4 * MiB;
  for (int round = 0; round < 20; ++round) {
    Chain chain;
    EXPECT_FALSE(chain.covers(kBegin));
    chain.cover(kBegin, kBegin + kTiles * kStep);
    std::map<std::uintptr_t, std::unique_ptr<Tile>> there;
    for (int step = 0; step < 200; ++step) {
      const std::uintptr_t address = kBegin + random() % kTiles * kStep;
      if (const auto found = there.find(address); found != there.end()) {
        chain.erase(found->second.get());
        there.erase(found);
      } else {
        auto tile = std::make_unique<Tile>(Tile{.address = address, .bytes = kStep});
        chain.insert_after(chain.at_or_before(address), tile.get());
        there.emplace(address, std::move(tile));
      }
      ASSERT_EQ(chain.first(), there.empty() ? nullptr : there.begin()->second.get());
      ASSERT_EQ(chain.last(), there.empty() ? nullptr : there.rbegin()->second.get());
      ASSERT_TRUE(chain.agrees());
      const std::uintptr_t asked = kBegin + random() % (kTiles * kStep);
      auto wanted = there.upper_bound(asked);
      if (there.empty()) continue;
      EXPECT_TRUE(chain.covers(asked));
      EXPECT_TRUE(chain.covers(kBegin));
      EXPECT_FALSE(chain.covers(kBegin - 1));
      EXPECT_FALSE(chain.covers(kBegin + kTiles * kStep));
      if (asked < there.begin()->first) {
        ASSERT_EQ(chain.at_or_before(asked), nullptr);
        continue;
      }
      ASSERT_EQ(chain.at_or_before(asked), std::prev(wanted)->second.get());
      const Tile* tile = chain.first();
      for (const auto& [at, each] : there) {
        ASSERT_EQ(tile, each.get());
        tile = tile->right;
      }
      ASSERT_EQ(tile, nullptr);
    }
  }
}

}  // namespace
}  // namespace tenon::mortise
