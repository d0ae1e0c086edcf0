// The index of free pieces against an ordered set: exact best fit, ties by order, at every size and in any number.
#include <caching/free_index.h>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace tenon::caching {
namespace {

struct ByKey {
  bool operator()(const Piece* a, const Piece* b) const {
    return PieceKey{a->bytes, a->order} < PieceKey{b->bytes, b->order};
  }
};

/// Inserts, erases and looks up at random, from `at_once` pieces on; `size` draws the size of a piece. Then everything
/// leaves by request, smallest first.
template <class Size>
void compare_with_a_set(std::size_t most_pieces, int steps, unsigned seed, Size size, std::size_t at_once = 0) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<Piece>> pieces;
  std::set<Piece*, ByKey> model;
  std::vector<Piece*> inside, outside;
  FreeIndex index;
  for (std::size_t i = 0; i < most_pieces; ++i) {
    pieces.push_back(std::make_unique<Piece>());
    pieces.back()->order = i * 2;
    outside.push_back(pieces.back().get());
  }
  const auto move_one = [&](std::vector<Piece*>& from, std::vector<Piece*>& to) {
    std::swap(from[random() % from.size()], from.back());
    Piece* piece = from.back();
    from.pop_back();
    to.push_back(piece);
    return piece;
  };
  for (int step = 0; step < steps; ++step) {
    while (step == 0 && inside.size() < at_once) {
      Piece* piece = move_one(outside, inside);
      piece->bytes = size(random);
      index.insert(piece);
      model.insert(piece);
    }
    if (!outside.empty() && (inside.empty() || random() % 5 < 3)) {
      Piece* piece = move_one(outside, inside);
      piece->bytes = size(random);
      index.insert(piece);
      model.insert(piece);
    } else {
      Piece* piece = move_one(inside, outside);
      index.erase(piece);
      model.erase(piece);
    }
    Piece wanted{};
    wanted.bytes = size(random);
    const auto expected = model.lower_bound(&wanted);
    ASSERT_EQ(index.at_least(wanted.bytes), expected == model.end() ? nullptr : *expected) << "step " << step;
    if (expected != model.end()) {
      const auto next = std::next(expected);
      ASSERT_EQ(index.after(*expected), next == model.end() ? nullptr : *next) << "step " << step;
    }
  }
  std::vector<Piece*> in_order;
  index.for_each([&](Piece* piece) { in_order.push_back(piece); });
  EXPECT_EQ(in_order, std::vector<Piece*>(model.begin(), model.end()));
  for (Piece* expected : model) {
    Piece* first = index.at_least(0);
    ASSERT_EQ(first, expected);
    index.erase(first);
  }
  EXPECT_EQ(index.at_least(0), nullptr);
}

TEST(FreeIndex, FindsTheSmallestSufficientPieceOfManySizes) {
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
