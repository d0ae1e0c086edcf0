// What a TiledAllocator shows of itself. Included by tiled_allocator.h.
namespace tenon::tiled {

template <class Rules>
void TiledAllocator<Rules>::walk(SegmentVisitor& visitor) const {
  const LockAll lock(heaps_);
  for (const Segment* const segment : segments_.by_address()) {
    std::size_t mapped = 0;
    for (const Tile* tile = segment->first; tile; tile = tile->right)
      if (tile->state != BlockState::kUnmapped) mapped += tile->bytes;
    visitor.segment(
        {.address = segment->address, .bytes = mapped, .stream = segment->stream, .is_expandable = segment->is_range});
    for (const Tile* tile = segment->first; tile; tile = tile->right)
      visitor.block({.address = tile->address,
                     .bytes = tile->bytes,
                     .requested_bytes = is_in_use(tile) ? tile->requested_bytes : 0,
                     .state = tile->state});
  }
}

template <class Rules>
void TiledAllocator<Rules>::report(PolicyStats& stats) const {
  const LockAll lock(heaps_);
  stats.retries = retries_;
  stats.synchronizations = synchronizations_;
  stats.cached_bytes = cached_bytes();
  stats.largest_free_bytes = 0;
  for (const Segment* const segment : segments_.by_address())
    for (const Tile* tile = segment->first; tile; tile = tile->right)
      if (tile->is_free() && tile->bytes > stats.largest_free_bytes && suffices_for_its_bytes(tile))
        stats.largest_free_bytes = tile->bytes;
}

template <class Rules>
void TiledAllocator<Rules>::check_invariants() const {
  const LockAll lock(heaps_);
  std::size_t live = 0, reserved = 0;
  for (const Segment* const segment : segments_.by_address()) {
    std::uintptr_t next = segment->address;
    const Tile* left = nullptr;
    for (const Tile* tile = segment->first; tile; left = tile, tile = tile->right) {
      if (tile->left != left || tile->address != next || tile->bytes == 0) fail("tiles do not tile their segment");
      next = tile->end();
      if (tile->state != BlockState::kUnmapped) reserved += tile->bytes;
      if (is_in_use(tile)) live += tile->bytes;
      if (left && can_join(left, tile) && !is_last_freed(left) && !is_last_freed(tile))
        fail("free neighbours are not joined");
      if (tile->is_free() && !is_last_freed(tile) && !heap_of(tile).free.holds(tile))
        fail("a free tile is in no index");
    }
    if (next != segment->address + segment->bytes) fail("tiles end before their segment");
  }
  if (reserved != segments_.reserved_bytes()) fail("the segments' bytes differ from their count");
  if (live != live_bytes()) fail("the blocks' bytes differ from their count");
}

}  // namespace tenon::tiled
