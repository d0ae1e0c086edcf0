// Chunks taken from the device and given back; tiles cut and joined.
#include "primitives.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>

namespace tenon::stitching {

Primitives::~Primitives() {
  for (const auto& extent : extents_) {
    if (!extent) continue;
    source_.unmap(pointer(extent->address), extent->bytes);
    source_.destroy(extent->physical, extent->bytes);
  }
}

bool Primitives::grow(Pool& pool, std::size_t bytes) {
  auto extent = std::make_unique<Extent>();
  extent->bytes = bytes;
  extent->starts.resize(bytes / chunk_bytes_);
  if (spare_.empty()) {
    extents_.emplace_back();
    spare_.reserve(extents_.size());  // so that releasing one cannot fail
    spare_.push_back(static_cast<std::uint32_t>(extents_.size() - 1));
  }
  tiles_.reserve(1);
  const std::uintptr_t address = addresses_.take(bytes);
  if (address == 0) return false;
  try {
    extent->physical = source_.create(bytes);
    if (extent->physical) source_.map(pointer(address), bytes, extent->physical, 0);
  } catch (...) {
    if (extent->physical) source_.destroy(extent->physical, bytes);
    addresses_.give(address, bytes);
    throw;
  }
  if (!extent->physical) {
    addresses_.give(address, bytes);
    return false;
  }
  extent->address = address;
  Tile* const tile = tiles_.take();
  *tile = {.address = extent->address,
           .bytes = bytes,
           .left = nullptr,
           .right = nullptr,
           .next = nullptr,
           .previous = nullptr,
           .heap = &pool,
           .segment = spare_.back(),
           .state = BlockState::kFree,
           .starts_page = false};
  extent->first = extent->starts.front() = tile;
  extents_[spare_.back()] = std::move(extent);
  spare_.pop_back();
  reserved_bytes_ += bytes;
  enter(tile);
  return true;
}

void Primitives::release(std::uint32_t number) noexcept {
  const Extent& extent = *extents_[number];
  leave(extent.first);
  tiles_.give(extent.first);
  source_.unmap(pointer(extent.address), extent.bytes);
  source_.destroy(extent.physical, extent.bytes);
  addresses_.give(extent.address, extent.bytes);
  reserved_bytes_ -= extent.bytes;
  extents_[number].reset();
  spare_.push_back(number);
}

Tile* Primitives::containing(const Extent& extent, std::uintptr_t address) const {
  std::size_t chunk = (address - extent.address) / chunk_bytes_;
  while (!extent.starts[chunk]) --chunk;  // in the first one a tile begins
  Tile* tile = extent.starts[chunk];
  while (tile->address > address) tile = tile->left;
  return tile;
}

bool Primitives::has(std::uint32_t number, std::uintptr_t address, std::size_t bytes) const {
  const Extent* const extent = extents_[number].get();
  return extent && address >= extent->address && address + bytes <= extent->address + extent->bytes;
}

bool Primitives::is_free(const Pool& pool, const Piece& piece) const {
  const Tile* const tile = containing(*extents_[piece.extent], piece.address);
  return tile->is_free() && tile->heap == &pool && tile->end() >= piece.end();
}

OrderedTiles& Primitives::index_of(const Tile* tile) const {
  Pool& pool = pool_of(tile);
  if (!is_part(tile)) return pool.whole;
  if (within_chunk(tile->segment, tile->address) == 0) return pool.fronts;
  return within_chunk(tile->segment, tile->end()) == 0 ? pool.ends : pool.middles;
}

void Primitives::enter(Tile* tile) noexcept {
  tile->state = BlockState::kFree;
  pool_of(tile).free_bytes += tile->bytes;
  if (!is_part(tile)) pool_of(tile).whole_bytes += tile->bytes;
  index_of(tile).insert(tile);
}

void Primitives::leave(Tile* tile) noexcept {
  pool_of(tile).free_bytes -= tile->bytes;
  if (!is_part(tile)) pool_of(tile).whole_bytes -= tile->bytes;
  index_of(tile).erase(tile);
}

/// The tile keeps its first bytes; the rest, which is returned, is like it and in no index.
Tile* Primitives::cut(Tile* tile, std::size_t bytes) noexcept {
  Tile* const rest = tiles_.take();  // prepare() has seen to it
  *rest = *tile;
  rest->address += bytes;
  rest->bytes -= bytes;
  rest->left = tile;
  if (rest->right) rest->right->left = rest;
  tile->right = rest;
  tile->bytes = bytes;
  Tile*& last = extents_[rest->segment]->starts[chunk_of(rest)];
  if (!last || last->address < rest->address) last = rest;
  return rest;
}

/// `right`, in no index, becomes part of `left`.
void Primitives::join(Tile* left, Tile* right) noexcept {
  Tile*& last = extents_[right->segment]->starts[chunk_of(right)];
  if (last == right) last = chunk_of(left) == chunk_of(right) ? left : nullptr;
  left->bytes += right->bytes;
  left->right = right->right;
  if (left->right) left->right->left = left;
  tiles_.give(right);
}

/// A free tile, in no index: the part of a chunk that it begins with, whole chunks, the part that it ends with.
void Primitives::settle(Tile* tile) noexcept {
  const std::size_t begin = within_chunk(tile->segment, tile->address);
  if (begin != 0 && tile->bytes > chunk_bytes_ - begin) {
    Tile* const rest = cut(tile, chunk_bytes_ - begin);
    enter(tile);
    tile = rest;
  }
  if (const std::size_t end = tile->bytes % chunk_bytes_; end != 0 && tile->bytes > chunk_bytes_) {
    Tile* const rest = cut(tile, tile->bytes - end);
    enter(tile);
    tile = rest;
  }
  enter(tile);
}

Tile* Primitives::take(const Piece& piece) noexcept {
  Tile* tile = containing(*extents_[piece.extent], piece.address);
  leave(tile);
  if (piece.address != tile->address) {
    Tile* const rest = cut(tile, piece.address - tile->address);
    settle(tile);
    tile = rest;
  }
  if (tile->bytes > piece.bytes) settle(cut(tile, piece.bytes));
  tile->state = BlockState::kActive;
  return tile;
}

bool Primitives::can_join(const Tile* left, const Tile* right) const {
  if (!left->is_free() || !right->is_free() || left->heap != right->heap) return false;
  if (is_part(left) != is_part(right)) return false;
  return !is_part(left) || chunk_of(left) == chunk_of(right);
}

void Primitives::give_back(Tile* tile) noexcept {
  tile->state = BlockState::kFree;
  for (bool joined = true; joined;) {  // parts become a chunk, which goes on to join other chunks
    joined = false;
    if (Tile* const left = tile->left; left && can_join(left, tile)) {
      leave(left);
      join(left, tile);
      tile = left;
      joined = true;
    }
    if (Tile* const right = tile->right; right && can_join(tile, right)) {
      leave(right);
      join(tile, right);
      joined = true;
    }
  }
  enter(tile);
}

void Primitives::adopt(Pool& from, Pool& to) noexcept {
  for (OrderedTiles* const index : {&from.whole, &from.fronts, &from.ends, &from.middles})
    while (Tile* const tile = index->any()) {
      leave(tile);
      tile->heap = &to;
      give_back(tile);
    }
}

void Primitives::check() const {
  std::size_t reserved = 0;
  for (const auto& extent : extents_) {
    if (!extent) continue;
    reserved += extent->bytes;
    std::uintptr_t next = extent->address;
    const Tile* left = nullptr;
    for (const Tile* tile = extent->first; tile; left = tile, tile = tile->right) {
      if (tile->address != next || tile->bytes == 0 || tile->left != left)
        throw Error("stitching: the tiles of an extent do not stand side by side");
      next = tile->end();
      const std::size_t begin = within_chunk(tile->segment, tile->address);
      if (is_part(tile) ? begin + tile->bytes > chunk_bytes_ : begin != 0 || tile->bytes % chunk_bytes_ != 0)
        throw Error("stitching: a tile is neither whole chunks nor a part of one");
      if (left && can_join(left, tile)) throw Error("stitching: free neighbours are not joined");
      if (tile->is_free() && !index_of(tile).holds(tile)) throw Error("stitching: a free tile is in no index");
      if (containing(*extent, tile->address) != tile || containing(*extent, tile->end() - 1) != tile)
        throw Error("stitching: a chunk does not know its tiles");
    }
    if (next != extent->address + extent->bytes) throw Error("stitching: the tiles of an extent do not fill it");
  }
  if (reserved != reserved_bytes_) throw Error("stitching: the extents differ from what is counted as reserved");
}

}  // namespace tenon::stitching
