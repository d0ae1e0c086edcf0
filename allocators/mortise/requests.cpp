// Requests and frees as they mostly go: under the stream's lock alone.
#include "mortise_allocator.h"

#include "tiled/copy_request.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <mutex>
#include <new>
#include <optional>

namespace tenon::mortise {

namespace {

/// More than any device has, and little enough that no sum of sizes wraps.
constexpr std::size_t kLargestBlock = 16 * TiB;

/// A freed tile as long as this is merged before another size is looked for: what finds no long hole is put together
/// and mapped page by page, which takes a device milliseconds.
constexpr std::size_t kLongHeld = 8 * MiB;

}  // namespace

[[gnu::always_inline]] inline void MortiseAllocator::mark_active(Tile* tile, const Request& request) {
  tile->state = TileState::kActive;
  tile->requested_bytes = request.bytes;
}

[[gnu::always_inline]] inline Block MortiseAllocator::block_of(const Tile* tile, std::size_t bytes, void* cookie,
                                                               const Request& request) {
  Block block;
  block.data = pointer(tile->address);
  block.bytes = bytes;
  block.cookie = cookie;
  tiled::copy_request(block.request, request);
  return block;
}

[[gnu::always_inline]] inline Place MortiseAllocator::place_of(const Tile* tile) {
  return tile->is_joined() ? Place::in_joined(tile->joined->serial) : Place::at(tile->address);
}

[[gnu::noinline]] void MortiseAllocator::note_place(StreamCache& cache, std::size_t bytes, Purpose purpose,
                                                    const Tile* tile) {
  if (Rhythm* const rhythm = rhythm_of(cache, purpose))
    rhythm->note(Rhythm::key_of(cache.stream, bytes), place_of(tile));
}

Tile* MortiseAllocator::place_again(StreamCache& cache, std::size_t bytes, Place place) {
  if (place.is_joined()) return joined_.take_again(cache, place.serial(), bytes);
  Tile* tile = cache.containing(place.address());
  if (tile == nullptr || tile->state != TileState::kFree || tile->end() < place.address() + bytes) return nullptr;
  return cache.take_part(tile, place.address(), bytes);
}

[[gnu::always_inline]] inline Tile* MortiseAllocator::large_tile(StreamCache& cache, std::size_t bytes,
                                                                 Purpose purpose) {
  Rhythm* rhythm = rhythm_of(cache, purpose);
  if (rhythm != nullptr && rhythm->rests()) rhythm = nullptr;
  const Rhythm::Key key = Rhythm::key_of(cache.stream, bytes);
  const bool held_fits = cache.held != nullptr && cache.held_bytes.get() == bytes;
  if (held_fits && rhythm != nullptr && rhythm->goes_on(key, Place::at(cache.held->address))) return cache.take_held();
  if (!held_fits) {
    cache.free[kLarge].prefetch(bytes);
    if (cache.held_bytes.get() >= kLongHeld) cache.give_back(cache.take_held());
  }
  const Place* expected = rhythm != nullptr ? rhythm->expect(key) : nullptr;
  Tile* tile = nullptr;
  if (held_fits && (expected == nullptr || expected->is_at(cache.held->address))) {
    tile = cache.take_held();
  } else if (expected != nullptr) {
    if (cache.held != nullptr) cache.give_back(cache.take_held());
    for (; tile == nullptr && expected != nullptr; expected = rhythm->another())
      tile = place_again(cache, bytes, *expected);
    rhythm->tried(tile != nullptr);
  }
  if (tile == nullptr) tile = cache.take(kLarge, bytes);
  if (tile != nullptr && rhythm != nullptr) rhythm->note(key, place_of(tile));
  return tile;
}

[[gnu::always_inline]] inline Tile* MortiseAllocator::small_tile(StreamCache& cache, std::size_t bytes) {
  if (Tile* tile = cache.quick.pop(bytes)) return tile;
  return cache.take(kSmall, bytes);
}

/// Null where it takes more than the stream's lock.
[[gnu::always_inline]] inline Tile* MortiseAllocator::tile_at_hand(StreamCache& cache, std::size_t bytes,
                                                                   const Request& request) {
  // Rounding may have wrapped.
  if (bytes < request.bytes || bytes > kLargestBlock) throw OutOfMemory({.requested_bytes = request.bytes});
  return bytes < small_bytes_ ? small_tile(cache, bytes) : large_tile(cache, bytes, request.purpose);
}

/// At home, `bytes` long. Returns what has to go into the index, null where nothing has.
[[gnu::always_inline]] inline Tile* MortiseAllocator::cache_freed(StreamCache& cache, Tile* tile,
                                                                  std::size_t bytes) noexcept {
  if (!keeps_quick_) [[unlikely]]
    return tile;
  if (bytes < small_bytes_) return cache.quick.push(tile, bytes) ? nullptr : tile;
  // Its neighbours have come to the processor's cache by the time they are needed.
  __builtin_prefetch(tile->left != nullptr ? tile->left : tile, 1);
  __builtin_prefetch(tile->right != nullptr ? tile->right : tile, 1);
  tile->state = TileState::kQuick;
  return cache.hold(tile, bytes);
}

Block MortiseAllocator::allocate(const Request& request) {
  const std::size_t bytes = rounded(request.bytes);
  StreamCache* const cache = caches_.likely(request.stream);
  const bool is_usual = cache != nullptr && request.alignment <= kGrain && awaited_.empty() && plan_ == nullptr;
  if (is_usual && cache->lock.try_enter_owned()) [[likely]] {
    Tile* tile = nullptr;
    if (bytes >= small_bytes_ || (tile = cache->quick.pop(bytes)) == nullptr)
      return allocate_owned(*cache, bytes, request);
    mark_active(tile, request);
    cache->lock.leave_owned();
    return block_of(tile, bytes, tile, request);  // made where the caller wants it
  }
  return request.alignment <= kGrain ? allocate_otherwise(bytes, request) : allocate_aligned(request);
}

/// The thread has entered the stream's lock as its owner, and leaves it here.
[[gnu::noinline]] Block MortiseAllocator::allocate_owned(StreamCache& cache, std::size_t bytes,
                                                         const Request& request) {
  {
    const BiasedLock::Guard lock(cache.lock, BiasedLock::Guard::Entered{});
    if (Tile* tile = tile_at_hand(cache, bytes, request)) [[likely]] {
      mark_active(tile, request);
      return block_of(tile, tile->bytes, cookie_of(tile), request);
    }
  }
  return allocate_slowly(cache, bytes, request);
}

[[gnu::noinline]] Tile* MortiseAllocator::shared_tile_at_hand(StreamCache& cache, std::size_t bytes,
                                                              const Request& request) {
  return tile_at_hand(cache, bytes, request);
}

[[gnu::noinline]] Block MortiseAllocator::allocate_otherwise(std::size_t bytes, const Request& request) {
  if (!awaited_.empty()) take_reached();
  if (plan_ != nullptr)
    if (std::optional<Block> block = plan_->take(request)) return *block;
  StreamCache& cache = caches_.of(request.stream);
  {
    const BiasedLock::Guard lock(cache.lock);
    cache.is_used_by_this_thread();
    if (Tile* tile = shared_tile_at_hand(cache, bytes, request)) {
      mark_active(tile, request);
      return block_of(tile, tile->bytes, cookie_of(tile), request);
    }
  }
  return allocate_slowly(cache, bytes, request);
}

/// Of a longer tile the part that lies as it is wanted.
[[gnu::noinline, gnu::cold]] Block MortiseAllocator::allocate_aligned(const Request& request) {
  const std::size_t bytes = rounded(request.bytes);
  const Block block = allocate_otherwise(rounded(bytes + request.alignment - kGrain), request);
  if (PlanPlaces::has(block)) return block;
  Tile* tile = tile_of(block);
  StreamCache& cache = *tile->cache;
  const BiasedLock::Guard lock(cache.lock);
  try {
    cache.records.provide(2);
  } catch (const std::bad_alloc&) {
    give_back(cache, tile, tile->bytes);
    throw;
  }
  const std::uintptr_t address = align_up(tile->address, request.alignment);
  if (tile->is_joined()) {  // its range stays as long as it is
    tile->address = address;
    tile->bytes = bytes;
  } else {
    tile = cache.keep_part(tile, address, bytes);
    tile->requested_bytes = request.bytes;
  }
  return block_of(tile, tile->bytes, cookie_of(tile), request);
}

/// What waits as it is is merged first, which takes the stream's own lock alone; unless small blocks are to have more
/// memory, so that this is rare.
Tile* MortiseAllocator::from_own(StreamCache& cache, std::size_t bytes) {
  if (bytes >= small_bytes_)
    cache.flush_held();
  else if (!is_small_to_grow_.load(std::memory_order_relaxed))
    cache.flush_quick();
  return cache.take(region_of(bytes), bytes);
}

Block MortiseAllocator::served(StreamCache& cache, Tile* tile, std::size_t bytes, const Request& request) {
  if (bytes >= small_bytes_) note_place(cache, bytes, request.purpose, tile);
  mark_active(tile, request);
  return block_of(tile, tile->bytes, cookie_of(tile), request);
}

[[gnu::noinline]] Block MortiseAllocator::allocate_slowly(StreamCache& cache, std::size_t bytes,
                                                          const Request& request) {
  {
    const BiasedLock::Guard lock(cache.lock);
    if (Tile* tile = from_own(cache, bytes)) return served(cache, tile, bytes, request);
  }
  const std::lock_guard all(caches_.mutex());
  const std::lock_guard lock(cache.lock);
  cache.is_used_by_this_thread();
  Tile* tile = serve(cache, bytes);
  cache.records.give_surplus();
  is_small_to_grow_.store(may_grow_small(), std::memory_order_relaxed);
  if (tile == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
  return served(cache, tile, bytes, request);
}

// A free asks the block and its stream, not the tile: that one comes to the processor's cache meanwhile.
void MortiseAllocator::deallocate(const Block& block, StreamRef last_use) noexcept {
  auto* tile = static_cast<Tile*>(block.cookie);
  StreamCache* const cache = caches_.likely(last_use);
  const bool is_usual = marks_of(block) == 0 && last_use == block.request.stream && cache != nullptr;
  if (is_usual && !has_uses(tile) && cache->lock.try_enter_owned()) [[likely]] {
    tile = cache_freed(*cache, tile, block.bytes);
    if (tile != nullptr) return give_back_owned(*cache, tile);
    cache->lock.leave_owned();
    return;
  }
  deallocate_otherwise(block, last_use);
}

[[gnu::noinline]] void MortiseAllocator::give_back_owned(StreamCache& cache, Tile* tile) noexcept {
  cache.give_back(tile);
  cache.lock.leave_owned();
}

[[gnu::noinline]] void MortiseAllocator::deallocate_otherwise(const Block& block, StreamRef last_use) noexcept {
  if (PlanPlaces::has(block)) return plan_->give(block, last_use);
  Tile* tile = tile_of(block);
  if (last_use != block.request.stream || has_uses(tile)) return defer(tile, block.request.stream, last_use);
  StreamCache& cache = caches_.of(last_use);
  const BiasedLock::Guard lock(cache.lock);
  cache.is_used_by_this_thread();
  give_back(cache, tile, block.bytes);
}

[[gnu::noinline]] void MortiseAllocator::defer(Tile* tile, StreamRef stream, StreamRef last_use) noexcept {
  const std::lock_guard all(caches_.mutex());
  const std::lock_guard lock(tile->cache->lock);
  try {
    if (last_use != stream) awaited_.add_use(tile, last_use);
  } catch (const std::bad_alloc&) {
    tile->state = TileState::kAwaiting;  // for good: safe, and the host is out of memory anyway
    return;
  }
  awaited_.defer(tile);
}

void MortiseAllocator::record_use(const Block& block, StreamRef stream) {
  if (PlanPlaces::has(block)) return plan_->record_use(block, stream);
  if (stream == block.request.stream) return;
  const std::lock_guard all(caches_.mutex());
  awaited_.add_use(tile_of(block), stream);
}

void MortiseAllocator::give_back(StreamCache& cache, Tile* tile, std::size_t bytes) noexcept {
  if (tile->is_joined()) return joined_.give_back(tile);
  if (Tile* settled = cache_freed(cache, tile, bytes)) cache.give_back(settled);
}

void MortiseAllocator::finish(Tile* tile) noexcept {
  if (observer_ != nullptr)
    observer_->free_completed(pointer(tile->address), tile->requested_bytes, tile->cache->stream);
  give_back(*tile->cache, tile, tile->bytes);
}

[[gnu::noinline]] void MortiseAllocator::take_reached() {
  const std::lock_guard all(caches_.mutex());
  awaited_.take_reached([this](Tile* tile) {
    const std::lock_guard lock(tile->cache->lock);
    finish(tile);
  });
}

void MortiseAllocator::synchronize() {
  ++synchronizations_;
  source_.synchronize();
  awaited_.take_all([this](Tile* tile) { finish(tile); });
}

}  // namespace tenon::mortise
