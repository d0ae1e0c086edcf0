// The policy. Where there is a plan of the run, its blocks have their places (plan_places.h). All other requests are
// served, in this order,
//
//   1. from a block of just that size that was given back a moment ago          (quick tiles, one large one)
//   2. where the step before was served, if this looks like a step              (rhythm)
//   3. from a free tile of the home space, which is split and merged            (one range, grows page by page)
//   4. from a range that was joined for such a block before                     (mapped already)
//   5. from pieces of the home space, mapped behind each other: a joined block  (shares the pages at its two ends)
//   6. from new pages of the device
//
// A device call is made in 5 and 6 only. 6 comes before 5 as long as little lies idle.
//
// Note [Locks]
// In this order, and none is waited for by who holds a later one:
//   caches_.mutex()      over all streams: growing, trimming, planning joints, blocks that wait for streams, limits
//   StreamCache::lock    one stream's tiles. Who holds several of them holds the one above
//   of JoinedRanges, PlanPlaces, TilePool    what streams share beside pages
// 1 to 3, the ranges of 4 that a step comes back to, and a free on its own stream stay within the stream's lock, which
// is biased to the thread that mostly takes it: threads on streams of their own meet only where memory is short. A tile
// belongs to one stream, and changes to another one while both are locked; it knows its own stream's tiles only, so
// that splitting and merging never look at, or write to, what another thread works on. Sums over streams are read
// without their locks where they decide how much to take, and under all locks where they have to be right: trim,
// limits, figures. Memory that another thread's stream caches is left to it as long as the device has more and little
// lies idle, since taking its lock costs both some microseconds. Streams that no other thread owns, as all are in a
// program of one thread, are looked at first. A fork leaves the child whatever another thread had locked in that
// moment, as with any allocator.
#pragma once

#include "awaited.h"
#include "home.h"
#include "joined.h"
#include "other_streams.h"
#include "plan_places.h"
#include "stream_cache.h"

#include "../tiled/heaps.h"

#include <tenon/core/options.h>
#include <tenon/memory/factory.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::mortise {

class MortiseAllocator final : public Allocator {
 public:
  static OptionSchema options();
  static AllocatorTraits traits();

  explicit MortiseAllocator(const AllocatorContext& context);
  ~MortiseAllocator() override;

  Block allocate(const Request& request) override;
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  /// A neighbour wants memory: what is cached beyond the new limit goes back at once.
  void limit_changed(std::size_t limit_bytes) override;
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;
  bool is_thread_safe() const override { return true; }

 private:
  using Caches = tiled::HeapTable<StreamCache>;
  // A cookie says what its tile would have to be asked for. (PlanPlaces has the lowest bit.)
  static constexpr std::uintptr_t kJoinedMark = 2, kMarks = 3;
  static std::uintptr_t marks_of(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.cookie) & kMarks; }
  static void* cookie_of(Tile* tile) { return reinterpret_cast<char*>(tile) + (tile->is_joined() ? kJoinedMark : 0); }
  static Tile* tile_of(const Block& block) {
    return reinterpret_cast<Tile*>(reinterpret_cast<std::uintptr_t>(block.cookie) & ~kMarks);
  }

  Region region_of(std::size_t bytes) const { return bytes < small_bytes_ ? kSmall : kLarge; }
  std::size_t cached_bytes() const;
  std::size_t trim_all(std::size_t keep_bytes);
  std::size_t trim_home(std::size_t keep_bytes);

  // requests.cpp: under the stream's lock.
  Tile* small_tile(StreamCache& cache, std::size_t bytes);
  Tile* large_tile(StreamCache& cache, std::size_t bytes, Purpose purpose);
  Tile* place_again(StreamCache& cache, std::size_t bytes, Place place);
  Rhythm* rhythm_of(StreamCache& cache, Purpose purpose) {
    return follows_rhythm_ ? cache.rhythms.of(purpose) : nullptr;
  }
  static Place place_of(const Tile* tile);
  void note_place(StreamCache& cache, std::size_t bytes, Purpose purpose, const Tile* tile);
  Tile* tile_at_hand(StreamCache& cache, std::size_t bytes, const Request& request);
  Tile* shared_tile_at_hand(StreamCache& cache, std::size_t bytes, const Request& request);  ///< the same, one for all
  static void mark_active(Tile* tile, const Request& request);
  static Block block_of(const Tile* tile, std::size_t bytes, void* cookie, const Request& request);
  Tile* cache_freed(StreamCache& cache, Tile* tile, std::size_t bytes) noexcept;
  void give_back(StreamCache& cache, Tile* tile, std::size_t bytes) noexcept;
  void finish(Tile* tile) noexcept;

  Tile* from_own(StreamCache& cache, std::size_t bytes);
  Block served(StreamCache& cache, Tile* tile, std::size_t bytes, const Request& request);
  Block allocate_slowly(StreamCache& cache, std::size_t bytes, const Request& request);
  Block allocate_owned(StreamCache& cache, std::size_t bytes, const Request& request);
  Block allocate_otherwise(std::size_t bytes, const Request& request);
  Block allocate_aligned(const Request& request);
  void give_back_owned(StreamCache& cache, Tile* tile) noexcept;
  void deallocate_otherwise(const Block& block, StreamRef last_use) noexcept;
  /// The tile is not looked at where no other stream uses any.
  bool has_uses(const Tile* tile) const { return awaited_.knows_any() && tile->has_uses; }
  void defer(Tile* tile, StreamRef stream, StreamRef last_use) noexcept;
  void take_reached();
  /// All streams are locked.
  void synchronize();

  // slow_path.cpp: under the lock over all streams and the stream's own.
  Tile* serve(StreamCache& cache, std::size_t bytes);
  Tile* serve_in_need(StreamCache& cache, std::size_t bytes, OtherStreams& others);
  Tile* from_plenty(StreamCache& cache, std::size_t bytes);
  Tile* from_cached(StreamCache& cache, std::size_t bytes, const OtherStreams& others);
  Tile* from_other_threads(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes, OtherStreams& others);
  Tile* from_fragments(StreamCache& cache, std::size_t bytes);
  Tile* from_other_region(StreamCache& cache, std::size_t bytes);
  Tile* from_pages(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes, OtherStreams& others);
  Tile* from_pieces(StreamCache& cache, std::size_t bytes, std::size_t most_pages, OtherStreams& others);
  std::size_t allowed_bytes(std::size_t bytes);
  std::size_t many_tiles() const;
  bool trades_memory() const;
  bool may_grow_small() const;
  std::size_t spare_pages(Region region, std::size_t pages) const;
  std::vector<Tile*> free_tiles(const StreamCache& cache, std::size_t least_bytes = 0) const;
  bool is_idle(const StreamCache& cache) { return source_.reached(source_.mark(cache.stream)); }
  Tile* take_from(StreamCache& from, StreamCache& to, Region region, std::size_t bytes);
  Tile* from_idle(StreamCache& to, Region region, std::size_t bytes, const OtherStreams& others);
  void adopt_idle(StreamCache& to, const OtherStreams& others);
  void flush_all() noexcept;
  void adopt_all(StreamCache& to);

  MemorySource& source_;
  PolicyObserver* const observer_;
  const std::size_t small_bytes_, growth_fraction_, slack_fraction_, soft_limit_;
  const bool joins_, shares_ends_, keeps_quick_;
  const bool follows_rhythm_;
  TilePool tiles_;
  Caches caches_;
  std::unique_ptr<PlanPlaces> plan_;  ///< null without one
  // Under the lock over all streams.
  Home home_;
  JoinedRanges joined_;  ///< partly under its own
  Awaited awaited_;
  std::size_t limit_ = 0;                       ///< the host's, 0 for none
  std::size_t peak_live_bytes_ = 0;             ///< as far as growing has asked
  std::size_t tiles_seen_ = 0;                  ///< by plans of joints
  std::size_t fragments_ = 0;                   ///< that small blocks were put into since small ones got pages
  std::atomic<bool> is_small_to_grow_ = false;  ///< read without it
  bool has_threads_ = false;                    ///< streams of several were there at once
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace tenon::mortise
