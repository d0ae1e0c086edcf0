// OrderedTiles and ListedTiles choose as the plainest containers do.
#include <tiled/listed_tiles.h>
#include <tiled/ordered_tiles.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace tenon::tiled {
namespace {

using BySize = std::set<std::pair<std::size_t, std::uintptr_t>>;
using ByAddress = std::set<std::pair<std::uintptr_t, std::size_t>>;

std::uintptr_t address_of(const Tile* tile) { return tile ? tile->address : 0; }

TEST(OrderedTiles, FindTheSmallestThatSufficesAndOfEqualOnesTheLowest) {
  std::mt19937_64 random(48);
  std::vector<Tile> tiles(300);
  std::vector<bool> is_in(tiles.size());
  OrderedTiles ordered;
  ListedTiles listed;
  std::vector<Tile> twins(tiles.size());  // a tile hangs in one index at a time
  BySize by_size;
  ByAddress by_address;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random() % tiles.size();
    Tile &tile = tiles[i], &twin = twins[i];
    if (is_in[i]) {
      ordered.erase(&tile);
      listed.erase(&twin);
      by_size.erase({tile.bytes, tile.address});
      by_address.erase({tile.address, tile.bytes});
    } else {
      tile.address = twin.address = 512 * (i + 1);
      tile.bytes = twin.bytes = 512 * (1 + random() % 40);
      ordered.insert(&tile);
      listed.insert(&twin);
      by_size.insert({tile.bytes, tile.address});
      by_address.insert({tile.address, tile.bytes});
    }
    is_in[i] = !is_in[i];
    ASSERT_EQ(ordered.holds(&tile), is_in[i]) << "step " << step;
    ASSERT_EQ(listed.holds(&twin), is_in[i]) << "step " << step;
    ASSERT_EQ(ordered.empty(), by_size.empty()) << "step " << step;

    const std::size_t bytes = 512 * (1 + random() % 42);
    const auto best = by_size.lower_bound({bytes, 0});
    ASSERT_EQ(address_of(ordered.find(bytes)), best == by_size.end() ? 0 : best->second) << "step " << step;
    const auto first = std::ranges::find_if(by_address, [&](const auto& entry) { return entry.second >= bytes; });
    ASSERT_EQ(address_of(listed.find(bytes)), first == by_address.end() ? 0 : first->first) << "step " << step;
  }
}

}  // namespace
}  // namespace tenon::tiled
