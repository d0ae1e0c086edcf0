// Taking memory from the device, and giving it back.
#include "segments.h"

#include "stream_uses.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <utility>

namespace tenon::tiled {

namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Segments::~Segments() {
  try {
    if (reserved_bytes_ != 0) source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
  for (const Segment& segment : segments_) {
    if (!segment.first) continue;
    for (Tile* tile = segment.first; tile; tile = tile->right)
      if (tile->state == BlockState::kActive) StreamUses::drop(tile);
    if (!segment.is_range) {
      source_.release(at(segment.address), segment.bytes);
      continue;
    }
    for (const auto& [address, extent] : segment.extents) {
      source_.unmap(at(address), extent.bytes);
      source_.destroy(extent.physical, extent.bytes);
    }
    source_.unreserve(at(segment.address), segment.bytes);
  }
}

Tile* Segments::add(std::uintptr_t address, std::size_t bytes, StreamRef stream, TileStore& tiles) {
  if (spare_.empty()) {
    segments_.emplace_back();
    spare_.reserve(segments_.size());  // so that releasing one cannot fail
    spare_.push_back(static_cast<std::uint32_t>(segments_.size() - 1));
  }
  Tile* const tile = tiles.take();
  const std::uint32_t slot = spare_.back();
  spare_.pop_back();
  *tile = {.address = address,
           .bytes = bytes,
           .left = nullptr,
           .right = nullptr,
           .requested_bytes = 0,
           .uses = nullptr,
           .heap = nullptr,
           .segment = slot,
           .state = BlockState::kFree,
           .starts_page = false};
  segments_[slot] = {
      .address = address, .bytes = bytes, .first = tile, .stream = stream, .is_range = false, .extents = {}};
  return tile;
}

Tile* Segments::acquire(std::size_t bytes, StreamRef stream, TileStore& tiles) {
  void* const address = source_.acquire(bytes);
  if (!address) return nullptr;
  try {
    Tile* const tile = add(reinterpret_cast<std::uintptr_t>(address), bytes, stream, tiles);
    reserved_bytes_ += bytes;
    return tile;
  } catch (...) {
    source_.release(address, bytes);
    throw;
  }
}

void Segments::release(Tile* tile) noexcept {
  Segment& segment = of(tile);
  source_.release(at(segment.address), segment.bytes);
  reserved_bytes_ -= segment.bytes;
  segment = Segment{};
  spare_.push_back(tile->segment);
}

Tile* Segments::reserve(std::size_t bytes, StreamRef stream, TileStore& tiles) {
  void* const address = source_.reserve(bytes);
  if (!address) return nullptr;
  try {
    Tile* const tile = add(reinterpret_cast<std::uintptr_t>(address), bytes, stream, tiles);
    tile->state = BlockState::kUnmapped;
    of(tile).is_range = true;
    return tile;
  } catch (...) {
    source_.unreserve(address, bytes);
    throw;
  }
}

bool Segments::map(const Tile* tile, std::size_t bytes) {
  Segment& segment = of(tile);
  const auto place = segment.extents.try_emplace(tile->address, Segment::Extent{bytes, {}}).first;
  Physical physical;
  try {
    physical = source_.create(bytes);
    if (physical) source_.map(tile->data(), bytes, physical, 0);
  } catch (...) {
    if (physical) source_.destroy(physical, bytes);
    segment.extents.erase(place);
    throw;
  }
  if (!physical) {
    segment.extents.erase(place);
    return false;
  }
  place->second.physical = physical;
  reserved_bytes_ += bytes;
  return true;
}

std::vector<std::pair<std::uintptr_t, std::size_t>> Segments::unmap(Segment& segment, std::uintptr_t begin,
                                                                    std::uintptr_t end, std::size_t bytes) {
  std::vector<std::pair<std::uintptr_t, std::size_t>> gone;
  std::size_t so_far = 0;
  for (auto it = segment.extents.lower_bound(end); so_far < bytes && it != segment.extents.begin();) {
    --it;
    const auto [address, extent] = *it;
    if (address < begin) break;
    if (address + extent.bytes > end) continue;
    gone.emplace_back(address, extent.bytes);
    source_.unmap(at(address), extent.bytes);
    source_.destroy(extent.physical, extent.bytes);
    reserved_bytes_ -= extent.bytes;
    so_far += extent.bytes;
    it = segment.extents.erase(it);
  }
  std::ranges::reverse(gone);
  return gone;
}

std::vector<const Segment*> Segments::by_address() const {
  std::vector<const Segment*> segments;
  for (const Segment& segment : segments_)
    if (segment.first) segments.push_back(&segment);
  std::ranges::sort(segments, {}, &Segment::address);
  return segments;
}

}  // namespace tenon::tiled
