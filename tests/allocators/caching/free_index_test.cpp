// The index of free blocks against an ordered set: exact best fit, ties by order, at every size and in any number.
#include <caching/arena/free_index.h>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace tenon::caching {
namespace {

struct ByKey {
  bool operator()(const BlockRecord* a, const BlockRecord* b) const {
    return BlockKey{a->bytes, a->order} < BlockKey{b->bytes, b->order};
  }
};

/// Inserts, erases and looks up at random, from `at_once` blocks on; `size` draws the size of a block. Then everything
/// leaves by request, smallest first.
template <class Size>
void compare_with_a_set(std::size_t most_blocks, int steps, unsigned seed, Size size, std::size_t at_once = 0) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<BlockRecord>> blocks;
  std::set<BlockRecord*, ByKey> model;
  std::vector<BlockRecord*> inside, outside;
  FreeIndex index;
  for (std::size_t i = 0; i < most_blocks; ++i) {
    blocks.push_back(std::make_unique<BlockRecord>());
    blocks.back()->order = i * 2;
    outside.push_back(blocks.back().get());
  }
  const auto move_one = [&](std::vector<BlockRecord*>& from, std::vector<BlockRecord*>& to) {
    std::swap(from[random() % from.size()], from.back());
    BlockRecord* block = from.back();
    from.pop_back();
    to.push_back(block);
    return block;
  };
  for (int step = 0; step < steps; ++step) {
    while (step == 0 && inside.size() < at_once) {
      BlockRecord* block = move_one(outside, inside);
      block->bytes = size(random);
      index.insert(block);
      model.insert(block);
    }
    if (!outside.empty() && (inside.empty() || random() % 5 < 3)) {
      BlockRecord* block = move_one(outside, inside);
      block->bytes = size(random);
      index.insert(block);
      model.insert(block);
    } else {
      BlockRecord* block = move_one(inside, outside);
      index.erase(block);
      model.erase(block);
    }
    BlockRecord wanted{};
    wanted.bytes = size(random);
    const auto expected = model.lower_bound(&wanted);
    ASSERT_EQ(index.at_least(wanted.bytes), expected == model.end() ? nullptr : *expected) << "step " << step;
    if (expected != model.end()) {
      const auto next = std::next(expected);
      ASSERT_EQ(index.after(*expected), next == model.end() ? nullptr : *next) << "step " << step;
    }
  }
  std::vector<BlockRecord*> in_order;
  index.for_each([&](BlockRecord* block) { in_order.push_back(block); });
  EXPECT_EQ(in_order, std::vector<BlockRecord*>(model.begin(), model.end()));
  for (BlockRecord* expected : model) {
    BlockRecord* first = index.at_least(0);
    ASSERT_EQ(first, expected);
    index.erase(first);
  }
  EXPECT_EQ(index.at_least(0), nullptr);
}

TEST(FreeIndex, FindsTheSmallestSufficientBlockOfManySizes) {
  compare_with_a_set(500, 20000, 1, [](std::mt19937_64& random) {
    return static_cast<std::size_t>(std::exp2(std::uniform_real_distribution<double>(9, 47)(random))) &
           ~std::size_t{511};
  });
}

TEST(FreeIndex, FindsItAmongThousandsOfEqualOnes) {
  compare_with_a_set(20000, 60000, 2, [](std::mt19937_64& random) { return 4096 * (1 + random() % 2); });
}

TEST(FreeIndex, FindsItWhereSizesDifferByBytes) {
  compare_with_a_set(2000, 20000, 3, [](std::mt19937_64& random) { return 1 + random() % 3000; });
}

TEST(FreeIndex, FindsItAmongAHundredThousandOfOneSize) {
  compare_with_a_set(
      150000, 100000, 5, [](std::mt19937_64&) { return std::size_t{512}; }, 100000);
}

TEST(FreeIndex, FindsItAmongAHundredThousandWhoseSizesDifferByBytes) {
  compare_with_a_set(
      150000, 100000, 6, [](std::mt19937_64& random) { return 4097 + random() % 500; }, 100000);
}

TEST(FreeIndex, FindsItAmongAHundredThousandOfManySizes) {
  const auto size = [](std::mt19937_64& random) {
    return static_cast<std::size_t>(std::exp2(std::uniform_real_distribution<double>(9, 30)(random))) &
           ~std::size_t{511};
  };
  compare_with_a_set(150000, 100000, 7, size, 100000);
}

TEST(FreeIndex, FindsItWhereFewSizesCrowdAndSomeLieBetweenThem) {
  // Fragments: most are of a few small sizes, some are odd, some large.
  const auto size = [](std::mt19937_64& random) {
    const std::size_t small = 512 * (1 + random() % 4);
    return random() % 8 != 0 ? small : small + random() % 512 + (random() % 4 == 0 ? 5 * MiB : 0);
  };
  compare_with_a_set(150000, 100000, 8, size, 100000);
}

TEST(FreeIndex, FindsItAtTheBordersOfTheClasses) {
  compare_with_a_set(300, 20000, 4, [](std::mt19937_64& random) {
    return (std::size_t{1} << (9 + random() % 38)) + 512 * (random() % 3) - 512 * (random() % 2);
  });
}

}  // namespace
}  // namespace tenon::caching
