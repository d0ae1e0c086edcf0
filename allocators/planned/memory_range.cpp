// Tiles and pages.
#include "memory_range.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>

namespace tenon::planned {

void* Tile::data() const { return range->base_ + offset; }

MemoryRange::MemoryRange(MemorySource& source, void* base, std::size_t bytes, bool is_virtual)
    : source_(source),
      base_(static_cast<char*>(base)),
      bytes_(bytes),
      page_bytes_(is_virtual ? source.traits().page_bytes : 0),
      reserved_(is_virtual ? 0 : bytes) {
  provide(1);
  index(add(0, bytes));
}

MemoryRange::~MemoryRange() {
  for (std::size_t page = 0; page < pages_.size(); ++page)
    if (pages_[page] != 0) drop_page(page);
  if (page_bytes_ != 0) {
    source_.unreserve(base_, bytes_);
  } else if (reserved_ != 0) {
    source_.release(base_, bytes_);
  }
}

/// add() can make so many tiles after this, and index() has a place for each that there is then. Throws std::bad_alloc,
/// and nothing has changed.
void MemoryRange::provide(std::size_t tiles) {
  const std::size_t most = tiles_.size() + tiles;
  if (spare_tiles_.capacity() < most) spare_tiles_.reserve(2 * most);
  if (spare_free_.capacity() < most) spare_free_.reserve(2 * most);
  for (Tiles made; spare_tiles_.size() < tiles;) {
    made.try_emplace(0);
    spare_tiles_.push_back(made.extract(made.begin()));
  }
  for (FreeTiles made; free_.size() + spare_free_.size() < most;) {
    made.emplace(0, 0);
    spare_free_.push_back(made.extract(made.begin()));
  }
}

Tile& MemoryRange::add(std::size_t offset, std::size_t bytes) noexcept {
  Tiles::node_type node = std::move(spare_tiles_.back());
  spare_tiles_.pop_back();
  node.key() = offset;
  node.mapped() = {.range = this, .offset = offset, .bytes = bytes};
  return tiles_.insert(std::move(node)).position->second;
}

/// Returns the one behind it.
MemoryRange::Tiles::iterator MemoryRange::remove(Tiles::iterator tile) noexcept {
  const auto next = std::next(tile);
  spare_tiles_.push_back(tiles_.extract(tile));
  return next;
}

void MemoryRange::index(const Tile& tile) noexcept {
  FreeTiles::node_type node = std::move(spare_free_.back());
  spare_free_.pop_back();
  node.value() = {tile.bytes, tile.offset};
  free_.insert(std::move(node));
}

/// Free, and no other stream's work is in it.
bool MemoryRange::is_usable(Tile& tile, StreamRef stream) {
  if (tile.state != BlockState::kFree) return false;
  if (tile.is_settled || tile.stream == stream) return true;
  if (!tile.ticket) tile.ticket = source_.mark(tile.stream);
  tile.is_settled = source_.reached(*tile.ticket);
  return tile.is_settled;
}

/// False when the device has no page left; then nothing has changed.
bool MemoryRange::put_pages(std::size_t offset, std::size_t bytes) {
  if (page_bytes_ == 0) return true;
  const std::size_t first = offset / page_bytes_, last = (offset + bytes - 1) / page_bytes_;
  if (pages_.size() <= last) pages_.resize(last + 1);
  std::size_t page = first;
  std::vector<std::size_t> put;
  put.reserve(last - first + 1);
  const auto undo = [&] {
    for (const std::size_t done : put) drop_page(done);
  };
  try {
    for (; page <= last; ++page) {
      if (pages_[page] != 0) continue;
      const Physical physical = source_.create(page_bytes_);
      if (!physical) break;
      try {
        source_.map(base_ + page * page_bytes_, page_bytes_, physical, 0);
      } catch (...) {
        source_.destroy(physical, page_bytes_);
        throw;
      }
      pages_[page] = physical.value;
      reserved_ += page_bytes_;
      put.push_back(page);
    }
  } catch (...) {
    undo();
    throw;
  }
  if (page <= last) undo();
  return page > last;
}

void MemoryRange::drop_page(std::size_t page) {
  source_.unmap(base_ + page * page_bytes_, page_bytes_);
  source_.destroy({pages_[page]}, page_bytes_);
  pages_[page] = 0;
  reserved_ -= page_bytes_;
}

Tile* MemoryRange::take_at(std::size_t offset, std::size_t bytes, StreamRef stream) {
  if (offset > bytes_ || bytes > bytes_ - offset) return nullptr;
  for (auto tile = std::prev(tiles_.upper_bound(offset)); tile != tiles_.end() && tile->first < offset + bytes; ++tile)
    if (!is_usable(tile->second, stream)) return nullptr;
  return put_pages(offset, bytes) ? carve(offset, bytes, stream) : nullptr;
}

Tile* MemoryRange::take(std::size_t bytes, std::size_t alignment, StreamRef stream) {
  for (auto place = free_.lower_bound({bytes, 0}); place != free_.end(); ++place) {
    const auto [tile_bytes, tile_offset] = *place;
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    const std::size_t offset = align_up(base + tile_offset, alignment) - base;
    if (offset - tile_offset > tile_bytes - bytes || !is_usable(tiles_.at(tile_offset), stream)) continue;
    return put_pages(offset, bytes) ? carve(offset, bytes, stream) : nullptr;
  }
  return nullptr;
}

/// Makes one active tile of what is free there; its ends stay free.
Tile* MemoryRange::carve(std::size_t offset, std::size_t bytes, StreamRef stream) {
  const std::size_t end = offset + bytes;
  provide(3);
  auto tile = std::prev(tiles_.upper_bound(offset));
  if (Tile& first = tile->second; first.offset < offset) {
    unindex(first);
    Tile& rest = add(offset, first.offset + first.bytes - offset);
    rest.stream = first.stream;
    rest.is_settled = first.is_settled;
    rest.ticket = first.ticket;
    first.bytes = offset - first.offset;
    index(first);
    index(rest);
    ++tile;
  }
  while (tile != tiles_.end() && tile->first < end) {
    Tile& here = tile->second;
    unindex(here);
    if (const std::size_t here_end = here.offset + here.bytes; here_end > end) {
      Tile& rest = add(end, here_end - end);
      rest.stream = here.stream;
      rest.is_settled = here.is_settled;
      rest.ticket = here.ticket;
      index(rest);
    }
    tile = remove(tile);
  }
  Tile& taken = add(offset, bytes);
  taken.state = BlockState::kActive;
  taken.stream = stream;
  active_ += bytes;
  return &taken;
}

/// Whether the right one has become a part of the left one. With what nobody uses, the work on the other one is that on
/// both.
bool MemoryRange::merge_into(Tile& left, const Tile& right) {
  if (left.state != BlockState::kFree || right.state != BlockState::kFree) return false;
  if (!left.is_settled && !right.is_settled) {
    if (left.stream != right.stream) return false;
    if (left.ticket && right.ticket) {
      if (left.ticket->value < right.ticket->value) left.ticket = right.ticket;  // of one stream: the later one
    } else {
      left.ticket.reset();
    }
  } else if (!right.is_settled) {
    left.stream = right.stream;
    left.ticket = right.ticket;
    left.is_settled = false;
  }
  left.bytes += right.bytes;
  return true;
}

void MemoryRange::give(Tile* tile, std::optional<Ticket> ticket) noexcept {
  active_ -= tile->bytes;
  tile->state = BlockState::kFree;
  tile->requested_bytes = 0;
  tile->is_settled = false;
  tile->ticket = ticket;
  tile->other_streams.clear();
  tile->awaited.clear();
  auto here = tiles_.find(tile->offset);
  if (const auto right = std::next(here); right != tiles_.end() && right->second.state == BlockState::kFree) {
    if (merge_into(here->second, right->second)) {
      unindex(right->second);
      remove(right);
    }
  }
  if (here != tiles_.begin()) {
    Tile& left = std::prev(here)->second;
    const std::size_t bytes = left.bytes;
    if (left.state == BlockState::kFree && merge_into(left, here->second)) {
      unindex(bytes, left.offset);
      index(left);
      remove(here);
      return;
    }
  }
  index(here->second);
}

void MemoryRange::settle() {
  for (auto tile = tiles_.begin(); tile != tiles_.end();) {
    Tile& here = tile->second;
    ++tile;
    if (here.state != BlockState::kFree) continue;
    unindex(here);
    here.is_settled = true;
    here.ticket.reset();
    while (tile != tiles_.end() && tile->second.state == BlockState::kFree) {
      unindex(tile->second);
      here.bytes += tile->second.bytes;
      tile = remove(tile);
    }
    index(here);
  }
}

std::size_t MemoryRange::missing_bytes(std::size_t offset, std::size_t bytes) const {
  if (page_bytes_ == 0 || bytes == 0) return 0;
  std::size_t missing = 0;
  for (std::size_t page = offset / page_bytes_; page <= (offset + bytes - 1) / page_bytes_; ++page)
    if (!has_page(page)) missing += page_bytes_;
  return missing;
}

std::size_t MemoryRange::shrink(std::size_t bytes, std::size_t kept_offset, std::size_t kept_bytes) {
  if (page_bytes_ == 0) {
    if (active_ != 0 || reserved_ == 0 || bytes == 0) return 0;
    source_.release(base_, bytes_);
    reserved_ = 0;
    return bytes_;
  }
  std::size_t given = 0;
  for (auto tile = tiles_.rbegin(); tile != tiles_.rend() && given < bytes; ++tile) {
    if (tile->second.state != BlockState::kFree) continue;
    const std::size_t begin = align_up(tile->first, page_bytes_) / page_bytes_;
    for (std::size_t page = (tile->first + tile->second.bytes) / page_bytes_; page-- > begin && given < bytes;) {
      const bool is_kept = page * page_bytes_ < kept_offset + kept_bytes && (page + 1) * page_bytes_ > kept_offset;
      if (!has_page(page) || is_kept) continue;
      drop_page(page);
      given += page_bytes_;
    }
  }
  while (!pages_.empty() && pages_.back() == 0) pages_.pop_back();
  return given;
}

/// The parts of a tile that have memory behind them, and those that have none.
template <class Visit>
void MemoryRange::for_each_part(const Tile& tile, Visit&& visit) const {
  const std::size_t end = tile.offset + tile.bytes;
  for (std::size_t begin = tile.offset; begin < end;) {
    std::size_t part_end = end;
    bool is_mapped = true;
    if (page_bytes_ != 0 && tile.state == BlockState::kFree) {
      std::size_t page = begin / page_bytes_;
      is_mapped = has_page(page);
      while (page < pages_.size() && has_page(page) == is_mapped && page * page_bytes_ < end) ++page;
      if (is_mapped || page < pages_.size()) part_end = std::min(page * page_bytes_, end);
    }
    visit(begin, part_end - begin, is_mapped);
    begin = part_end;
  }
}

std::size_t MemoryRange::largest_free_bytes() const {
  if (reserved_ == 0) return 0;
  std::size_t largest = 0;
  for (const auto& [bytes, offset] : free_) {
    for_each_part(tiles_.at(offset), [&](std::size_t, std::size_t part, bool is_mapped) {
      if (is_mapped) largest = std::max(largest, part);
    });
  }
  return largest;
}

void MemoryRange::walk(SegmentVisitor& visitor) const {
  if (reserved_ == 0) return;
  visitor.segment({.address = base_,
                   .bytes = reserved_,
                   .stream = tiles_.begin()->second.stream,
                   .is_expandable = page_bytes_ != 0});
  for (const auto& entry : tiles_) {
    const Tile& tile = entry.second;
    for_each_part(tile, [&](std::size_t begin, std::size_t bytes, bool is_mapped) {
      visitor.block({.address = base_ + begin,
                     .bytes = bytes,
                     .requested_bytes = tile.requested_bytes,
                     .state = is_mapped ? tile.state : BlockState::kUnmapped});
    });
  }
}

void MemoryRange::check_invariants() const {
  std::size_t end = 0, active = 0, free_tiles = 0;
  for (const auto& [offset, tile] : tiles_) {
    if (offset != end || tile.offset != offset || tile.bytes == 0)
      throw Error("planned: tiles do not tile their range");
    end += tile.bytes;
    if (tile.state != BlockState::kFree) {
      active += tile.bytes;
      for (std::size_t at = offset; page_bytes_ != 0 && at < end; at = (at / page_bytes_ + 1) * page_bytes_)
        if (!has_page(at / page_bytes_)) throw Error("planned: a block that is out has a page without memory");
    } else {
      ++free_tiles;
      if (!free_.contains({tile.bytes, offset})) throw Error("planned: a free tile is not in the index");
    }
  }
  if (end != bytes_) throw Error("planned: tiles do not tile their range");
  if (free_tiles != free_.size()) throw Error("planned: the index has tiles that are not there");
  if (active != active_) throw Error("planned: the bytes handed out differ from their count");
  std::size_t reserved = page_bytes_ == 0 ? reserved_ : 0;
  for (const std::uint64_t page : pages_) reserved += page != 0 ? page_bytes_ : 0;
  if (reserved != reserved_) throw Error("planned: the pages differ from their count");
}

}  // namespace tenon::planned
