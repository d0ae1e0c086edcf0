// Tiles split and merged, addresses reserved, and where pages come to lie.
#include "home.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace tenon::mortise {

namespace {

/// Of addresses, which cost nothing: a second range begins when the first is full.
constexpr std::size_t kRangeBytes[kRegions] = {64 * GiB, 256 * GiB};

constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

/// One piece of physical memory goes back as a whole: of long ones a small block would hold much.
constexpr std::size_t kLongestChunk = 256 * MiB;

/// What a source without pages is asked for at a time, at least.
constexpr std::size_t kPageWithoutPages = 2 * MiB;

}  // namespace

Home::Home(MemorySource& source)
    : source_(source),
      has_virtual_memory_(source.traits().virtual_memory),
      page_bytes_(has_virtual_memory_
                      ? source.traits().page_bytes
                      : std::max(kPageWithoutPages, align_up(source.traits().acquire_granularity, kGrain))),
      longest_chunk_bytes_(align_up(kLongestChunk, page_bytes_)) {}

Home::~Home() {
  for (const auto& range : ranges_) {
    for (const auto& chunk : range->chunks) {
      if (has_virtual_memory_) {
        source_.unmap(pointer(chunk->address), chunk->bytes);
        source_.destroy(chunk->physical, chunk->bytes);
      } else {
        source_.release(pointer(chunk->address), chunk->bytes);
      }
    }
    if (has_virtual_memory_) source_.unreserve(pointer(range->address), range->bytes);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Tiles

Range& Home::range_at(std::uintptr_t address) const {
  return **std::ranges::find_if(ranges_, [&](const auto& range) { return address - range->address < range->bytes; });
}

// Bytes that are free are counted by who calls these: what is cut off or merged stays free.

[[gnu::always_inline]] inline void Home::enter(Tile* tile) noexcept {
  tile->state = TileState::kFree;
  tile->cache->free[tile->region].insert(tile);
}

[[gnu::always_inline]] inline void Home::leave(Tile* tile) noexcept { tile->cache->free[tile->region].erase(tile); }

/// The tile keeps its first bytes; the rest, which is returned, is like it and in no index.
Tile* Home::cut(Tile* tile, std::size_t bytes) {
  Tile* rest = tiles_.take();
  rest->address = tile->address + bytes;
  rest->bytes = tile->bytes - bytes;
  rest->left = tile;
  rest->right = tile->right;
  rest->cache = tile->cache;
  rest->range = tile->range;
  rest->state = tile->state;
  rest->region = tile->region;
  (rest->right != nullptr ? rest->right->left : range_of(*rest).last) = rest;
  tile->right = rest;
  tile->bytes = bytes;
  range_of(*rest).stripes.came(rest);
  return rest;
}

/// Its left neighbour takes its place.
void Home::unlink(Tile* tile) noexcept {
  range_of(*tile).stripes.goes(tile);
  tile->left->bytes += tile->bytes;
  tile->left->right = tile->right;
  (tile->right != nullptr ? tile->right->left : range_of(*tile).last) = tile->left;
  tiles_.give(tile);
}

void Home::give_back(Tile* tile) noexcept {
  tile->cache->free_bytes += tile->bytes;
  if (Tile* left = tile->left; left != nullptr && left->state == TileState::kFree && left->cache == tile->cache) {
    leave(left);
    unlink(tile);
    tile = left;
  }
  if (Tile* right = tile->right; right != nullptr && right->state == TileState::kFree && right->cache == tile->cache) {
    leave(right);
    unlink(right);
  }
  enter(tile);
}

Tile* Home::take(StreamCache& cache, Region region, std::size_t bytes) {
  Tile* tile = cache.free[region].find(bytes);
  if (tile == nullptr) return nullptr;
  tiles_.provide(1);
  cache.free_bytes -= bytes;
  leave(tile);
  if (tile->bytes > bytes) enter(cut(tile, bytes));
  return tile;
}

Tile* Home::take_any(StreamCache& cache, Region region, std::size_t bytes) {
  Tile* tile = cache.free[region].shortest(bytes, kAnyBytes, [](const Tile&) { return true; });
  return tile != nullptr ? take_part(tile, tile->address, bytes) : nullptr;
}

Tile* Home::take_fragment(StreamCache& cache, Region region, std::size_t bytes) {
  const auto holds_no_page = [&](const Tile& tile) {
    return align_up(tile.address, page_bytes_) + page_bytes_ > tile.end();
  };
  Tile* tile = cache.free[region].shortest(bytes, 2 * page_bytes_, holds_no_page);
  return tile != nullptr ? take_part(tile, tile->address, bytes) : nullptr;
}

Tile* Home::take_part(Tile* tile, std::uintptr_t address, std::size_t bytes) {
  tiles_.provide(2);
  tile->cache->free_bytes -= bytes;
  leave(tile);
  Tile* part = tile;
  if (address != tile->address) {
    part = cut(tile, address - tile->address);
    enter(tile);
  }
  if (part->bytes > bytes) enter(cut(part, bytes));
  return part;
}

void Home::change_stream(Tile* tile, StreamCache& cache) noexcept {
  leave(tile);
  tile->cache->free_bytes -= tile->bytes;
  tile->cache = &cache;
  give_back(tile);
}

// ---------------------------------------------------------------------------------------------------------------------
// Pages

/// From where on unmapped tiles are looked for.
static Tile* first_gap(const Range& range) { return range.has_holes ? range.first : range.last; }

Home::Growth Home::growth(const StreamCache& cache, Region region, std::size_t bytes) const {
  Growth best{.gap = nullptr, .pages = align_up(bytes, page_bytes_) / page_bytes_};
  for (const auto& range : ranges_) {
    if (range->region != region || !has_virtual_memory_) continue;
    for (Tile* tile = first_gap(*range); tile != nullptr; tile = tile->right) {
      if (tile->state != TileState::kUnmapped) continue;
      const Tile* left = tile->left;
      const bool goes_on = left != nullptr && left->state == TileState::kFree && left->cache == &cache;
      const std::size_t pages =
          align_up(bytes - (goes_on ? std::min(left->bytes, bytes) : 0), page_bytes_) / page_bytes_;
      if (tile->bytes / page_bytes_ >= pages && (best.gap == nullptr || pages < best.pages)) best = {tile, pages};
    }
  }
  return best;
}

Home::Growth Home::growth_by(Region region, std::size_t pages) const {
  for (const auto& range : ranges_) {
    if (range->region != region || !has_virtual_memory_) continue;
    for (Tile* tile = first_gap(*range); tile != nullptr; tile = tile->right)
      if (tile->state == TileState::kUnmapped && tile->bytes / page_bytes_ >= pages) return {tile, pages};
  }
  return {nullptr, pages};
}

/// add_range() needs no memory of the host after this but that of the range itself.
void Home::provide_range() {
  tiles_.provide(1);
  ranges_.reserve(ranges_.size() + 1);
  numbered_.reserve(numbered_.size() + 1);
  unused_numbers_.reserve(numbered_.size() + 1);
}

/// A range of one tile, which nobody has.
Range& Home::add_range(std::unique_ptr<Range> added) noexcept {
  Range& range = *added;
  ranges_.push_back(std::move(added));
  if (unused_numbers_.empty()) {
    range.number = static_cast<std::uint32_t>(numbered_.size());
    numbered_.push_back(&range);
  } else {
    range.number = unused_numbers_.back();
    unused_numbers_.pop_back();
    numbered_[range.number] = &range;
  }
  Tile* tile = tiles_.take();
  tile->address = range.address;
  tile->bytes = range.bytes;
  tile->range = range.number;
  tile->region = range.region;
  range.first = range.last = tile;
  return range;
}

/// A new range, one unmapped tile. Null when there is no address space.
Tile* Home::reserve(Region region, std::size_t bytes) {
  provide_range();
  auto range = std::make_unique<Range>();
  range->region = region;
  void* address = nullptr;
  for (std::size_t wanted = std::max(align_up(kRangeBytes[region], page_bytes_), bytes); wanted >= bytes;
       wanted = align_up(wanted / 2, page_bytes_)) {
    address = source_.reserve(wanted);
    range->bytes = wanted;
    if (address != nullptr || wanted == bytes || wanted == page_bytes_) break;
  }
  if (address == nullptr) return nullptr;
  range->address = Address(address);
  return add_range(std::move(range)).first;
}

bool Home::grow(StreamCache& cache, Region region, Growth growth, std::size_t spare_pages) {
  const std::size_t needed = growth.pages * page_bytes_;
  std::size_t bytes = needed + spare_pages * page_bytes_;
  tiles_.provide(2);
  if (!has_virtual_memory_) {  // a range of its own
    provide_range();
    auto chunk = std::make_unique<Chunk>();
    auto range = std::make_unique<Range>();
    range->pages.resize(bytes / page_bytes_, chunk.get());
    range->stripes.cover(0, bytes);  // the host's memory for it is there from now on
    range->chunks.reserve(1);
    void* address = source_.acquire(bytes);
    if (address == nullptr && bytes != needed) address = source_.acquire(bytes = needed);
    if (address == nullptr) return false;
    range->address = chunk->address = Address(address);
    range->bytes = range->mapped_bytes = chunk->bytes = bytes;
    range->region = region;
    range->chunks.push_back(std::move(chunk));
    range->stripes.cover(range->address, bytes);
    Range& added = add_range(std::move(range));
    Tile* tile = added.first;
    tile->cache = &cache;
    added.stripes.came(tile);
    give_back(tile);
    reserved_bytes_ += bytes;
    return true;
  }

  Tile* gap = growth.gap;
  if (gap == nullptr && (gap = reserve(region, needed)) == nullptr) return false;
  bytes = std::min(bytes, gap->bytes);
  Range& range = range_of(*gap);
  const std::size_t first_page = (gap->address - range.address) / page_bytes_;
  const std::size_t pages = std::max(range.pages.size(), first_page + bytes / page_bytes_);
  range.pages.resize(pages);
  range.stripes.cover(range.address, pages * page_bytes_);
  range.stripes.note(gap);
  range.chunks.reserve(range.chunks.size() + bytes / longest_chunk_bytes_ + 1);
  Chunks chunks = acquire_chunks(gap->address, bytes, needed);
  if (chunks.empty()) return false;
  bytes = chunks.back()->address + chunks.back()->bytes - gap->address;
  auto page = range.pages.begin() + static_cast<std::ptrdiff_t>(first_page);
  for (const auto& chunk : chunks) page = std::fill_n(page, chunk->bytes / page_bytes_, chunk.get());
  const auto place = std::ranges::upper_bound(range.chunks, gap->address, {}, [](const auto& c) { return c->address; });
  range.chunks.insert(place, std::make_move_iterator(chunks.begin()), std::make_move_iterator(chunks.end()));
  range.mapped_bytes += bytes;
  reserved_bytes_ += bytes;
  if (gap->bytes > bytes) cut(gap, bytes);
  gap->cache = &cache;
  give_back(gap);
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------

void Home::check() const {
  std::size_t reserved = 0;
  for (const auto& range : ranges_) {
    std::uintptr_t next = range->address;
    std::size_t mapped = 0;
    const Tile* before = nullptr;
    for (const Tile* tile = range->first; tile != nullptr; before = tile, tile = tile->right) {
      if (tile->address != next || tile->bytes == 0 || tile->range != range->number || tile->left != before)
        throw Error("mortise: the tiles of a range do not stand side by side");
      next = tile->end();
      if (tile->state == TileState::kUnmapped) {
        if (before != nullptr && before->state == TileState::kUnmapped)
          throw Error("mortise: two unmapped tiles stand side by side");
        continue;
      }
      mapped += tile->bytes;
      if (before != nullptr && before->state == TileState::kFree && tile->state == TileState::kFree &&
          before->cache == tile->cache)
        throw Error("mortise: two free tiles of a stream stand side by side");
    }
    if (!range->stripes.agrees_with(range->first)) throw Error("mortise: a stripe does not know its tiles");
    if (next != range->address + range->bytes) throw Error("mortise: the tiles of a range do not fill it");
    std::size_t chunks = 0;
    for (const auto& chunk : range->chunks) chunks += chunk->bytes;
    if (mapped != range->mapped_bytes || mapped != chunks)
      throw Error("mortise: the mapped tiles differ from the physical memory");
    reserved += mapped;
  }
  if (reserved != reserved_bytes_) throw Error("mortise: the ranges differ from what is counted as reserved");
}

}  // namespace tenon::mortise
