// Addresses reserved, where pages come to lie, and what lies where.
#include "home.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenon::mortise {

namespace {

/// Of addresses, which cost nothing: a second range begins when the first is full. Both and what joined blocks need
/// are reserved at once, since a call takes as long as one that maps.
constexpr std::size_t kRangeBytes[kRegions] = {64 * GiB, 256 * GiB};
constexpr std::size_t kReservedAtOnce = 512 * GiB;

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
      longest_chunk_bytes_(align_up(kLongestChunk, page_bytes_)),
      addresses_(source, page_bytes_, kReservedAtOnce) {}

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
  }
}

Range& Home::range_at(std::uintptr_t address) const {
  return **std::ranges::find_if(ranges_, [&](const auto& range) { return address - range->address < range->bytes; });
}

// ---------------------------------------------------------------------------------------------------------------------
// Where to grow

/// How much of the stream's free memory ends where the gap begins.
static std::size_t free_bytes_before(const Gap& gap, const Range& range, StreamCache& cache) {
  if (range.number >= cache.chains.size()) return 0;
  Chain& chain = cache.chains[range.number];
  const Tile* left = chain.at_or_before(gap.address);
  const bool goes_on = left != nullptr && left->end() == gap.address && left->state == TileState::kFree;
  return goes_on ? left->bytes : 0;
}

Home::Growth Home::growth(StreamCache& cache, Region region, std::size_t bytes) const {
  Growth best{.pages = align_up(bytes, page_bytes_) / page_bytes_};
  for (const auto& range : ranges_) {
    if (range->region != region || !has_virtual_memory_) continue;
    for (std::size_t i = 0; i < range->gaps.size(); ++i) {
      const Gap& gap = range->gaps[i];
      const std::size_t pages =
          align_up(bytes - std::min(free_bytes_before(gap, *range, cache), bytes), page_bytes_) / page_bytes_;
      if (gap.bytes / page_bytes_ >= pages && (best.range == nullptr || pages < best.pages))
        best = {.range = range.get(), .gap = i, .pages = pages};
    }
  }
  return best;
}

Home::Growth Home::growth_by(Region region, std::size_t pages) const {
  for (const auto& range : ranges_) {
    if (range->region != region || !has_virtual_memory_) continue;
    for (std::size_t i = 0; i < range->gaps.size(); ++i)
      if (range->gaps[i].bytes / page_bytes_ >= pages) return {.range = range.get(), .gap = i, .pages = pages};
  }
  return {.pages = pages};
}

// ---------------------------------------------------------------------------------------------------------------------
// Growing

/// add_range() needs no memory of the host after this but that of the range itself.
void Home::provide_range() {
  ranges_.reserve(ranges_.size() + 1);
  unused_numbers_.reserve(numbers_ + 1);
}

Range& Home::add_range(std::unique_ptr<Range> added) noexcept {
  Range& range = *added;
  ranges_.push_back(std::move(added));
  if (unused_numbers_.empty()) {
    range.number = numbers_++;
  } else {
    range.number = unused_numbers_.back();
    unused_numbers_.pop_back();
  }
  return range;
}

/// A new range, one gap. Null when there is no address space.
Range* Home::reserve(Region region, std::size_t bytes) {
  provide_range();
  auto range = std::make_unique<Range>();
  range->region = region;
  range->gaps.reserve(1);
  for (std::size_t wanted = std::max(align_up(kRangeBytes[region], page_bytes_), bytes);;
       wanted = std::max(align_up(wanted / 2, page_bytes_), bytes)) {
    range->address = addresses_.take(wanted);
    range->bytes = wanted;
    if (range->address != 0 || wanted == bytes || wanted == page_bytes_) break;
  }
  if (range->address == 0) return nullptr;
  range->gaps.push_back({range->address, range->bytes});
  return &add_range(std::move(range));
}

/// A range of its own, where the source has no virtual memory.
bool Home::grow_without_pages(StreamCache& cache, Region region, std::size_t needed, std::size_t bytes) {
  provide_range();
  auto chunk = std::make_unique<Chunk>();
  auto range = std::make_unique<Range>();
  range->pages.resize(bytes / page_bytes_, chunk.get());
  range->chunks.reserve(1);
  void* address = source_.acquire(bytes);
  if (address == nullptr && bytes != needed) address = source_.acquire(bytes = needed);
  if (address == nullptr) return false;
  range->address = chunk->address = Address(address);
  range->bytes = range->mapped_bytes = chunk->bytes = bytes;
  range->region = region;
  range->chunks.push_back(std::move(chunk));
  try {
    const std::uint32_t number = unused_numbers_.empty() ? numbers_ : unused_numbers_.back();
    cache.provide_chain(number, range->address, range->address + bytes);
  } catch (...) {
    source_.release(address, bytes);
    throw;
  }
  const Range& added = add_range(std::move(range));
  reserved_bytes_ += bytes;
  cache.add(added.number, region, added.address, bytes);
  return true;
}

bool Home::grow(StreamCache& cache, Region region, Growth growth, std::size_t spare_pages) {
  const std::size_t needed = growth.pages * page_bytes_;
  std::size_t bytes = needed + spare_pages * page_bytes_;
  cache.records.provide(1);
  if (!has_virtual_memory_) return grow_without_pages(cache, region, needed, bytes);

  Range* const range = growth.range != nullptr ? growth.range : reserve(region, needed);
  if (range == nullptr) return false;
  const auto gap = range->gaps.begin() + static_cast<std::ptrdiff_t>(growth.gap);
  const std::uintptr_t address = gap->address;
  cache.provide_chain(range->number, range->address, address + std::min(bytes, gap->bytes));
  bytes = put_chunks(*range, *gap, std::min(bytes, gap->bytes), needed);
  if (bytes == 0) return false;
  gap->address += bytes;
  gap->bytes -= bytes;
  if (gap->bytes == 0) range->gaps.erase(gap);
  cache.add(range->number, region, address, bytes);
  return true;
}

/// Memory behind `bytes` of the gap, or behind fewer, at least `needed`, where the device has no more. Returns how
/// many; 0 where it has not even those.
std::size_t Home::put_chunks(Range& range, const Gap& gap, std::size_t bytes, std::size_t needed) {
  const std::size_t first_page = (gap.address - range.address) / page_bytes_;
  range.pages.resize(std::max(range.pages.size(), first_page + bytes / page_bytes_));
  range.chunks.reserve(range.chunks.size() + bytes / longest_chunk_bytes_ + 1);
  Chunks chunks = acquire_chunks(gap.address, bytes, needed);
  if (chunks.empty()) return 0;
  bytes = chunks.back()->address + chunks.back()->bytes - gap.address;
  auto page = range.pages.begin() + static_cast<std::ptrdiff_t>(first_page);
  for (const auto& chunk : chunks) page = std::fill_n(page, chunk->bytes / page_bytes_, chunk.get());
  const auto place = std::ranges::upper_bound(range.chunks, gap.address, {}, [](const auto& c) { return c->address; });
  range.chunks.insert(place, std::make_move_iterator(chunks.begin()), std::make_move_iterator(chunks.end()));
  range.mapped_bytes += bytes;
  reserved_bytes_ += bytes;
  return bytes;
}

// ---------------------------------------------------------------------------------------------------------------------
// Looking

std::vector<Home::Part> Home::parts_of(const Range& range, Caches caches) {
  std::vector<Part> parts;
  for (const Gap& gap : range.gaps) parts.push_back({gap.address, gap.bytes, nullptr});
  for (const auto& cache : caches) {
    if (range.number >= cache->chains.size()) continue;
    for (const Tile* tile = cache->chains[range.number].first(); tile != nullptr; tile = tile->right)
      parts.push_back({tile->address, tile->bytes, tile});
  }
  std::ranges::sort(parts, {}, &Part::address);
  return parts;
}

/// Of one stream, in one range.
static void check_chain(const StreamCache& cache, const Chain& chain, const Range& range) {
  const Tile* before = nullptr;
  for (const Tile* tile = chain.first(); tile != nullptr; before = tile, tile = tile->right) {
    if (tile->cache != &cache || tile->range != range.number || tile->region != range.region || tile->left != before ||
        (before != nullptr && before->end() > tile->address))
      throw Error("mortise: the tiles of a stream are not in order");
    if (before != nullptr && before->end() == tile->address && before->state == TileState::kFree &&
        tile->state == TileState::kFree)
      throw Error("mortise: two free tiles of a stream stand side by side");
  }
  if (before != chain.last()) throw Error("mortise: the last tile of a stream is another one");
  if (!chain.agrees()) throw Error("mortise: a stripe does not know its tiles");
}

void Home::check(Caches caches) const {
  std::size_t reserved = 0;
  for (const auto& range : ranges_) {
    for (const auto& cache : caches)
      if (range->number < cache->chains.size()) check_chain(*cache, cache->chains[range->number], *range);
    std::uintptr_t next = range->address;
    std::size_t mapped = 0;
    bool was_gap = false;
    for (const Part& part : parts_of(*range, caches)) {
      if (part.address != next || part.bytes == 0)
        throw Error("mortise: the tiles of a range do not stand side by side");
      const bool is_gap = part.tile == nullptr;
      if (is_gap && was_gap) throw Error("mortise: two gaps stand side by side");
      next = part.address + part.bytes;
      mapped += is_gap ? 0 : part.bytes;
      was_gap = is_gap;
    }
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
