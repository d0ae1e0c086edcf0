// Ranges mapped, found again and forgotten.
#include "stitched_ranges.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>

namespace tenon::stitching {

StitchedRanges::~StitchedRanges() {
  for (const auto& range : ranges_) unmap(*range);
}

StitchedRange* StitchedRanges::find(const Pool& pool, std::size_t bytes, std::uintptr_t address) const {
  const auto found = of_size_.find(bytes);
  if (found == of_size_.end()) return nullptr;
  for (StitchedRange* const range : found->second)
    if (range->is_idle() && (address == 0 || range->address == address) &&
        std::ranges::all_of(range->pieces, [&](const Piece& piece) { return primitives_.is_free(pool, piece); }))
      return range;
  return nullptr;
}

Piece StitchedRanges::hull(const Piece& piece) const {
  const std::size_t before = primitives_.within_chunk(piece.extent, piece.address);
  return {.extent = piece.extent,
          .address = piece.address - before,
          .bytes = align_up(before + piece.bytes, primitives_.chunk_bytes())};
}

void StitchedRanges::map(StitchedRange& range) {
  std::uintptr_t at = range.range;
  try {
    for (std::size_t i = 0; i < range.pieces.size();) {
      Piece chunks = hull(range.pieces[i]);
      // What is adjacent at home takes one call.
      for (++i; i < range.pieces.size(); ++i) {
        const Piece next = hull(range.pieces[i]);
        if (next.extent != chunks.extent || next.address != chunks.end()) break;
        chunks.bytes += next.bytes;
      }
      const Extent& extent = *primitives_.extents()[chunks.extent];
      source_.map(pointer(at), chunks.bytes, extent.physical, chunks.address - extent.address);
      at += chunks.bytes;
    }
  } catch (...) {
    if (at != range.range) source_.unmap(pointer(range.range), at - range.range);
    throw;
  }
}

void StitchedRanges::unmap(const StitchedRange& range) noexcept {
  source_.unmap(pointer(range.range), range.range_bytes);
  addresses_.give(range.range, range.range_bytes);
}

StitchedRange* StitchedRanges::make(std::size_t bytes, std::span<const Piece> pieces) {
  auto made = std::make_unique<StitchedRange>();
  StitchedRange& range = *made;
  range.is_stitched = true;
  range.bytes = bytes;
  range.pieces.assign(pieces.begin(), pieces.end());
  for (const Piece& piece : pieces) range.range_bytes += hull(piece).bytes;
  std::vector<StitchedRange*>& of_size = of_size_[bytes];
  of_size.reserve(of_size.size() + 1);
  ranges_.push_back(std::move(made));
  range.turn = std::prev(ranges_.end());
  try {
    range.range = addresses_.take(range.range_bytes);
    if (range.range != 0) map(range);
  } catch (...) {
    if (range.range != 0) addresses_.give(range.range, range.range_bytes);
    ranges_.pop_back();
    throw;
  }
  if (range.range == 0) {
    ranges_.pop_back();
    return nullptr;
  }
  range.address = range.range + primitives_.within_chunk(pieces.front().extent, pieces.front().address);
  of_size.push_back(&range);
  return &range;
}

StitchedRanges::Ranges::iterator StitchedRanges::drop(Ranges::iterator at) noexcept {
  StitchedRange& range = **at;
  unmap(range);
  const auto of_size = of_size_.find(range.bytes);
  std::erase(of_size->second, &range);
  if (of_size->second.empty()) of_size_.erase(of_size);
  return ranges_.erase(at);
}

void StitchedRanges::forget(std::size_t left) noexcept {
  for (auto at = ranges_.begin(); at != ranges_.end() && ranges_.size() > left;)
    at = (*at)->is_idle() ? drop(at) : std::next(at);
}

void StitchedRanges::forget_those_of(std::uint32_t extent) noexcept {
  for (auto at = ranges_.begin(); at != ranges_.end();) {
    const bool has_piece =
        std::ranges::any_of((*at)->pieces, [&](const Piece& piece) { return piece.extent == extent; });
    at = has_piece ? drop(at) : std::next(at);
  }
}

void StitchedRanges::check() const {
  for (const auto& range : ranges_) {
    std::size_t bytes = 0, hulls = 0;
    for (const Piece& piece : range->pieces) {
      bytes += piece.bytes;
      hulls += hull(piece).bytes;
    }
    if (bytes != range->bytes || hulls != range->range_bytes)
      throw Error("stitching: the pieces of a stitched range are not its bytes");
    if (!range->is_idle() && range->lent.size() != range->pieces.size())
      throw Error("stitching: a stitched block does not have its pieces");
    for (const Tile* const tile : range->lent)
      if (tile->is_free() || tile->next != range.get()) throw Error("stitching: a piece of a block is not lent to it");
  }
}

}  // namespace tenon::stitching
