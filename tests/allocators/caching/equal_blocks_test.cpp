// Blocks of one size against ordered sets: several of them share a store of heaps, so that each grows into memory where
// others were.
#include <caching/arena/equal_blocks.h>

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tenon::caching {
namespace {

using BlocksByOrder = std::map<std::uint64_t, BlockRecord*>;

struct OneSize {
  EqualBlocks equal;
  BlocksByOrder model;
};

void insert_into(OneSize& one, BlockRecord* block, HeapStore& heaps) {
  one.model.empty() ? one.equal.set_single(block) : one.equal.insert_beside(block, heaps);
  one.model[block->order] = block;
}

void erase_from(OneSize& one, std::uint64_t order, HeapStore& heaps) {
  BlockRecord* const block = one.model.at(order);
  if (one.model.size() > 1) one.equal.erase(block, heaps);
  one.model.erase(order);
}

void expect_as_in_order(const OneSize& one, std::uint64_t asked) {
  if (one.model.empty()) return;
  ASSERT_EQ(one.equal.first(), one.model.begin()->second);
  ASSERT_EQ(one.equal.is_single(), one.model.size() == 1);
  const auto next = one.model.upper_bound(asked);
  ASSERT_EQ(one.equal.after(asked), next == one.model.end() ? nullptr : next->second);
  std::vector<BlockRecord*> wanted;
  for (const auto& [order, block] : one.model) wanted.push_back(block);
  ASSERT_EQ(one.equal.in_order(), wanted);
}

TEST(EqualBlocksModel, TheFirstTheNextAndAllInOrderAreThoseOfASetInWhateverMemory) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    HeapStore heaps;
    std::vector<std::unique_ptr<BlockRecord>> blocks;
    std::vector<OneSize> sizes(4);
    // What is filled and emptied leaves low orders in its heaps, or high ones; those that come get others.
    for (int step = 0; step < 400; ++step) {
      const std::size_t which = random() % sizes.size();
      OneSize& one = sizes[which];
      const bool fills = (step / 50 + static_cast<int>(which)) % 2 == 0;
      if (one.model.empty() || random() % 8 < (fills ? 7U : 2U)) {
        const std::uint64_t order = (random() % 2 == 0 ? 0 : 1'000'000'000) + random() % 100'000;
        if (one.model.contains(order)) continue;
        blocks.push_back(std::make_unique<BlockRecord>());
        blocks.back()->order = order;
        insert_into(one, blocks.back().get(), heaps);
      } else {
        auto victim = one.model.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>(random() % one.model.size() / (1 + random() % 3)));
        erase_from(one, victim->first, heaps);
      }
      const std::uint64_t asked = random() % 2 == 0 ? random() % 100'000 : 999'999'999 + random() % 100'000;
      for (const OneSize& each : sizes) expect_as_in_order(each, asked);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tenon::caching
