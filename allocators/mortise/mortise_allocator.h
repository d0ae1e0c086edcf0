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
#pragma once

#include "awaited.h"
#include "home.h"
#include "joined.h"
#include "plan_places.h"
#include "stream_cache.h"

#include "../tiled/rhythm.h"

#include <tenon/core/options.h>
#include <tenon/memory/factory.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::mortise {

/// Where a request was served: at an address of the home space, or in a joined range, which may be gone by now.
class Place {
 public:
  static Place at(std::uintptr_t address) { return Place(address); }
  static Place in_joined(std::uint64_t serial) { return Place(serial << 1 | 1); }

  bool is_joined() const { return (value_ & 1) != 0; }  // addresses are multiples of kGrain
  std::uintptr_t address() const { return value_; }
  std::uint64_t serial() const { return value_ >> 1; }
  bool is_at(std::uintptr_t address) const { return value_ == address; }

 private:
  explicit Place(std::uint64_t value) : value_(value) {}
  std::uint64_t value_;
};
using Rhythm = tiled::Rhythm<Place>;
using Rhythms = tiled::Rhythms<Rhythm>;

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

 private:
  // A cookie says what its tile would have to be asked for. (PlanPlaces has the lowest bit.)
  static constexpr std::uintptr_t kJoinedMark = 2, kMarks = 3;
  static std::uintptr_t marks_of(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.cookie) & kMarks; }
  static void* cookie_of(Tile* tile) { return reinterpret_cast<char*>(tile) + (tile->is_joined() ? kJoinedMark : 0); }
  static Tile* tile_of(const Block& block) {
    return reinterpret_cast<Tile*>(reinterpret_cast<std::uintptr_t>(block.cookie) & ~kMarks);
  }

  Region region_of(std::size_t bytes) const { return bytes < small_bytes_ ? kSmall : kLarge; }
  StreamCache& cache_of(StreamRef stream) {
    if (last_cache_ != nullptr && last_cache_->stream == stream) [[likely]]
      return *last_cache_;
    return other_cache(stream);
  }
  StreamCache& other_cache(StreamRef stream);
  std::size_t cached_bytes() const;
  std::size_t trim_home(std::size_t keep_bytes);

  Tile* small_tile(StreamCache& cache, std::size_t bytes);
  Tile* large_tile(StreamCache& cache, std::size_t bytes, Purpose purpose);
  Tile* place_again(StreamCache& cache, std::size_t bytes, Place place);
  void give_back(StreamCache& cache, Tile* tile, std::size_t bytes) noexcept;
  void deallocate_marked(const Block& block, StreamRef last_use) noexcept;
  void defer(Tile* tile, StreamRef stream, StreamRef last_use) noexcept;
  void finish(Tile* tile) noexcept;
  void take_reached();
  void synchronize();

  // slow_path.cpp
  Tile* serve(StreamCache& cache, std::size_t bytes);
  Tile* from_plenty(StreamCache& cache, std::size_t bytes);
  Tile* from_cached(StreamCache& cache, std::size_t bytes);
  Tile* from_other_region(StreamCache& cache, std::size_t bytes);
  Tile* from_pages(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes);
  Tile* from_pieces(StreamCache& cache, std::size_t bytes, std::size_t most_pages);
  bool may_grow_instead(std::size_t pages) const;
  std::size_t allowed_bytes(std::size_t bytes);
  std::size_t spare_pages(std::size_t pages) const;
  std::vector<Tile*> free_tiles(const StreamCache& cache) const;
  void flush_quick() noexcept;
  Tile* from_idle(StreamCache& to, Region region, std::size_t bytes);
  void adopt_idle(StreamCache& to);
  void adopt_all(StreamCache& to) noexcept;
  void adopt(StreamCache& from, StreamCache& to) noexcept;

  MemorySource& source_;
  PolicyObserver* const observer_;
  const std::size_t small_bytes_, growth_fraction_, slack_fraction_, soft_limit_;
  const bool joins_, shares_ends_, keeps_quick_;
  Home home_;
  JoinedRanges joined_;
  std::unique_ptr<PlanPlaces> plan_;  ///< null without one
  Awaited awaited_;
  const bool follows_rhythm_;
  Rhythms rhythms_;
  std::vector<std::unique_ptr<StreamCache>> caches_;
  StreamCache* last_cache_ = nullptr;
  std::size_t limit_ = 0;            ///< the host's, 0 for none
  std::size_t peak_live_bytes_ = 0;  ///< as far as growing has asked
  std::size_t tiles_seen_ = 0;       ///< by plans of joints
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace tenon::mortise
