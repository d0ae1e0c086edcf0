// Pieces mapped one behind the other, lent, and given back.
#include "joined.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>

namespace tenon::mortise {

JoinedRanges::~JoinedRanges() {
  for (const auto& [serial, range] : ranges_) unmap(*range);
}

bool JoinedRanges::is_free(StreamCache& cache, const JoinedRange& range) {
  for (const Piece& piece : range.pieces) {
    const Tile* tile = cache.containing(piece.address);
    if (tile == nullptr || tile->state != TileState::kFree || tile->end() < piece.address + piece.bytes) return false;
  }
  return true;
}

/// occupy() needs no memory of the host after this.
void JoinedRanges::prepare(StreamCache& cache, JoinedRange& range) {
  cache.records.provide(2 * range.pieces.size() + 1);
  range.lent.reserve(range.pieces.size());
}

/// The pieces are free: they are lent from now on.
Tile* JoinedRanges::occupy(StreamCache& cache, JoinedRange& range) {
  for (const Piece& piece : range.pieces) {
    Tile* part = cache.take_part(cache.containing(piece.address), piece.address, piece.bytes);
    part->state = TileState::kLent;
    part->borrower = &range;
    range.lent.push_back(part);
  }
  Tile* tile = cache.records.take();
  tile->address = begin_of(range, home_.page_bytes());
  tile->bytes = range.bytes;
  tile->cache = &cache;
  tile->joined = &range;
  range.tile = tile;
  return tile;
}

Tile* JoinedRanges::take_waiting(StreamCache& cache, std::size_t bytes) {
  const BiasedLock::Guard lock(mutex_);
  const auto found = of_size_.find(bytes);
  if (found == of_size_.end()) return nullptr;
  for (JoinedRange* range : found->second)
    if (is_free(cache, *range)) return take(cache, *range);
  return nullptr;
}

Tile* JoinedRanges::take_again(StreamCache& cache, std::uint64_t serial, std::size_t bytes) {
  const BiasedLock::Guard lock(mutex_);
  const auto found = ranges_.find(serial);
  if (found == ranges_.end()) return nullptr;
  JoinedRange& range = *found->second;
  return range.bytes == bytes && range.tile == nullptr && is_free(cache, range) ? take(cache, range) : nullptr;
}

Tile* JoinedRanges::take(StreamCache& cache, JoinedRange& range) {
  prepare(cache, range);
  busy_.splice(busy_.end(), of_size_.find(range.bytes)->second, range.place);
  return occupy(cache, range);
}

void JoinedRanges::map_pieces(JoinedRange& range) {
  const std::size_t page = home_.page_bytes();
  std::uintptr_t at = range.address;
  try {
    for (const Piece& piece : range.pieces) {
      std::uintptr_t from = piece.address / page * page;
      const std::uintptr_t end = align_up(piece.address + piece.bytes, page);
      while (from < end) {  // a piece may lie on several chunks
        const Chunk& chunk = home_.chunk_at(from);
        const std::size_t bytes = std::min(end, chunk.address + chunk.bytes) - from;
        source_.map(pointer(at), bytes, chunk.physical, from - chunk.address);
        at += bytes;
        from += bytes;
      }
    }
  } catch (...) {
    if (at != range.address) source_.unmap(pointer(range.address), at - range.address);
    throw;
  }
}

Tile* JoinedRanges::make(StreamCache& cache, std::size_t bytes, std::vector<Piece> pieces) {
  const std::size_t page = home_.page_bytes();
  auto made = std::make_unique<JoinedRange>();
  JoinedRange& range = *made;
  range.bytes = bytes;
  range.serial = ++made_;
  range.pieces = std::move(pieces);
  for (const Piece& piece : range.pieces)
    range.range_bytes += align_up(piece.address + piece.bytes, page) - piece.address / page * page;
  prepare(cache, range);
  std::list<JoinedRange*> place{&range}, turn{&range};
  range.address = home_.addresses().take(range.range_bytes);
  if (range.address == 0) return nullptr;
  try {
    map_pieces(range);  // nobody knows it yet: the device is called without the lock
  } catch (...) {
    home_.addresses().give(range.address, range.range_bytes);
    throw;
  }
  const BiasedLock::Guard lock(mutex_);
  std::unique_ptr<JoinedRange>* kept = nullptr;
  try {
    of_size_.try_emplace(bytes);  // all that give_back will need is there from now on
    kept = &ranges_[range.serial];
  } catch (...) {
    unmap(range);
    throw;
  }
  *kept = std::move(made);  // not in emplace(), which may destroy what it cannot keep
  range.place = place.begin();
  range.turn = turn.begin();
  busy_.splice(busy_.end(), place);
  turns_.splice(turns_.end(), turn);
  return occupy(cache, range);
}

void JoinedRanges::give_back(Tile* tile) noexcept {
  const BiasedLock::Guard lock(mutex_);
  JoinedRange& range = *tile->joined;
  StreamCache& cache = *tile->cache;
  for (Tile* part : range.lent) cache.give_back(part);
  range.lent.clear();
  range.tile = nullptr;
  cache.records.give(tile);
  std::list<JoinedRange*>& waiting = of_size_.find(range.bytes)->second;
  waiting.splice(waiting.end(), busy_, range.place);
  turns_.splice(turns_.end(), turns_, range.turn);
}

void JoinedRanges::unmap(const JoinedRange& range) noexcept {
  source_.unmap(pointer(range.address), range.range_bytes);
  home_.addresses().give(range.address, range.range_bytes);
}

void JoinedRanges::forget_waiting(std::size_t left) noexcept {
  const BiasedLock::Guard lock(mutex_);  // under which no other stream takes one again that is being unmapped
  for (auto turn = turns_.begin(); turn != turns_.end() && waiting_locked() > left;) {
    JoinedRange* range = *turn;
    if (range->tile != nullptr) {
      ++turn;
      continue;
    }
    unmap(*range);
    turn = turns_.erase(turn);
    const auto of_size = of_size_.find(range->bytes);
    of_size->second.erase(range->place);
    ranges_.erase(range->serial);
  }
  // A busy range finds the list of its size again.
  std::erase_if(of_size_, [&](const auto& entry) {
    return entry.second.empty() &&
           std::ranges::none_of(busy_, [&](const JoinedRange* range) { return range->bytes == entry.first; });
  });
}

void JoinedRanges::check() const {
  const BiasedLock::Guard lock(mutex_);
  for (const auto& [serial, range] : ranges_) {
    if ((range->tile == nullptr) != range->lent.empty()) throw Error("mortise: a range without a block borrows");
    std::size_t bytes = 0;
    for (const Piece& piece : range->pieces) bytes += piece.bytes;
    if (bytes != range->bytes) throw Error("mortise: the pieces of a block are not its bytes");
    for (const Tile* part : range->lent)
      if (part->state != TileState::kLent || part->borrower != range.get())
        throw Error("mortise: a piece of a block is not lent to it");
  }
}

}  // namespace tenon::mortise
