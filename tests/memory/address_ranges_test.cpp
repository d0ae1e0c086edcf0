// Ranges in use, held against a set of bytes.
#include <tenon/memory/sources/address_ranges.h>

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tenon {
namespace {

TEST(AddressRanges, RefusesWhatSharesAByteAndSaysWithWhat) {
  AddressRanges<char> ranges;
  EXPECT_TRUE(ranges.add(100, 200, 'a').second);
  EXPECT_TRUE(ranges.add(200, 300, 'b').second) << "they touch";
  const auto [other, is_free] = ranges.add(150, 160, 'c');
  EXPECT_FALSE(is_free);
  EXPECT_EQ(other->first, 100u);
  EXPECT_EQ(other->second.end, 200u);
  EXPECT_EQ(other->second.value, 'a');
  EXPECT_EQ(*ranges.overlapping(199, 201), 'b');
  EXPECT_EQ(ranges.overlapping(300, 400), nullptr);
  ranges.remove(100);
  EXPECT_TRUE(ranges.add(150, 160, 'c').second) << "the first is gone";
}

TEST(AddressRanges, AgreesWithASetOfBytesUnderRandomCalls) {
  constexpr std::uint64_t kSeed = 77;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  AddressRanges<> ranges;
  std::set<std::uint64_t> bytes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t begin = random() % 200, end = begin + 1 + random() % 20;
    const auto first = bytes.lower_bound(begin);
    const bool is_free = first == bytes.end() || *first >= end;
    ASSERT_EQ(ranges.overlapping(begin, end) == nullptr, is_free) << "step " << step;
    if (random() % 2 == 0 || live.empty()) {
      ASSERT_EQ(ranges.add(begin, end).second, is_free) << "step " << step;
      if (!is_free) continue;
      live.emplace_back(begin, end);
      for (std::uint64_t byte = begin; byte < end; ++byte) bytes.insert(byte);
    } else {
      std::swap(live[random() % live.size()], live.back());
      ranges.remove(live.back().first);
      for (std::uint64_t byte = live.back().first; byte < live.back().second; ++byte) bytes.erase(byte);
      live.pop_back();
    }
  }
}

}  // namespace
}  // namespace tenon
