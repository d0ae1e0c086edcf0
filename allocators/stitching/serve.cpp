// S1 to S5: the ways to a block.
#include "stitching_allocator.h"

#include <tenon/core/units.h>

#include <algorithm>

namespace tenon::stitching {

namespace {

Piece first_of(const Tile* tile, std::size_t bytes) { return {tile->segment, tile->address, bytes}; }
Piece last_of(const Tile* tile, std::size_t bytes) { return {tile->segment, tile->end() - bytes, bytes}; }

/// Behind each other where they are at home.
bool are_adjacent(std::span<const Piece> pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i)
    if (pieces[i].extent != pieces[i - 1].extent || pieces[i].address != pieces[i - 1].end()) return false;
  return true;
}

}  // namespace

/// Null where that is not free.
LargeBlock* StitchingAllocator::place_again(Pool& pool, std::size_t bytes, const Placement& placement) {
  if (placement.is_stitched) {
    StitchedRange* const range = ranges_.find(pool, bytes, placement.address);
    return range ? occupy(*range, range->pieces) : nullptr;
  }
  if (!primitives_.has(placement.extent, placement.address, bytes)) return nullptr;
  pieces_.clear();
  add_run(placement.extent, placement.address, bytes);
  const bool are_free = std::ranges::all_of(pieces_, [&](const Piece& p) { return primitives_.is_free(pool, p); });
  return are_free ? place(bytes, pieces_) : nullptr;
}

LargeBlock* StitchingAllocator::serve(Pool& pool, std::size_t bytes) {
  if (LargeBlock* const block = from_free(pool, bytes, stitch_from_)) return block;
  if (grow(pool, bytes, stitch_from_))
    if (LargeBlock* const block = from_free(pool, bytes, stitch_from_)) return block;
  // S5. What no stream uses any more is this one's, and everything may be stitched.
  synchronize();
  for (const auto& other : pools_.all())
    if (other.get() != &pool) primitives_.adopt(*other, pool);
  if (LargeBlock* const block = from_free(pool, bytes, 0)) return block;
  if (grow(pool, bytes, 0))
    if (LargeBlock* const block = from_free(pool, bytes, 0)) return block;
  if (slabs_.trim(0) + shrink(0) == 0) return nullptr;
  ++retries_;
  return grow(pool, bytes, 0) ? from_free(pool, bytes, 0) : nullptr;
}

/// Without new memory. In Note [What repeats maps nothing] it matters what comes before what.
LargeBlock* StitchingAllocator::from_free(Pool& pool, std::size_t bytes, std::size_t stitch_from) {
  if (bytes % chunk_bytes_ != 0)
    if (LargeBlock* const block = at_ends(pool, bytes)) return block;
  const std::size_t whole = align_up(bytes, chunk_bytes_);
  if (const Tile* const tile = pool.whole.find(whole)) {
    pieces_.clear();
    add_run(tile->segment, tile->address, bytes);
    return place(bytes, pieces_);
  }
  if (StitchedRange* const range = ranges_.find(pool, bytes)) return occupy(*range, range->pieces);
  return pool.whole_bytes >= whole && may_stitch(bytes, stitch_from) ? stitch(pool, bytes) : nullptr;
}

/// So many bytes from there on: a part of a chunk, whole ones, a part of one.
void StitchingAllocator::add_run(std::uint32_t extent, std::uintptr_t address, std::size_t bytes) {
  const std::size_t within = primitives_.within_chunk(extent, address);
  const auto add = [&](std::size_t part) {
    if (part != 0) pieces_.push_back({extent, address, part});
    address += part;
    bytes -= part;
  };
  if (within != 0) add(std::min(bytes, chunk_bytes_ - within));
  add(bytes / chunk_bytes_ * chunk_bytes_);
  add(bytes);
}

// ---------------------------------------------------------------------------------------------------------------------
// Chunks that blocks share

/// With an end of another block's chunk, or two.
LargeBlock* StitchingAllocator::at_ends(Pool& pool, std::size_t bytes) {
  pieces_.clear();
  if (!find_part(pool, bytes) && !find_behind_an_end(pool, bytes) && !find_between_ends(pool, bytes)) return nullptr;
  if (are_adjacent(pieces_)) return place(bytes, pieces_);
  if (StitchedRange* const range = ranges_.find(pool, bytes)) return occupy(*range, range->pieces);
  return has_room_for_a_range() ? place(bytes, pieces_) : nullptr;
}

/// The smallest part of a chunk that holds all of it. What is left of it stays at an end of the chunk.
bool StitchingAllocator::find_part(const Pool& pool, std::size_t bytes) {
  if (bytes >= chunk_bytes_) return false;
  const Tile* const front = pool.fronts.find(bytes);
  const Tile* best = front;
  for (const OrderedTiles* const parts : {&pool.ends, &pool.middles})
    if (const Tile* const part = parts->find(bytes); part && (!best || part->bytes < best->bytes)) best = part;
  if (!best) return false;
  pieces_.push_back(best == front ? last_of(best, bytes) : first_of(best, bytes));
  return true;
}

/// The end of a chunk and the free chunks behind it, as few as can be: nothing is mapped.
bool StitchingAllocator::find_behind_an_end(const Pool& pool, std::size_t bytes) {
  const Tile* best = nullptr;
  std::size_t best_chunks = 0;
  pool.ends.for_each([&](const Tile* end) {
    const Tile* const run = end->right;
    if (end->bytes >= bytes || !run || !run->is_free() || run->heap != &pool || primitives_.is_part(run)) return;
    const std::size_t chunks = align_up(bytes - end->bytes, chunk_bytes_);
    if (run->bytes < chunks) return;
    if (best && (chunks > best_chunks || (chunks == best_chunks && run->bytes >= best->right->bytes))) return;
    best = end;
    best_chunks = chunks;
  });
  if (!best) return false;
  pieces_.push_back(first_of(best, best->bytes));
  add_run(best->segment, best->right->address, bytes - best->bytes);
  return true;
}

/// The end of one chunk and the beginning of another that are together `bytes` long, less than a chunk, or one of them
/// that is; of those the ones that leave least over.
StitchingAllocator::Ends StitchingAllocator::find_ends(const Pool& pool, std::size_t bytes) {
  Ends best;
  const auto consider = [&](const Tile* head, const Tile* tail) {
    const std::size_t left_over = (head ? head->bytes : 0) + (tail ? tail->bytes : 0) - bytes;
    if (!best.found() || left_over < best.left_over) best = {head, tail, left_over};
  };
  if (const Tile* const head = pool.ends.find(bytes)) consider(head, nullptr);
  if (const Tile* const tail = pool.fronts.find(bytes)) consider(nullptr, tail);
  pool.ends.for_each([&](const Tile* head) {
    if (head->bytes >= bytes) return;
    if (const Tile* const tail = pool.fronts.find(bytes - head->bytes)) consider(head, tail);
  });
  return best;
}

/// What does not fill a chunk goes to ends, with whole chunks between them: it saves the chunk that would be used in
/// part. Of one end all is used: what is left is at an end again, of the chunks.
bool StitchingAllocator::find_between_ends(const Pool& pool, std::size_t bytes) {
  const std::size_t rest = bytes % chunk_bytes_, whole = bytes - rest;
  const Tile* const run = whole != 0 ? pool.whole.find(whole) : nullptr;
  if (whole != 0 && !run) return false;
  const auto [head, tail, left_over] = find_ends(pool, rest);
  if (head && !tail) {
    pieces_.push_back(first_of(head, head->bytes));
    add_run(run->segment, run->address, whole - left_over);
  } else if (tail && !head) {
    add_run(run->segment, run->address + left_over, whole - left_over);
    pieces_.push_back(first_of(tail, tail->bytes));
  } else if (head && tail) {
    pieces_.push_back(first_of(head, head->bytes));
    if (run) pieces_.push_back(first_of(run, whole));
    pieces_.push_back(first_of(tail, tail->bytes - left_over));
  }
  return head || tail;
}

// ---------------------------------------------------------------------------------------------------------------------
// Stitching

bool StitchingAllocator::may_stitch(std::size_t bytes, std::size_t stitch_from) {
  if (bytes < stitch_from || (most_chunks_ != 0 && bytes > most_chunks_ * chunk_bytes_)) return false;
  return has_room_for_a_range();
}

bool StitchingAllocator::has_room_for_a_range() {
  if (ranges_.count() < most_ranges_) return true;
  if (most_ranges_ == 0) return false;
  synchronize();  // nothing is unmapped that a stream may still use
  ranges_.forget(most_ranges_ / 2);
  return ranges_.count() < most_ranges_;
}

/// S3: the largest primitive blocks, so that they are few; the last one is the smallest that suffices.
LargeBlock* StitchingAllocator::stitch(Pool& pool, std::size_t bytes) {
  std::vector<const Tile*> tiles;
  pool.whole.for_each([&](const Tile* tile) { tiles.push_back(tile); });
  pieces_.clear();
  std::size_t rest = bytes;
  while (tiles.back()->bytes < rest) {
    pieces_.push_back(first_of(tiles.back(), tiles.back()->bytes));
    rest -= tiles.back()->bytes;
    tiles.pop_back();
  }
  const Tile* const last = pool.whole.find(align_up(rest, chunk_bytes_));
  add_run(last->segment, last->address, rest);
  return place(bytes, pieces_);
}

/// S4: new chunks, together with free ones where they may be stitched. False when the device has no more.
bool StitchingAllocator::grow(Pool& pool, std::size_t bytes, std::size_t stitch_from) {
  const std::size_t rest = bytes % chunk_bytes_;
  std::size_t missing = align_up(bytes, chunk_bytes_);
  if (rest != 0 && bytes > chunk_bytes_ && find_ends(pool, rest).found())
    missing -= chunk_bytes_;
  else if (pool.whole_bytes != 0 && may_stitch(bytes, stitch_from))
    missing -= std::min(missing, pool.whole_bytes);
  if (missing == 0) return true;
  return (growth_bytes_ > missing && primitives_.grow(pool, growth_bytes_)) || primitives_.grow(pool, missing);
}

/// A block of these free pieces; null when there is no address space.
LargeBlock* StitchingAllocator::place(std::size_t bytes, std::span<const Piece> pieces) {
  if (!are_adjacent(pieces)) {
    StitchedRange* const range = ranges_.make(bytes, pieces);
    return range ? occupy(*range, pieces) : nullptr;
  }
  if (spare_records_.empty()) {
    home_records_.push_back(std::make_unique<LargeBlock>());
    spare_records_.reserve(home_records_.size());  // so that a free cannot fail
    spare_records_.push_back(home_records_.back().get());
  }
  LargeBlock* const block = occupy(*spare_records_.back(), pieces);
  spare_records_.pop_back();
  block->address = pieces.front().address;
  block->bytes = bytes;
  return block;
}

LargeBlock* StitchingAllocator::occupy(LargeBlock& block, std::span<const Piece> pieces) {
  primitives_.prepare(pieces.size());
  block.lent.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    Tile* const tile = primitives_.take(piece);
    tile->next = &block;
    block.lent.push_back(tile);
  }
  block.heap = block.lent.front()->heap;
  return &block;
}

}  // namespace tenon::stitching
