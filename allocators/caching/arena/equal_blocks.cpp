// Rising and sinking in the heap of one size, and the memory of heaps.
#include "equal_blocks.h"

#include <algorithm>
#include <new>

namespace tenon::caching {

EqualBlocks::Heap* HeapStore::take(std::size_t level) {
  EqualBlocks::Heap* heap = spare_[level];
  if (heap) {
    spare_[level] = heap->next_spare;
  } else {
    // The header and the first entry are one line, four entries each of the others.
    owned_.push_back(std::make_unique_for_overwrite<Line[]>(1 + (std::size_t{1} << level)));
    heap = new (owned_.back().get()) EqualBlocks::Heap;
  }
  heap->count = 0;
  heap->level = level;
  return heap;
}

/// The entry goes up from `place`, past what comes after it.
void EqualBlocks::rise(Entry* entries, std::size_t place, Entry entry) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / kBranches;
    if (entries[parent].order < entry.order) break;
    put(entries, place, entries[parent]);
    place = parent;
  }
  put(entries, place, entry);
}

/// The entry goes down from `place`, below what comes before it. The least child cannot be predicted, so it is chosen
/// without a branch.
void EqualBlocks::sink(Entry* entries, std::size_t count, std::size_t place, Entry entry) {
  for (;;) {
    const std::size_t child = place * kBranches + 1;
    if (child >= count) break;
    const Entry* four = &entries[child];
    const std::size_t low = four[1].order < four[0].order;
    const std::size_t high = 2 + std::size_t{four[3].order < four[2].order};
    const std::size_t is_high = four[high].order < four[low].order;
    const std::size_t least = child + low + is_high * (high - low);
    if (entry.order < entries[least].order) break;
    put(entries, place, entries[least]);
    place = least;
  }
  put(entries, place, entry);
}

void EqualBlocks::insert_beside(BlockRecord* block, HeapStore& heaps) {
  if (is_single()) {
    BlockRecord* other = single();
    Heap* made = heaps.take(0);
    put(entries(made), 0, {other->order, other});
    made->count = 1;
    root_ = reinterpret_cast<std::uintptr_t>(made) | 1;
  }
  Heap* into = heap();
  if (into->count == room(into->level)) {
    Heap* larger = heaps.take(into->level + 1);
    std::copy_n(entries(into), into->count, entries(larger));
    larger->count = into->count;
    root_ = reinterpret_cast<std::uintptr_t>(larger) | 1;
    heaps.give(into);
    into = larger;
  }
  const std::size_t place = into->count++;
  if (place % kBranches == 1)
    for (std::size_t sister = place + 1; sister < place + kBranches; ++sister) entries(into)[sister].order = kNone;
  rise(entries(into), place, {block->order, block});
}

void EqualBlocks::erase(BlockRecord* block, HeapStore& heaps) {
  Heap* from = heap();
  Entry* all = entries(from);
  const std::size_t place = block->place;
  const std::size_t count = --from->count;
  const Entry last = all[count];
  all[count].order = kNone;
  if (count == 1) {
    set_single(place == 0 ? last.block : all[0].block);
    heaps.give(from);
    return;
  }
  if (place == count) return;
  if (place > 0 && last.order < all[(place - 1) / kBranches].order)
    rise(all, place, last);
  else
    sink(all, count, place, last);
}

/// The least entry above `order` at or below `place`, or `best`.
const EqualBlocks::Entry* EqualBlocks::least_above(const Entry* all, std::size_t count, std::size_t place,
                                                   std::uint64_t order, const Entry* best) {
  if (place >= count) return best;
  const Entry* entry = &all[place];
  // What is below this one comes after it.
  if (entry->order > order) return !best || entry->order < best->order ? entry : best;
  for (std::size_t child = place * kBranches + 1; child <= place * kBranches + kBranches; ++child)
    best = least_above(all, count, child, order, best);
  return best;
}

BlockRecord* EqualBlocks::after(std::uint64_t order) const {
  if (is_single()) return single()->order > order ? single() : nullptr;
  const Entry* next = least_above(entries(heap()), heap()->count, 0, order, nullptr);
  return next ? next->block : nullptr;
}

std::vector<BlockRecord*> EqualBlocks::in_order() const {
  if (is_single()) return {single()};
  std::vector<Entry> sorted(entries(heap()), entries(heap()) + heap()->count);
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.order < b.order; });
  std::vector<BlockRecord*> blocks;
  for (const Entry& entry : sorted) blocks.push_back(entry.block);
  return blocks;
}

}  // namespace tenon::caching
