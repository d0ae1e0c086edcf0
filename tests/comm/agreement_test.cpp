// Ranks that come to collectives with the same, or not: who may begin.
#include <tenon/comm/agreement.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace tenon {
namespace {

CollectiveSignature of(std::uint64_t count) {
  return {.kind = CommKind::kAllReduce, .dtype = Dtype::kFloat32, .op = ReduceOp::kSum, .root = 0, .count = count};
}

/// Ranks whose messages arrive in order, from each, and otherwise when chance has it.
class Ranks {
 public:
  explicit Ranks(int size) : ways_(static_cast<std::size_t>(size * size)), size_(size) {
    for (int rank = 0; rank < size; ++rank)
      ranks_.push_back(std::make_unique<Agreement>(rank, size, [this, rank](int to, const CollectiveSignature& what) {
        ways_[static_cast<std::size_t>(to * size_ + rank)].push_back(what);
        ++sent_;
      }));
  }
  Agreement& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  int sent() const { return sent_; }

  void deliver_all(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::size_t> order(ways_.size());
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::ranges::shuffle(order, random);
      for (const std::size_t way : order) {
        if (ways_[way].empty()) continue;
        Agreement& to = (*this)[static_cast<int>(way) / size_];
        to.hear(static_cast<int>(way) % size_, ways_[way].front());
        ways_[way].pop_front();
        static_cast<void>(to.advance());
        has_moved = true;
      }
    }
  }

 private:
  std::vector<std::unique_ptr<Agreement>> ranks_;
  std::vector<std::deque<CollectiveSignature>> ways_;
  int size_, sent_ = 0;
};

TEST(Agreement, OfRanksWithTheSameAllBeginEveryCollective) {
  for (const int size : {1, 2, 3, 7, 8, 9, 17, 64, 65}) {
    Ranks ranks(size);
    for (int number = 1; number <= 3; ++number)
      for (int rank = 0; rank < size; ++rank) ranks[rank].announce(of(static_cast<std::uint64_t>(number)));
    ranks.deliver_all(1);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_TRUE(ranks[rank].advance());
      EXPECT_EQ(ranks[rank].agreed(), 3) << rank << " of " << size;
    }
  }
}

TEST(Agreement, NoTwoRanksThatBeginHaveDifferentThings) {
  std::mt19937 random(2);
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const int size = std::uniform_int_distribution<int>(2, 20)(random);
    Ranks ranks(size);
    const int first = std::uniform_int_distribution<int>(0, size - 1)(random);
    const int count = std::uniform_int_distribution<int>(1, size - 1)(random);
    for (int rank = 0; rank < size; ++rank) {
      const bool is_other = (rank - first + size) % size < count;
      ranks[rank].announce(of(7));
      ranks[rank].announce(of(is_other ? 100 : 200));
    }
    ranks.deliver_all(seed);
    bool somebody_knows = false;
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(ranks[rank].agreed(), 1) << rank << " of " << size;
      if (ranks[rank].advance()) continue;
      somebody_knows = true;
      EXPECT_NE(ranks[rank].other()->second, ranks[rank].own(2));
    }
    EXPECT_TRUE(somebody_knows);
  }
}

TEST(Agreement, NobodyBeginsBeforeTheLastRankHasCome) {
  Ranks ranks(20);
  for (int rank = 0; rank < 20; ++rank)
    if (rank != 13) ranks[rank].announce(of(1));
  ranks.deliver_all(3);
  for (int rank = 0; rank < 20; ++rank) EXPECT_EQ(ranks[rank].agreed(), 0);
  ranks[13].announce(of(1));
  ranks.deliver_all(4);
  for (int rank = 0; rank < 20; ++rank) EXPECT_EQ(ranks[rank].agreed(), 1);
}

TEST(Agreement, TakesAFewMessagesOfEachRank) {
  Ranks four(4), many(64);
  for (int rank = 0; rank < 4; ++rank) four[rank].announce(of(1));
  for (int rank = 0; rank < 64; ++rank) many[rank].announce(of(1));
  four.deliver_all(5);
  many.deliver_all(5);
  EXPECT_EQ(four.sent(), 4 * 3);
  EXPECT_EQ(many.sent(), 64 * 14);
}

}  // namespace
}  // namespace tenon
