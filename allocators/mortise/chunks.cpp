// Physical memory taken from the device and given back, chunk by chunk.
#include "home.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <utility>

namespace tenon::mortise {

namespace {

constexpr std::size_t kWorthAsking = 1 * GiB;  // what the device has left is one more call

}  // namespace

/// False when the device has no more.
bool Home::acquire_chunk(Chunk& chunk, std::uintptr_t address, std::size_t bytes) {
  chunk.physical = source_.create(bytes);
  if (!chunk.physical) return false;
  try {
    source_.map(pointer(address), bytes, chunk.physical, 0);
  } catch (...) {
    source_.destroy(chunk.physical, bytes);
    throw;
  }
  chunk.address = address;
  chunk.bytes = bytes;
  return true;
}

void Home::drop_chunk(const Chunk& chunk) noexcept {
  source_.unmap(pointer(chunk.address), chunk.bytes);
  source_.destroy(chunk.physical, chunk.bytes);
}

/// Memory behind `bytes` of addresses, or behind fewer, at least `needed`, where the device has no more. None where it
/// has not even those.
Home::Chunks Home::acquire_chunks(std::uintptr_t address, std::size_t bytes, std::size_t needed) {
  Chunks chunks;
  chunks.reserve(bytes / longest_chunk_bytes_ + 1);
  const auto drop_all = [&]() noexcept {
    for (const auto& chunk : chunks) drop_chunk(*chunk);
    chunks.clear();
  };
  const auto take_up_to = [&](std::size_t wanted) {
    std::size_t taken = 0;
    while (taken < wanted) {
      auto chunk = std::make_unique<Chunk>();
      if (!acquire_chunk(*chunk, address + taken, std::min(longest_chunk_bytes_, wanted - taken))) break;
      taken += chunk->bytes;
      chunks.push_back(std::move(chunk));
    }
    return taken;
  };
  // Chunk by chunk a device would be filled before it refused: a GPU takes seconds for that.
  if (needed >= kWorthAsking && needed > source_.usage().free_bytes) return chunks;
  try {
    if (take_up_to(bytes) >= needed) return chunks;
    drop_all();
    // The last chunk may have been too long by what is not needed.
    if (bytes != needed && take_up_to(needed) < needed) drop_all();
  } catch (...) {
    drop_all();
    throw;
  }
  return chunks;
}

/// The free tile contains the chunk: what lies beside it stays free.
void Home::release_chunk(StreamCache& cache, Range& range, std::size_t index, Tile* tile) {
  range.gaps.reserve(range.gaps.size() + 1);
  const Chunk& chunk = *range.chunks[index];
  const Gap hole{chunk.address, chunk.bytes};
  Tile* const gone = cache.take_part(tile, hole.address, hole.bytes);
  cache.chains[range.number].erase(gone);
  cache.records.give(gone);
  drop_chunk(chunk);
  reserved_bytes_ -= hole.bytes;
  range.mapped_bytes -= hole.bytes;
  for (std::size_t page = (hole.address - range.address) / page_bytes_, end = page + hole.bytes / page_bytes_;
       page < end; ++page)
    range.pages[page] = nullptr;
  range.chunks.erase(range.chunks.begin() + static_cast<std::ptrdiff_t>(index));
  auto right = std::ranges::upper_bound(range.gaps, hole.address, {}, &Gap::address);
  const auto end_of = [](const Gap& gap) { return gap.address + gap.bytes; };
  if (right != range.gaps.end() && end_of(hole) == right->address) {
    *right = {hole.address, hole.bytes + right->bytes};
  } else {
    right = range.gaps.insert(right, hole);
  }
  if (right == range.gaps.begin() || end_of(right[-1]) != right->address) return;
  right[-1].bytes += right->bytes;
  range.gaps.erase(right);
}

/// The free tile is all of a range without pages.
void Home::release_range(StreamCache& cache, std::size_t index, Tile* tile) noexcept {
  const Range& range = *ranges_[index];
  cache.chains[range.number].erase(tile);
  cache.records.give(tile);
  source_.release(pointer(range.address), range.bytes);
  reserved_bytes_ -= range.bytes;
  unused_numbers_.push_back(range.number);
  ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::size_t Home::shrink(StreamCache& cache, std::size_t cached_bytes, std::size_t keep_bytes) {
  std::size_t given_back = 0;
  for (std::size_t r = ranges_.size(); r-- > 0;) {
    Range& range = *ranges_[r];
    if (range.number >= cache.chains.size()) continue;
    for (std::size_t i = range.chunks.size(); i-- > 0;) {
      if (cached_bytes - given_back <= keep_bytes) return given_back;
      const Chunk& chunk = *range.chunks[i];
      Tile* tile = cache.chains[range.number].at_or_before(chunk.address);
      if (tile == nullptr || tile->state != TileState::kFree || tile->end() < chunk.address + chunk.bytes) continue;
      given_back += chunk.bytes;
      if (has_virtual_memory_) {
        release_chunk(cache, range, i, tile);
        continue;
      }
      cache.take_part(tile, tile->address, tile->bytes);
      release_range(cache, r, tile);
      break;  // its only chunk
    }
  }
  return given_back;
}

}  // namespace tenon::mortise
