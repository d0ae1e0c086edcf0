// Policy: PyTorch's caching allocator, decision by decision, over any MemorySource; `caching` and `expandable` are this
// with and without expandable segments.
//
//   allocate ── round ── arena of (stream, pool) ── smallest free piece that suffices ── split ──► block
//                                   │ none                                    hot_path.cpp, under the arena's lock
//                                   ▼
//      collect garbage · new segment · free what is oversized · flush everything, retry · out of memory
//                                                              miss.cpp, under the world's lock and every arena's
//
// Note [Locks]
// An arena's lock guards what is in the arena: a hit and a free take that one only, so threads on different streams
// share nothing. Whatever looks at several arenas (a miss, a trim, a walk) takes world_mutex_ first and then every
// arena's lock, and calls the device under them: the order of decisions is then total, as it is under PyTorch's one
// lock per device. Pending events are guarded by world_mutex_ too.
#pragma once

#include "arena.h"
#include "counters.h"
#include "deferred_frees.h"
#include "piece.h"
#include "settings.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/sources/address_range_watcher.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::caching {

class Policy final : public Allocator {
 public:
  Policy(MemorySource& source, const Settings& settings, PolicyObserver* observer = nullptr,
         AddressRangeWatcher* address_ranges = nullptr);
  ~Policy() override;

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
  struct Everything;  // holds world_mutex_ and every arena's lock
  struct PrivatePool {
    bool owned = true;
    PoolOptions options;
    PoolStats reserved_bytes{};
    std::map<std::uint64_t, Arena*> arenas;  // by stream
  };
  struct Scope {
    std::uint64_t pool;
    std::thread::id thread;
    StreamRef stream;
  };

  // hot_path.h
  Arena& arena_of(StreamRef stream);
  FreeIndex::Place find_fit_locked(Arena& arena, bool large, std::size_t bytes) const;
  Block hand_out_locked(Arena& arena, bool large, Piece* piece, std::size_t whole_bytes, std::size_t bytes,
                        const Request& request);
  void free_piece_locked(Arena& arena, bool large, Piece* piece) noexcept;
  void put_locked(Arena& arena, bool large, Piece* piece) const;
  std::uint64_t order_step(std::size_t bytes) const { return old_ ? bytes : bytes >> 9; }

  // hot_path.cpp
  Block allocate_from(Arena& arena, bool large, std::size_t bytes, const Request& request);
  bool deallocate_locked(Arena& arena, bool large, Piece* piece, StreamRef last_use) noexcept;
  Arena& look_for_arena(std::atomic<Arena*>& bucket, StreamRef stream);
  Arena& add_arena_locked(StreamRef stream, std::uint64_t pool);
  Arena& private_arena_locked(std::uint64_t pool, StreamRef stream);
  Arena& route(const Request& request);
  static void set_options_locked(PrivatePool& pool, const PoolOptions& options);
  void apply_limits_locked();
  Piece* choose_among_expandable_locked(const FreeIndex& free, Piece* piece) const;
  void tell_watcher_locked(const FreeIndex& free, Piece* piece, const Piece* chosen) const;
  void count_oversize(int change) noexcept;
  void free_slowly(Piece* piece, StreamRef last_use) noexcept;
  void process_events();
  void count_active() noexcept;

  // miss.cpp; all of these assume that everything is locked, a new segment only that the world and its arena are
  Block allocate_slowly(const Request& request, Arena& arena, std::size_t bytes);
  Piece* device_allocate_locked(Arena& arena, bool large, std::size_t bytes);
  Piece* borrow_locked(StreamRef stream, bool large, std::size_t bytes);
  void count_reserved_locked(const Arena& arena, bool large, std::int64_t bytes);
  void collect_garbage_locked();
  bool release_available_locked(Arena& arena, bool large, std::size_t bytes);
  std::size_t release_cached_locked(std::uint64_t only_pool, std::size_t keep_bytes);
  std::size_t release_free_locked(std::vector<Arena*>& arenas, bool large, std::size_t keep_bytes);
  void release_segment_locked(Piece* piece) noexcept;
  void synchronize_and_free_events_locked(std::uint64_t only_pool);
  std::size_t cached_bytes_locked() const;
  std::vector<Arena*> default_arenas_locked() const;
  Piece* new_segment_locked(Arena& arena, bool large, std::uintptr_t address, std::size_t bytes, bool expandable);
  void forget_segment_locked(Piece* piece) noexcept;

  // expandable.cpp
  Piece* expand_locked(Arena& arena, bool large, std::size_t bytes);
  Piece* find_space_locked(Arena& arena, bool large, std::size_t bytes);
  Piece* map_locked(Piece* piece, std::size_t bytes);
  std::size_t unmap_locked(Piece* piece);

  MemorySource& source_;
  Settings settings_;
  PolicyObserver* const observer_;
  AddressRangeWatcher* const watcher_;    ///< of a replay; else null
  const bool old_;                        ///< compat 1.13
  const bool rounds_plainly_;             ///< no size is rounded to divisions of a power of two
  bool collects_garbage_ = false;         ///< guarded by every arena's lock
  std::size_t limit_bytes_ = kUnlimited;  ///< the lower of what the fraction and the host allow
  std::size_t address_space_bytes_ = 0;   ///< of one expandable segment, before rounding to pages

  static constexpr std::size_t kBuckets = 1024;
  std::array<std::atomic<Arena*>, kBuckets> default_arenas_{};  // by stream id, chained; never shrinks
  std::atomic<int> open_scopes_{0};
  std::atomic<bool> counts_active_{false};
  std::atomic<std::uint64_t> large_lookups_{0};  // ages of the default large pool; counted while garbage is collected
  mutable Peaks peaks_;

  mutable std::mutex world_mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Arena*> spare_arenas_;  // of private pools that are gone
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> spare_segments_;
  std::map<std::uint64_t, PrivatePool> pools_;
  std::vector<Scope> scopes_;  // innermost last
  DeferredFrees deferred_;
  std::size_t fraction_limit_bytes_ = kUnlimited;
  std::size_t host_limit_bytes_ = kUnlimited;
  std::uint64_t next_registration_ = 0;
  std::size_t reserved_total_ = 0;
  PoolStats segment_stats_{}, reserved_stats_{};
  Stat oversize_segments_;
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
  mutable SpinLock oversize_mutex_;
  Stat oversize_allocations_;
};

/// Everything that a plugin's factory needs.
std::unique_ptr<Allocator> make_policy(const AllocatorContext& context, bool expandable);

}  // namespace tenon::caching
