// Where the tiles of a TiledAllocator come from when the index has none: other streams, pages, the device; and how they
// go back. Included by tiled_allocator.h.
namespace tenon::tiled {

template <class Rules>
Tile* TiledAllocator<Rules>::find_or_grow(Heap& heap, std::size_t bytes) {
  settle_last(heap);
  if (Tile* const tile = heap.free.find_hard(bytes)) return taken(heap, heap, tile, bytes);
  if constexpr (Rules::kLanes)
    if (heap.lane != 0) return from_new_page(heap, bytes);
  if constexpr (Rules::kShares && Rules::kWaitsFirst)
    if (Tile* const tile = from_others(heap, bytes)) return tile;
  if (grow(heap, bytes)) {
    if (Tile* const tile = heap.free.find_hard(bytes)) return taken(heap, heap, tile, bytes);
  }
  if constexpr (Rules::kShares && !Rules::kWaitsFirst)
    if (Tile* const tile = from_others(heap, bytes)) return tile;
  return nullptr;
}

template <class Rules>
Tile* TiledAllocator<Rules>::from_new_page(Heap& heap, std::size_t bytes) {
  Tile* const page = find_or_grow(heaps_.known(heap.stream, 0), rules_.page_bytes(heap.lane));
  if (!page) return nullptr;
  page->starts_page = true;
  page->heap = &heap;
  heap.free.insert(page);
  return taken(heap, heap, page, bytes);
}

template <class Rules>
Tile* TiledAllocator<Rules>::from_others(Heap& heap, std::size_t bytes) {
  for (const auto& other : heaps_.all()) {
    if (other.get() == &heap || other->lane != 0) continue;
    settle_last(*other);
    Tile* const tile = other->free.find_hard(bytes);
    if (tile && can_take_from(*other)) return taken(heap, *other, tile, bytes);
  }
  for (const auto& other : heaps_.all()) {
    if (other.get() == &heap || other->lane != 0 || other->free.empty() || !can_take_from(*other)) continue;
    adopt(heap, *other);
    if (Tile* const tile = heap.free.find_hard(bytes)) return taken(heap, heap, tile, bytes);
  }
  return nullptr;
}

template <class Rules>
bool TiledAllocator<Rules>::can_take_from(const Heap& other) {
  if (Rules::kMarksFrees && !other.has_freed) return true;  // what it holds free has not been used yet
  const Ticket here = end_of_work(other);
  if (rules_.takes_from_idle() && source_.reached(here)) return true;
  if (rules_.waits_for_others()) source_.wait(here);
  return rules_.waits_for_others();
}

template <class Rules>
void TiledAllocator<Rules>::mark_free(Heap& heap) noexcept {
  heap.has_freed = true;
  heap.freed.reset();
  try {
    heap.freed = source_.mark(heap.stream);
  } catch (const Error&) {
    // It is asked again when somebody wants to know.
  }
}

template <class Rules>
void TiledAllocator<Rules>::adopt(Heap& heap, Heap& other) noexcept {
  settle_last(other);
  while (Tile* const tile = other.free.any()) {
    other.free.erase(tile);
    tile->heap = &heap;
    settle(heap, tile);
  }
}

template <class Rules>
bool TiledAllocator<Rules>::grow(Heap& heap, std::size_t bytes) {
  if (rules_.grows_ranges()) return grow_range(heap, bytes);
  if constexpr (Rules::kShares)
    if (cached_bytes() > rules_.kept_when_idle() && are_all_idle()) give_back(rules_.kept_when_idle());
  std::size_t asked = rules_.segment_bytes(bytes, segments_.reserved_bytes());
  while (asked != 0) {
    if (acquire(heap, asked)) {
      rules_.grew(bytes);
      return true;
    }
    asked = rules_.after_refusal(asked, bytes);
  }
  return false;
}

template <class Rules>
bool TiledAllocator<Rules>::are_all_idle() {
  return std::ranges::all_of(heaps_.all(), [&](const auto& heap) {
    return (Rules::kMarksFrees && !heap->has_freed) || source_.reached(end_of_work(*heap));
  });
}

template <class Rules>
bool TiledAllocator<Rules>::acquire(Heap& heap, std::size_t bytes) {
  Tile* const tile = segments_.acquire(bytes, heap.stream, tiles_of(heap));
  if (!tile) return false;
  tile->heap = &heap;
  heap.free.insert(tile);
  return true;
}

template <class Rules>
bool TiledAllocator<Rules>::grow_range(Heap& heap, std::size_t bytes) {
  const auto free_bytes = [](const Tile* tile) { return tile && tile->is_free() ? tile->bytes : 0; };
  Tile* hole = nullptr;
  for (Tile* tile = heap.unmapped.first(); tile; tile = tile->next)
    if (free_bytes(tile->left) + tile->bytes + free_bytes(tile->right) >= bytes &&
        (!hole || tile->address < hole->address))
      hole = tile;
  if (!hole) {
    const std::size_t range = rules_.range_bytes(bytes);
    hole = range != 0 ? segments_.reserve(range, heap.stream, tiles_of(heap)) : nullptr;
    if (!hole) return false;
    hole->heap = &heap;
    heap.unmapped.insert(hole);
  }
  const std::size_t missing = bytes - std::min(bytes, free_bytes(hole->left));
  const std::size_t mapped = std::min(rules_.map_bytes(missing), hole->bytes);
  if (hole->bytes > mapped) heap.unmapped.insert(cut(heap, hole, mapped));
  bool done = false;
  try {
    done = segments_.map(hole, mapped);
  } catch (...) {
    rejoin_hole(heap, hole);
    throw;
  }
  if (!done) {
    rejoin_hole(heap, hole);
    return false;
  }
  rules_.range_reached(hole->end() - segments_.of(hole).address);
  heap.unmapped.erase(hole);
  hole->state = BlockState::kFree;
  settle(heap, hole);
  return true;
}

template <class Rules>
void TiledAllocator<Rules>::rejoin_hole(Heap& heap, Tile* hole) noexcept {
  Tile* const right = hole->right;
  if (!right || right->state != BlockState::kUnmapped) return;
  heap.unmapped.erase(right);
  join(heap, hole, right);
}

template <class Rules>
std::size_t TiledAllocator<Rules>::give_back(std::size_t keep) {
  if (uses_.any_waiting()) {
    for (Tile* const tile : uses_.take_all(source_)) finish(heap_of(tile), tile);
  }
  if (cached_bytes() <= keep) return 0;
  source_.synchronize();
  ++synchronizations_;
  std::vector<Tile*> free;
  for (const auto& heap : heaps_.all()) settle_last(*heap);
  if constexpr (Rules::kShares)
    for (const auto& heap : heaps_.all())
      if (heap->lane == 0 && heap != heaps_.all().front()) adopt(*heaps_.all().front(), *heap);
  for (const Segment* const segment : segments_.by_address())
    for (Tile* tile = segment->first; tile; tile = tile->right)
      if (tile->is_free() && (segment->is_range || tile->is_whole_segment())) free.push_back(tile);
  std::ranges::stable_sort(free, std::greater{}, &Tile::bytes);
  const std::size_t before = segments_.reserved_bytes();
  for (Tile* const tile : free) {
    if (cached_bytes() <= keep) break;
    if (segments_.of(tile).is_range) {
      unmap(heap_of(tile), tile, cached_bytes() - keep);
      continue;
    }
    heap_of(tile).free.erase(tile);
    segments_.release(tile);
    tiles_of(heap_of(tile)).give(tile);
  }
  return before - segments_.reserved_bytes();
}

template <class Rules>
void TiledAllocator<Rules>::unmap(Heap& heap, Tile* tile, std::size_t bytes) {
  tiles_of(heap).reserve(2);
  const auto gone = segments_.unmap(segments_.of(tile), tile->address, tile->end(), bytes);
  if (gone.empty()) return;
  heap.free.erase(tile);
  const std::uintptr_t begin = gone.front().first, end = gone.back().first + gone.back().second;
  if (end < tile->end()) heap.free.insert(cut(heap, tile, end - tile->address));
  if (begin > tile->address) {
    Tile* const hole = cut(heap, tile, begin - tile->address);
    heap.free.insert(tile);
    tile = hole;
  }
  tile->state = BlockState::kUnmapped;
  heap.unmapped.insert(tile);
  rejoin_hole(heap, tile);
  if (tile->left && tile->left->state == BlockState::kUnmapped) rejoin_hole(heap, tile->left);
}

template <class Rules>
void TiledAllocator<Rules>::defer(Heap& heap, Tile* tile, StreamRef last_use) noexcept {
  const std::lock_guard all(heaps_.mutex());
  const std::lock_guard lock(heap.lock);
  if (last_use != heap.stream) {
    try {
      StreamUses::add(tile, last_use);
    } catch (const std::bad_alloc&) {
      tile->state = BlockState::kAwaitingStream;  // for good: safe, and the host is out of memory anyway
      return;
    }
  }
  uses_.defer(tile, source_);
}

template <class Rules>
void TiledAllocator<Rules>::finish(Heap& heap, Tile* tile) noexcept {
  if (observer_) observer_->free_completed(tile->data(), tile->requested_bytes, heap.stream);
  settle_last(heap);
  heap.live_bytes -= tile->bytes;
  tile->state = BlockState::kFree;
  settle(heap, tile);
  if constexpr (Rules::kMarksFrees) mark_free(heap);  // the streams that were waited for are the others
}

template <class Rules>
void TiledAllocator<Rules>::finish_reached() {
  const std::lock_guard all(heaps_.mutex());
  for (Tile* const tile : uses_.take_reached(source_)) {
    const std::lock_guard lock(heap_of(tile).lock);
    finish(heap_of(tile), tile);
  }
}

}  // namespace tenon::tiled
