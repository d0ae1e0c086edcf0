// Expandable segments: address space for the whole device per stream and pool, memory behind it page by page.
//
//   | active | free | active | free |        unmapped                      |     one segment
//   |<------ pages, each one physical piece ->|                                   grows at its end, or where a hole is
//
// Segments never change stream; pages move between streams only by unmapping and mapping.
#include "everything.h"
#include "hot_path.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>

namespace tenon::caching {

namespace {

bool is_usable(const Piece* piece) {
  return piece->state == BlockState::kFree || piece->state == BlockState::kUnmapped;
}

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

/// The piece takes in its right neighbour, whose record the caller gives back.
void absorb_right(Piece* piece) {
  const Piece* right = piece->right;
  piece->bytes += right->bytes;
  piece->right = right->right;
  if (piece->right) piece->right->left = piece;
}

}  // namespace

/// Cuts `piece` at `bytes`; the new right part has the same state and is in no index.
static Piece* cut(Piece* piece, std::size_t bytes, std::uint64_t order_step) {
  Piece* rest = piece->arena->pieces.take();
  *rest = *piece;
  rest->address += bytes;
  rest->bytes -= bytes;
  rest->order += order_step;
  rest->left = piece;
  piece->right = rest;
  piece->bytes = bytes;
  if (rest->right) rest->right->left = rest;
  return rest;
}

Piece* Policy::expand_locked(Arena& arena, bool large, std::size_t bytes) {
  Piece* piece = find_space_locked(arena, large, bytes);
  if (!piece) return nullptr;
  if (piece->state == BlockState::kUnmapped) {
    piece = map_locked(piece, std::min(piece->bytes, bytes));
    if (!piece) return nullptr;
  }
  // A part that was mapped before a failure stays cached: the flush that follows takes it back.
  while (piece->bytes < bytes) {
    Piece* right = piece->right;  // unmapped, by find_space
    piece = map_locked(right, std::min(bytes - piece->bytes, right->bytes));
    if (!piece) return nullptr;
  }
  arena.free[large].erase(piece);
  return piece;
}

/// The first run of free and unmapped pieces that is long enough and contains something unmapped; else a new segment.
Piece* Policy::find_space_locked(Arena& arena, bool large, std::size_t bytes) {
  for (Piece* hole : arena.unmapped[large]) {
    Piece* start = hole->left && is_usable(hole->left) ? hole->left : hole;
    std::size_t available = 0;
    for (const Piece* piece = start; piece && is_usable(piece); piece = piece->right) {
      available += piece->bytes;
      if (available < bytes) continue;
      if (watcher_ && !piece->right) {
        const Segment& segment = segments_[piece->segment];
        watcher_->relied_on(segment.page_bytes, segment.bytes - (available - bytes));
      }
      return start;
    }
  }
  const std::size_t granule = std::max<std::size_t>(source_.traits().page_bytes, 1);
  const std::size_t page = align_up(large ? settings_.large_segment_bytes : kSmallSegmentBytes, granule);
  const std::size_t space = align_up(address_space_bytes_, page);
  if (bytes > space) return nullptr;
  if (watcher_) watcher_->relied_on(page, bytes);
  void* address = source_.reserve(space);
  if (!address) return nullptr;
  Piece* piece = new_segment_locked(arena, large, reinterpret_cast<std::uintptr_t>(address), space, true);
  segments_[piece->segment].page_bytes = page;
  arena.unmapped[large].insert(piece);
  return piece;
}

/// Puts memory behind the first `bytes` of an unmapped piece, in whole pages, merges and caches the result. Null when
/// the device has no more; then, and when the source throws, nothing has changed.
Piece* Policy::map_locked(Piece* piece, std::size_t bytes) {
  Segment& segment = segments_[piece->segment];
  Arena& arena = *piece->arena;
  const std::size_t page = segment.page_bytes;
  const std::size_t mapped_bytes = align_up(bytes, page);
  const std::size_t first = (piece->address - segment.address) / page;
  const std::size_t count = mapped_bytes / page;
  if (segment.pages.size() < first + count) segment.pages.resize(first + count);

  std::size_t created = 0, mapped = 0;
  const auto undo = [&] {
    if (mapped > 0) source_.unmap(piece->data(), mapped * page);
    for (std::size_t i = 0; i < created; ++i) {
      source_.destroy({segment.pages[first + i]}, page);
      segment.pages[first + i] = 0;
    }
  };
  try {
    for (; created < count; ++created) {
      const Physical physical = source_.create(page);
      if (!physical) break;
      segment.pages[first + created] = physical.value;
    }
    if (created == count)
      for (; mapped < count; ++mapped)
        source_.map(at(piece->address + mapped * page), page, {segment.pages[first + mapped]}, 0);
  } catch (...) {
    undo();
    throw;
  }
  if (created < count) {
    undo();
    return nullptr;
  }

  arena.unmapped[segment.large].erase(piece);
  if (piece->bytes > mapped_bytes)
    arena.unmapped[segment.large].insert(cut(piece, mapped_bytes, order_step(mapped_bytes)));
  piece->state = BlockState::kFree;
  FreeIndex& free = arena.free[segment.large];
  if (Piece* left = piece->left; left && left->state == BlockState::kFree) {
    free.erase(left);
    absorb_right(left);
    arena.pieces.give(piece);
    piece = left;
  }
  if (Piece* right = piece->right; right && right->state == BlockState::kFree) {
    free.erase(right);
    absorb_right(piece);
    arena.pieces.give(right);
  }
  put_locked(arena, segment.large, piece);
  segment.mapped_bytes += mapped_bytes;
  count_reserved_locked(arena, segment.large, static_cast<std::int64_t>(mapped_bytes));
  return piece;
}

/// Takes the whole pages of a free piece back; what is left of it before and behind them stays cached. Returns the
/// bytes.
std::size_t Policy::unmap_locked(Piece* piece) {
  Segment& segment = segments_[piece->segment];
  Arena& arena = *piece->arena;
  const std::size_t page = segment.page_bytes;
  const std::uintptr_t begin = segment.address + align_up(piece->address - segment.address, page);
  const std::uintptr_t end = segment.address + (piece->address + piece->bytes - segment.address) / page * page;
  if (begin >= end) return 0;
  const std::size_t bytes = end - begin;
  source_.wait(source_.mark(arena.stream));

  arena.free[segment.large].erase(piece);
  source_.unmap(at(begin), bytes);
  for (std::size_t i = (begin - segment.address) / page; i < (end - segment.address) / page; ++i) {
    source_.destroy({segment.pages[i]}, page);
    segment.pages[i] = 0;
  }
  if (begin > piece->address) {
    Piece* middle = cut(piece, begin - piece->address, order_step(begin - piece->address));
    put_locked(arena, segment.large, piece);
    piece = middle;
  }
  if (piece->bytes > bytes) put_locked(arena, segment.large, cut(piece, bytes, order_step(bytes)));

  piece->state = BlockState::kUnmapped;
  if (Piece* left = piece->left; left && left->state == BlockState::kUnmapped) {
    absorb_right(left);
    arena.pieces.give(piece);
    piece = left;
  } else {
    arena.unmapped[segment.large].insert(piece);
  }
  if (Piece* right = piece->right; right && right->state == BlockState::kUnmapped) {
    arena.unmapped[segment.large].erase(right);
    absorb_right(piece);
    arena.pieces.give(right);
  }
  const bool large = segment.large;
  segment.mapped_bytes -= bytes;
  count_reserved_locked(arena, large, -static_cast<std::int64_t>(bytes));
  if (piece->is_whole_segment()) {
    arena.unmapped[large].erase(piece);
    source_.unreserve(at(segment.address), segment.bytes);
    forget_segment_locked(piece);
  }
  return bytes;
}

}  // namespace tenon::caching
