// Tiles found, split, merged, and moved to other streams.
#include "stream_cache.h"

#include <tenon/core/units.h>

#include <limits>

namespace tenon::mortise {

namespace {

/// Long enough to lie where large tiles begin.
constexpr std::size_t kMedium = 1 * MiB;
constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

}  // namespace

// Bytes that are free are counted by who calls these: what is cut off or merged stays free.

/// The tile keeps its first bytes; the rest, which is returned, is like it and in no index.
[[gnu::always_inline]] inline Tile* StreamCache::cut(Tile* tile, std::size_t bytes) {
  Tile* rest = records.take();
  rest->address = tile->address + bytes;
  rest->bytes = tile->bytes - bytes;
  rest->cache = this;
  rest->range = tile->range;
  rest->state = tile->state;
  rest->region = tile->region;
  tile->bytes = bytes;
  chains[tile->range].insert_after(tile, rest);
  return rest;
}

/// Its left neighbour takes its place.
[[gnu::always_inline]] inline void StreamCache::unlink(Tile* tile) noexcept {
  tile->left->bytes += tile->bytes;
  chains[tile->range].erase(tile);
  records.give(tile);
}

/// Whether the block should be the tile's last bytes. A short one, so that those that stay do not stand between long
/// ones; a long one where what is left before it touches a page's beginning or end, and what would be left behind it
/// does not: no joint could use that.
bool StreamCache::lies_better_at_end(const Tile& tile, std::size_t bytes) const {
  if (bytes < kMedium) return true;
  if (tile.bytes - bytes >= pages_.bytes()) return false;
  return pages_.are_within_one(tile.address + bytes, tile.end()) &&
         !pages_.are_within_one(tile.address, tile.end() - bytes);
}

void StreamCache::give_back(Tile* tile) noexcept {
  free_bytes.add(tile->bytes);
  if (Tile* left = tile->left; left != nullptr && left->state == TileState::kFree && left->end() == tile->address) {
    leave(left);
    unlink(tile);
    tile = left;
  }
  if (Tile* right = tile->right;
      right != nullptr && right->state == TileState::kFree && tile->end() == right->address) {
    leave(right);
    unlink(right);
  }
  tile->state = TileState::kFree;
  enter(tile);
}

Tile* StreamCache::take(Region region, std::size_t bytes) {
  Tile* tile = free[region].find(bytes);
  if (tile == nullptr) return nullptr;
  records.provide(1);
  free_bytes.subtract(bytes);
  leave(tile);
  if (tile->bytes > bytes) {
    if (region == kLarge && lies_better_at_end(*tile, bytes)) {
      Tile* part = cut(tile, tile->bytes - bytes);
      enter(tile);
      return part;
    }
    enter(cut(tile, bytes));
  }
  return tile;
}

Tile* StreamCache::take_any(Region region, std::size_t bytes) {
  Tile* tile = free[region].shortest(bytes, kAnyBytes, [](const Tile&) { return true; });
  return tile != nullptr ? take_part(tile, tile->address, bytes) : nullptr;
}

Tile* StreamCache::take_fragment(Region region, std::size_t bytes) {
  const auto holds_no_page = [&](const Tile& tile) { return pages_.ceil(tile.address) + pages_.bytes() > tile.end(); };
  Tile* tile = free[region].shortest(bytes, 2 * pages_.bytes(), holds_no_page);
  return tile != nullptr ? take_part(tile, tile->address, bytes) : nullptr;
}

Tile* StreamCache::take_part(Tile* tile, std::uintptr_t address, std::size_t bytes) {
  records.provide(2);
  free_bytes.subtract(bytes);
  leave(tile);
  Tile* part = tile;
  if (address != tile->address) {
    part = cut(tile, address - tile->address);
    enter(tile);
  }
  if (part->bytes > bytes) enter(cut(part, bytes));
  return part;
}

Tile* StreamCache::keep_part(Tile* tile, std::uintptr_t address, std::size_t bytes) noexcept {
  tile->state = TileState::kActive;  // so that what goes back is not merged with it
  Tile* part = tile;
  if (address != tile->address) {
    part = cut(tile, address - tile->address);
    give_back(tile);
  }
  if (part->bytes > bytes) give_back(cut(part, bytes));
  return part;
}

void StreamCache::flush_quick() noexcept {
  std::size_t count = 0;
  for (; Tile* tile = quick.pop_any(); ++count) give_back(tile);
  quick.were_taken(count);
  flush_held();
}

Tile* StreamCache::containing(std::uintptr_t address) noexcept {
  for (Chain& chain : chains) {
    if (!chain.covers(address)) continue;
    Tile* tile = chain.at_or_before(address);
    return tile != nullptr && address < tile->end() ? tile : nullptr;
  }
  return nullptr;
}

void StreamCache::provide_chain(std::uint32_t range, std::uintptr_t address, std::uintptr_t end) {
  if (chains.size() <= range) chains.resize(range + 1);
  chains[range].cover(address, end);
}

void StreamCache::add(std::uint32_t range, Region region, std::uintptr_t address, std::size_t bytes) noexcept {
  Tile* tile = records.take();
  tile->address = address;
  tile->bytes = bytes;
  tile->range = range;
  tile->region = region;
  tile->cache = this;
  chains[range].insert_after(chains[range].at_or_before(address), tile);
  give_back(tile);
}

void StreamCache::move_to(StreamCache& to, Tile* tile) {
  Chain& from = chains[tile->range];
  to.provide_chain(tile->range, from.address(), tile->end());
  from.erase(tile);
  Chain& chain = to.chains[tile->range];
  chain.insert_after(chain.at_or_before(tile->address), tile);
  tile->cache = &to;
}

void StreamCache::move_all_to(StreamCache& to) {
  for (FreeTiles& index : free) {
    while (Tile* tile = index.any()) {
      move_to(to, tile);
      index.erase(tile);
      free_bytes.subtract(tile->bytes);
      to.give_back(tile);
    }
  }
}

}  // namespace tenon::mortise
