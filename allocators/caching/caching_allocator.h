// CachingAllocator: PyTorch's caching allocator, decision by decision, over any MemorySource; `caching` and
// `expandable` are this with and without expandable segments.
//
//   allocate ── round ── arena of (stream, pool) ── smallest free block that suffices ── split ──► block
//                                   │ none                                    fast_path.cpp, under the arena's lock
//                                   ▼
//      collect garbage · new segment · free what is oversized · flush everything, retry · out of memory
//                                       slow_path.cpp, under the registry's lock and every arena's (arena/lock_all.h)
//
// This folder decides. `arena/` holds what it decides about: the blocks under one lock, their index and their counters.
//
//   settings             what each option means                arena_registry   arenas by stream
//   rounding             sizes of blocks and segments          private_pools    scopes; arenas by pool and stream
//   limits               ceilings, and garbage below them      deferred_frees   blocks that other streams still use
//   segments             what was taken from the device        counters         exact peaks over all arenas
//   expandable           pages behind reserved addresses
//
// Note [Locks]
// An arena's lock guards what is in the arena: a hit and a free take that one only, so threads on different streams
// share nothing. Whatever looks at several arenas (a miss, a trim, a walk) takes the registry's lock first and then
// every arena's, and calls the device under them: the order of decisions is then total, as it is under PyTorch's one
// lock per device. Pending events are guarded by the registry's lock too.
#pragma once

#include "arena/arena_registry.h"
#include "arena/deferred_frees.h"
#include "arena/lock_all.h"
#include "expandable.h"
#include "limits.h"
#include "private_pools.h"
#include "rounding.h"
#include "segments.h"
#include "settings.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::caching {

class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(MemorySource& source, const Settings& settings, PolicyObserver* observer = nullptr);
  ~CachingAllocator() override;

  Block allocate(const Request& request) override;
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void reset_stats(bool peaks, bool accumulated) override;
  void check_invariants() const override;
  bool is_thread_safe() const override { return true; }
  void begin_pool(std::uint64_t pool, StreamRef stream) override;
  void end_pool(std::uint64_t pool) override;
  void release_pool(std::uint64_t pool) override;
  void limit_changed(std::size_t limit_bytes) override;
  void configure_pool(std::uint64_t pool, const PoolOptions& options) override;

  /// PyTorch's set_per_process_memory_fraction. 1 lifts the limit (in 1.13: limits to the whole device).
  void set_memory_fraction(double fraction);
  /// Takes effect for requests from now on; memory taken before stays as it is.
  void set_expandable(bool expandable);

 private:
  // split_and_merge.h
  FreeIndex::Place find_fit_locked(Arena& arena, bool large, std::size_t bytes, bool with_expandable) const;
  Block hand_out_locked(Arena& arena, bool large, BlockRecord* block, std::size_t whole_bytes, std::size_t bytes,
                        const Request& request, bool with_expandable);
  void free_block_locked(Arena& arena, bool large, BlockRecord* block) noexcept;

  // fast_path.cpp
  Block allocate_from(Arena& arena, bool large, std::size_t bytes, const Request& request);
  bool deallocate_locked(Arena& arena, bool large, BlockRecord* block, StreamRef last_use) noexcept;
  Arena& route(const Request& request);
  BlockRecord* choose_among_expandable_locked(const FreeIndex& free, BlockRecord* block, bool with_expandable) const;
  void tell_watcher_locked(const FreeIndex& free, BlockRecord* block, const BlockRecord* chosen) const;
  void undo_split_locked(Arena& arena, bool large, BlockRecord* block, BlockRecord* rest,
                         std::size_t whole_bytes) const;

  // stream_use.cpp
  void count_active() noexcept;
  void free_slowly(BlockRecord* block, StreamRef last_use) noexcept;
  void finish_free_locked(BlockRecord* block) noexcept;
  void process_events();
  void synchronize_and_free_events_locked(std::uint64_t only_pool);

  // slow_path.cpp; the registry and this arena are locked, for borrowing everything is
  Block allocate_slowly(const Request& request, Arena& arena, std::size_t bytes);
  BlockRecord* device_allocate_locked(Arena& arena, bool large, std::size_t bytes, const Request& request);
  BlockRecord* borrow_locked(StreamRef stream, bool large, std::size_t bytes);

  // release_segments.cpp; everything is locked
  void collect_garbage_locked();
  bool release_available_locked(Arena& arena, bool large, std::size_t bytes);
  std::size_t release_cached_locked(std::uint64_t only_pool, std::size_t keep_bytes);
  std::size_t release_free_locked(const std::vector<Arena*>& arenas, bool large, std::size_t keep_bytes);
  std::size_t cached_bytes_locked() const;

  // invariants.cpp
  void check_reserved_locked() const;
  LockAll lock_all() const { return LockAll(arenas_, peaks_); }

  MemorySource& source_;
  Settings settings_;  ///< `expandable` changes, while everything is locked
  PolicyObserver* const observer_;
  const bool compat_1_13_;
  const bool ties_by_address_;
  const bool rounds_plainly_;  ///< no size is rounded to divisions of a power of two
  Limits limits_{settings_};
  mutable Peaks peaks_;
  ArenaRegistry arenas_{peaks_};
  PrivatePools pools_{arenas_};
  std::atomic<bool> counts_active_{false};
  LockedStat oversize_allocations_;

  // Guarded by the registry's lock.
  Segments segments_;
  ExpandableSegments expandable_segments_;
  DeferredFrees deferred_;
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

/// Everything that a plugin's factory needs.
std::unique_ptr<Allocator> make_allocator(const AllocatorContext& context, bool expandable);

}  // namespace tenon::caching
