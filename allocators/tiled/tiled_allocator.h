// TiledAllocator: all that policies share whose segments are tiled by blocks. A policy adds its rules: which free tile
// serves a request, where it is cut, and what is taken from the device.
//
//   allocate ── round ── heap of the stream ── its index: a free tile ── cut ──► block
//                                │ none                         under the heap's lock
//                                ▼
//      other streams' tiles · grow · give back what is cached, try again · out of memory
//                                                            under the lock over all heaps
//
// What a policy says is in rules.h.
//
// Note [Last freed]
// The tile that was freed last is not joined with its neighbours yet: often the next request is for as much, and else
// its neighbours have come to the cache by the time they are needed.
#pragma once

#include "copy_request.h"
#include "heaps.h"
#include "rules.h"
#include "segments.h"
#include "stream_uses.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::tiled {

template <class Rules>
class TiledAllocator final : public Allocator {
 public:
  static OptionSchema options() { return Rules::options(); }
  static AllocatorTraits traits() { return Rules::traits(); }

  explicit TiledAllocator(const AllocatorContext& context)
      : source_(context.source), observer_(context.observer), rules_(context), segments_(source_) {}

  /// What needs no function but itself, hence no room on the stack: the tile that was freed last, again.
  Block allocate(const Request& request) override {
    if constexpr (Rules::kKeepsLastFreed && !Rules::kLanes) {
      const std::size_t bytes = rules_.round(request.bytes);
      Heap* const heap = heaps_.likely(request.stream);
      if (heap && !uses_.any_waiting() && heap->lock.try_enter_owned()) [[likely]] {
        Tile* const last = heap->last_freed;
        if (!last || last->bytes != bytes) return allocate_owned(*heap, bytes, request);
        heap->last_freed = nullptr;
        last->state = BlockState::kActive;  // its live bytes are counted still, and no stream uses it
        last->requested_bytes = request.bytes;
        heap->lock.leave_owned();
        return block_of(last, bytes, request);  // made where the caller wants it
      }
    }
    return allocate_otherwise(request);
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if constexpr (Rules::kKeepsLastFreed && !Rules::kLanes) {
      auto* const tile = static_cast<Tile*>(block.cookie);
      Heap* const heap = heaps_.likely(last_use);
      if (heap && last_use == block.request.stream && heap->lock.try_enter_owned()) [[likely]] {
        if (!heap->last_freed && !tile->uses) {
          tile->state = BlockState::kFree;
          heap->last_freed = tile;
          prefetch_neighbours(tile);
          heap->lock.leave_owned();
          return;
        }
        heap->lock.leave_owned();
      }
    }
    deallocate_otherwise(block, last_use);
  }

  void record_use(const Block& block, StreamRef stream) override {
    if (stream == block.request.stream) return;
    const std::lock_guard lock(heap_of(block).lock);
    StreamUses::add(static_cast<Tile*>(block.cookie), stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    const LockAll lock(heaps_);
    return give_back(keep_bytes);
  }

  // In introspect.inl.
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;

  bool is_thread_safe() const override { return Rules::kIsThreadSafe; }

 private:
  static_assert(!Rules::kIsThreadSafe || (!Rules::kShares && Rules::kJoinsAll));
  using Index = typename Rules::Index;
  struct Heap final : HeapBase {
    using HeapBase::HeapBase;
    Tile* last_freed = nullptr;  ///< see Note [Last freed]
    std::size_t live_bytes = 0;  ///< with those that wait for a stream, and the tile that was freed last
    TileStore own_tiles;
    Index free;
    TileList unmapped;
    Heap* next = nullptr;         ///< in the table of heaps; set once
    bool has_freed = false;       ///< of Rules::kMarksFrees, as is the next
    std::optional<Ticket> freed;  ///< where its stream was at the last free; none: the device could not say
  };
  using LockAll = typename HeapTable<Heap>::LockAll;

  [[gnu::always_inline]] Heap& heap_for(std::size_t bytes, const Request& request) {
    Heap& pages = heaps_.of(request.stream);
    if constexpr (Rules::kLanes)
      if (const std::size_t lane = rules_.lane(bytes, request)) return heaps_.of(request.stream, lane);
    return pages;
  }
  /// Known before the tile has come to the cache, but where there are lanes.
  [[gnu::always_inline]] Heap& heap_of(const Block& block) {
    if constexpr (Rules::kLanes) return heap_of(static_cast<const Tile*>(block.cookie));
    return heaps_.of(block.request.stream);
  }
  static Heap& heap_of(const Tile* tile) { return static_cast<Heap&>(*tile->heap); }
  /// Where tiles change heaps, one store is for all.
  [[gnu::always_inline]] TileStore& tiles_of(Heap& heap) {
    if constexpr (Rules::kShares || Rules::kLanes) return tiles_;
    return heap.own_tiles;
  }
  static bool is_in_use(const Tile* tile) {
    return tile->state == BlockState::kActive || tile->state == BlockState::kAwaitingStream;
  }
  static bool is_last_freed(const Tile* tile) { return heap_of(tile).last_freed == tile; }
  [[noreturn]] static void fail(const char* what) { throw Error(std::string(Rules::kName) + ": " + what); }

  static void prefetch_neighbours(const Tile* tile) {
    // Not null: looking that up costs more than it saves.
    __builtin_prefetch(tile->left ? tile->left : tile, 1);
    __builtin_prefetch(tile->right ? tile->right : tile, 1);
  }

  [[gnu::noinline]] Block allocate_otherwise(const Request& request) {
    if (uses_.any_waiting()) [[unlikely]]
      finish_reached();
    const std::size_t bytes = rules_.round(request.bytes);
    Heap& heap = heap_for(bytes, request);
    if (bytes >= request.bytes) [[likely]] {
      const BiasedLock::Guard lock(heap.lock);
      if (Tile* const tile = from_index(heap, bytes)) [[likely]]
        return hand_out(heap, tile, request);
    }
    return allocate_slowly(heap, bytes, request);
  }

  /// The thread has entered the heap's lock as its owner, and leaves it here.
  [[gnu::noinline]] Block allocate_owned(Heap& heap, std::size_t bytes, const Request& request) {
    if (bytes >= request.bytes) [[likely]] {
      const BiasedLock::Guard lock(heap.lock, BiasedLock::Guard::Entered{});
      if (Tile* const tile = from_index(heap, bytes)) [[likely]]
        return hand_out(heap, tile, request);
    } else {
      heap.lock.leave_owned();
    }
    return allocate_slowly(heap, bytes, request);
  }

  [[gnu::noinline]] void deallocate_otherwise(const Block& block, StreamRef last_use) noexcept {
    auto* const tile = static_cast<Tile*>(block.cookie);
    Heap& heap = heap_of(block);
    {
      const BiasedLock::Guard lock(heap.lock);
      if (tile->uses == nullptr && last_use == heap.stream) [[likely]] {
        if constexpr (Rules::kKeepsLastFreed) {
          prefetch_neighbours(tile);
          settle_last(heap);
          tile->state = BlockState::kFree;
          heap.last_freed = tile;
        } else {
          heap.live_bytes -= tile->bytes;
          tile->state = BlockState::kFree;
          settle(heap, tile);
          if constexpr (Rules::kMarksFrees) mark_free(heap);
        }
        return;
      }
    }
    defer(heap, tile, last_use);
  }

  // Under the heap's lock.

  /// Null where the index has none.
  [[gnu::always_inline]] Tile* from_index(Heap& heap, std::size_t bytes) {
    if (Tile* const last = heap.last_freed) {
      heap.last_freed = nullptr;
      heap.live_bytes -= last->bytes;
      if (last->bytes == bytes) return last;
      if constexpr (requires { heap.free.prefetch(bytes); }) heap.free.prefetch(bytes);
      settle(heap, last);
    }
    Tile* const tile = heap.free.find(bytes);
    return tile ? taken(heap, heap, tile, bytes) : nullptr;
  }

  bool can_join(const Tile* left, const Tile* right) const {
    if (!left->is_free() || !right->is_free()) return false;
    if constexpr (Rules::kShares || Rules::kLanes)
      if (left->heap != right->heap || right->starts_page) return false;
    if constexpr (Rules::kJoinsAll)
      return true;
    else
      return rules_.may_join(left, right, left->address - segments_.of(left).address);
  }

  /// Whether a request for all of a free tile could get it.
  bool suffices_for_its_bytes(const Tile* tile) const {
    const std::size_t bytes = rules_.round(tile->bytes);
    const Heap& heap = heap_of(tile);
    return is_last_freed(tile) ||
           (heap.lane == 0 && rules_.lane(bytes, {}) == 0 && heap.free.find_hard(bytes) != nullptr);
  }

  /// `right`, in no index, becomes part of `left`.
  [[gnu::always_inline]] void join(Heap& heap, Tile* left, Tile* right) {
    left->bytes += right->bytes;
    left->right = right->right;
    if (left->right) left->right->left = left;
    tiles_of(heap).give(right);
  }

  /// Joins a free tile with its free neighbours and puts it into the index.
  void settle(Heap& heap, Tile* tile) noexcept {
    bool joined;
    do {
      joined = false;
      if (Tile* const left = tile->left; left && can_join(left, tile)) {
        heap.free.erase(left);
        join(heap, left, tile);
        tile = left;
        joined = true;
      }
      if (Tile* const right = tile->right; right && can_join(tile, right)) {
        heap.free.erase(right);
        join(heap, tile, right);
        joined = true;
      }
    } while (!Rules::kJoinsAll && joined);
    if constexpr (Rules::kLanes) {
      const Tile* const right = tile->right;
      if (tile->starts_page && (!right || right->starts_page || right->heap != tile->heap)) {
        Heap& pages = heaps_.known(heap.stream, 0);
        tile->starts_page = false;
        tile->heap = &pages;
        settle(pages, tile);
        return;
      }
    }
    heap.free.insert(tile);
  }

  void settle_last(Heap& heap) noexcept {
    if (Tile* const last = std::exchange(heap.last_freed, nullptr)) {
      heap.live_bytes -= last->bytes;
      settle(heap, last);
    }
  }

  /// The first `bytes` of the tile become a tile; the rest, which has its state, is in no index.
  [[gnu::always_inline]] Tile* cut(Heap& heap, Tile* tile, std::size_t bytes) {
    Tile* const rest = tiles_of(heap).take();
    Tile* const right = tile->right;
    rest->address = tile->address + bytes;
    rest->bytes = tile->bytes - bytes;
    rest->left = tile;
    rest->right = right;
    rest->heap = tile->heap;
    rest->segment = tile->segment;
    rest->state = tile->state;
    rest->starts_page = false;
    if (right) right->left = rest;
    tile->right = rest;
    tile->bytes = bytes;
    return rest;
  }

  /// A tile of `bytes` from one in the index of `from`, where the rest goes.
  [[gnu::always_inline]] Tile* taken(Heap& heap, Heap& from, Tile* tile, std::size_t bytes) {
    from.free.erase(tile);
    try {
      while (const std::size_t left = rules_.cut_at(tile->bytes, bytes)) from.free.insert(cut(from, tile, left));
    } catch (...) {
      settle(from, tile);  // the host had no memory for the record of the rest
      throw;
    }
    if constexpr (Rules::kShares || Rules::kLanes) tile->heap = &heap;
    return tile;
  }

  [[gnu::always_inline]] static Block hand_out(Heap& heap, Tile* tile, const Request& request) {
    mark_active(heap, tile, tile->bytes, request);
    return block_of(tile, tile->bytes, request);
  }
  [[gnu::always_inline]] static void mark_active(Heap& heap, Tile* tile, std::size_t bytes, const Request& request) {
    tile->state = BlockState::kActive;
    tile->requested_bytes = request.bytes;
    tile->uses = nullptr;
    heap.live_bytes += bytes;
  }
  [[gnu::always_inline]] static Block block_of(Tile* tile, std::size_t bytes, const Request& request) {
    Block block;
    block.data = tile->data();
    block.bytes = bytes;
    block.cookie = tile;
    copy_request(block.request, request);
    return block;
  }

  // Under the lock over all heaps.

  /// The tile waits for all streams that use it.
  [[gnu::noinline]] void defer(Heap& heap, Tile* tile, StreamRef last_use) noexcept;
  /// Every stream has got there; the heap is locked.
  void finish(Heap& heap, Tile* tile) noexcept;
  [[gnu::noinline]] void finish_reached();

  [[gnu::noinline]] Block allocate_slowly(Heap& heap, std::size_t bytes, const Request& request) {
    if (bytes < request.bytes) throw OutOfMemory({.requested_bytes = request.bytes});  // rounding has wrapped
    {
      const std::lock_guard all(heaps_.mutex());
      const std::lock_guard lock(heap.lock);
      if (Tile* const tile = find_or_grow(heap, bytes)) return hand_out(heap, tile, request);
    }
    const LockAll lock(heaps_);
    if (give_back(0) != 0) ++retries_;
    if (Tile* const tile = find_or_grow(heap, bytes)) return hand_out(heap, tile, request);
    throw OutOfMemory({.requested_bytes = request.bytes});
  }

  // Where tiles come from when the index has none, and how they go back: supply.inl.

  Tile* find_or_grow(Heap& heap, std::size_t bytes);
  Tile* from_new_page(Heap& heap, std::size_t bytes);
  /// A tile of another stream once that has got where it is, or one that the tiles of several streams make together.
  Tile* from_others(Heap& heap, std::size_t bytes);
  bool can_take_from(const Heap& other);
  void mark_free(Heap& heap) noexcept;
  /// All work on what the heap holds free comes before it.
  Ticket end_of_work(const Heap& heap) { return heap.freed ? *heap.freed : source_.mark(heap.stream); }
  /// The free tiles of a stream that has got where it is become those of another one.
  void adopt(Heap& heap, Heap& other) noexcept;
  /// New memory in the heap's index; false when the device has none. More than was asked for may have come.
  bool grow(Heap& heap, std::size_t bytes);
  bool are_all_idle();
  bool acquire(Heap& heap, std::size_t bytes);
  /// Maps memory into a hole that is long enough with its free neighbours, the one at the lowest address; else into a
  /// new range.
  bool grow_range(Heap& heap, std::size_t bytes);
  /// An unmapped tile takes in its unmapped right neighbour.
  void rejoin_hole(Heap& heap, Tile* hole) noexcept;
  std::size_t live_bytes() const {
    std::size_t live = 0;
    for (const auto& heap : heaps_.all()) live += heap->live_bytes - (heap->last_freed ? heap->last_freed->bytes : 0);
    return live;
  }
  std::size_t cached_bytes() const { return segments_.reserved_bytes() - live_bytes(); }
  /// Everything is locked. Gives free memory back, the longest tiles first, until at most `keep` of it are left.
  std::size_t give_back(std::size_t keep);
  /// Takes memory away from behind a free tile of a range, from its end on.
  void unmap(Heap& heap, Tile* tile, std::size_t bytes);

  MemorySource& source_;
  PolicyObserver* const observer_;
  Rules rules_;
  TileStore tiles_;
  HeapTable<Heap> heaps_;  // outlives the segments, whose tiles it stores
  // Guarded by the lock over all heaps.
  Segments segments_;
  StreamUses uses_;
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace tenon::tiled

#include "introspect.inl"
#include "supply.inl"
