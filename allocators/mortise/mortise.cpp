// mortise: an online policy for sources with virtual memory. Requests are served, in this order,
//
//   1. from a block of just that size that was given back a moment ago          (quick tiles, up to 1 MiB)
//   2. from a free tile of the home space, which is split and merged            (one range, grows page by page)
//   3. from a range that was joined for such a block before                     (mapped already)
//   4. from pieces of the home space, mapped behind each other: a joined block  (shares the pages at its two ends)
//   5. from new pages of the device, as few as are missing
//
// A device call is made in 4 and 5 only.
#include "awaited.h"
#include "home.h"
#include "joined.h"
#include "joint.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/plugin/allocator_plugin.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace {

using namespace tenon;
using namespace tenon::mortise;

/// More than any device has, and little enough that no sum of sizes wraps.
constexpr std::size_t kLargestBlock = 64 * TiB;

class Mortise final : public Allocator {
 public:
  static OptionSchema options() {
    return {
        OptionSpec::size("small", 256 * KiB, "requests below this live in a range of their own"),
        OptionSpec::integer("growth_fraction", 256,
                            "the device is asked for at least this part of what is reserved, a 256th say; 0 = for no "
                            "more than what is missing")
            .range(0, 1'000'000),
        OptionSpec::boolean("join", true, "put blocks together out of pieces of free memory"),
        OptionSpec::size("soft_limit", 0, "cached memory is given back beyond it; 0 = none"),
    };
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kGrain; }};
  }

  explicit Mortise(const AllocatorContext& context)
      : source_(context.source),
        observer_(context.observer),
        small_bytes_(context.options.size("small")),
        growth_fraction_(static_cast<std::size_t>(context.options.integer("growth_fraction"))),
        joins_(context.options.boolean("join")),
        home_(source_),
        joined_(source_, home_),
        awaited_(source_) {
    (void)context.options.size("soft_limit");
  }
  ~Mortise() override {
    try {
      source_.synchronize();
    } catch (const Error&) {
      // The device is lost or says so: its memory goes back all the same.
    }
  }

  Block allocate(const Request& request) override {
    const std::size_t bytes = align_up(request.bytes, kGrain);
    // Rounding may have wrapped.
    if (bytes < request.bytes || bytes > kLargestBlock) throw OutOfMemory({.requested_bytes = request.bytes});
    if (!awaited_.empty()) [[unlikely]]
      take_reached();
    StreamCache& cache = cache_of(request.stream);
    Tile* tile = bytes <= QuickTiles::kLargest ? cache.quick.pop(bytes) : nullptr;
    if (tile == nullptr) {
      tile = home_.take(cache, region_of(bytes), bytes);
      if (tile == nullptr) tile = serve(cache, bytes, request);
    }
    tile->state = TileState::kActive;
    tile->requested_bytes = request.bytes;
    return {.data = reinterpret_cast<void*>(tile->address), .bytes = tile->bytes, .cookie = tile, .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    auto* tile = static_cast<Tile*>(block.cookie);
    if (last_use != tile->cache->stream || tile->has_uses) [[unlikely]] {
      try {
        if (last_use != tile->cache->stream) awaited_.add_use(tile, last_use);
      } catch (const std::bad_alloc&) {
        tile->state = TileState::kAwaiting;  // for good: safe, and the host is out of memory anyway
        return;
      }
      awaited_.defer(tile);
      return;
    }
    give_back(tile);
  }

  void record_use(const Block& block, StreamRef stream) override {
    auto* tile = static_cast<Tile*>(block.cookie);
    if (stream != tile->cache->stream) awaited_.add_use(tile, stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (cached_bytes() <= keep_bytes && awaited_.empty()) return 0;
    synchronize();
    flush_quick();
    if (cached_bytes() <= keep_bytes) return 0;
    joined_.forget_waiting();
    unite_idle();
    return home_.shrink(cached_bytes(), keep_bytes);
  }

  void walk(SegmentVisitor& visitor) const override {
    for (const auto& range : home_.ranges()) {
      // Lent tiles are shown where they are joined.
      std::size_t lent = 0;
      for (const Tile* tile = range->first; tile != nullptr; tile = tile->right)
        if (tile->state == TileState::kLent) lent += tile->bytes;
      visitor.segment({.address = range->address,
                       .bytes = range->mapped_bytes - lent,
                       .stream = range->first->cache != nullptr ? range->first->cache->stream : StreamRef{},
                       .is_large = range->region == kLarge,
                       .is_expandable = home_.can_join()});
      for (const Tile* tile = range->first; tile != nullptr; tile = tile->right) show(visitor, *tile);
    }
    joined_.for_each_block([&](const JoinedRange& range) {
      visitor.segment({.address = range.tile->address,
                       .bytes = range.bytes,
                       .stream = range.tile->cache->stream,
                       .is_large = true,
                       .is_expandable = true});
      show(visitor, *range.tile);
    });
  }

  void report(PolicyStats& stats) const override {
    stats.retries = retries_;
    stats.synchronizations = synchronizations_;
    stats.cached_bytes = cached_bytes();
    for (const auto& cache : caches_)
      for (const FreeTiles& free : cache->free)
        free.for_each_from(0, [&](const Tile* tile) {
          stats.largest_free_bytes = std::max(stats.largest_free_bytes, tile->bytes);
        });
  }

  void check_invariants() const override {
    home_.check();
    joined_.check();
  }

 private:
  Region region_of(std::size_t bytes) const { return bytes < small_bytes_ ? kSmall : kLarge; }

  StreamCache& cache_of(StreamRef stream) {
    if (last_cache_ != nullptr && last_cache_->stream == stream) return *last_cache_;
    for (const auto& cache : caches_)
      if (cache->stream == stream) return *(last_cache_ = cache.get());
    caches_.push_back(std::make_unique<StreamCache>());
    last_cache_ = caches_.back().get();
    last_cache_->stream = stream;
    return *last_cache_;
  }

  std::size_t cached_bytes() const {
    std::size_t bytes = 0;
    for (const auto& cache : caches_) bytes += cache->cached_bytes();
    return bytes;
  }

  void give_back(Tile* tile) noexcept {
    if (tile->joined != nullptr) return joined_.give_back(tile);
    if (tile->bytes <= QuickTiles::kLargest && tile->cache->quick.push(tile)) return;
    home_.give_back(tile);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // What takes longer

  Tile* serve(StreamCache& cache, std::size_t bytes, const Request& request) {
    if (Tile* tile = from_cached(cache, bytes)) return tile;
    if (Tile* tile = from_pages(cache, bytes)) return tile;
    // The device has no more: wait for whatever may become free, then give back what is cached and ask again.
    synchronize();
    adopt_all(cache);
    if (Tile* tile = from_cached(cache, bytes)) return tile;
    if (Tile* tile = from_either_region(cache, bytes)) return tile;
    if (Tile* tile = from_pages(cache, bytes)) return tile;
    joined_.forget_waiting();
    if (home_.shrink(cached_bytes(), 0) != 0) {
      ++retries_;
      if (Tile* tile = from_pages(cache, bytes)) return tile;
    }
    throw OutOfMemory({.requested_bytes = request.bytes});
  }

  /// Without the device.
  Tile* from_cached(StreamCache& cache, std::size_t bytes) {
    flush_quick();
    adopt_idle(cache);
    const Region region = region_of(bytes);
    if (Tile* tile = home_.take(cache, region, bytes)) return tile;
    if (Tile* tile = home_.take_any(cache, region, bytes)) return tile;
    return joined_.take_waiting(cache, bytes);
  }
  Tile* from_either_region(StreamCache& cache, std::size_t bytes) {
    return home_.take_any(cache, region_of(bytes) == kSmall ? kLarge : kSmall, bytes);
  }

  /// From new pages, as few as can be: behind the free memory at a range's end, or together with free pieces.
  Tile* from_pages(StreamCache& cache, std::size_t bytes) {
    const Region region = region_of(bytes);
    Home::Growth growth = home_.growth(cache, region, bytes);
    if (joins_ && home_.can_join() && region == kLarge) {
      Joint joint = plan_joint(free_tiles(cache), bytes, home_.page_bytes());
      if (joint.missing_pages < growth.pages) {
        if (joint.missing_pages != 0) {
          if (!home_.grow(cache, region, home_.growth_by(region, joint.missing_pages), spare_pages(joint.missing_pages)))
            return nullptr;
          joint = plan_joint(free_tiles(cache), bytes, home_.page_bytes());
        }
        if (Tile* tile = home_.take_any(cache, region, bytes)) return tile;
        if (!joint.pieces.empty())
          if (Tile* tile = joined_.make(cache, bytes, std::move(joint.pieces))) return tile;
        growth = home_.growth(cache, region, bytes);
      }
    }
    if (!home_.grow(cache, region, growth, spare_pages(growth.pages))) return nullptr;
    return home_.take_any(cache, region, bytes);
  }

  std::size_t spare_pages(std::size_t pages) const {
    if (growth_fraction_ == 0) return 0;
    const std::size_t wanted = home_.reserved_bytes() / growth_fraction_ / home_.page_bytes();
    return wanted > pages ? wanted - pages : 0;
  }

  std::vector<Tile*> free_tiles(const StreamCache& cache) const {
    std::vector<Tile*> tiles;
    for (const FreeTiles& free : cache.free) free.for_each_from(0, [&](Tile* tile) { tiles.push_back(tile); });
    return tiles;
  }

  void flush_quick() noexcept {
    for (const auto& cache : caches_)
      while (Tile* tile = cache->quick.pop_any()) home_.give_back(tile);
  }

  void finish(Tile* tile) noexcept {
    if (observer_ != nullptr)
      observer_->free_completed(reinterpret_cast<void*>(tile->address), tile->requested_bytes, tile->cache->stream);
    give_back(tile);
  }
  void take_reached() {
    awaited_.take_reached([this](Tile* tile) { finish(tile); });
  }
  void synchronize() {
    ++synchronizations_;
    source_.synchronize();
    awaited_.take_all([this](Tile* tile) { finish(tile); });
  }

  /// What is free on streams that have done all their work becomes this one's.
  void adopt_idle(StreamCache& to) {
    for (const auto& from : caches_)
      if (from.get() != &to && from->free_bytes != 0 && source_.reached(source_.mark(from->stream))) adopt(*from, to);
  }
  void adopt_all(StreamCache& to) noexcept {
    flush_quick();
    for (const auto& from : caches_)
      if (from.get() != &to) adopt(*from, to);
  }
  void adopt(StreamCache& from, StreamCache& to) noexcept {
    for (FreeTiles& free : from.free)
      while (Tile* tile = free.any()) home_.change_stream(tile, to);
  }
  /// All streams are idle: free neighbours of several of them become one tile.
  void unite_idle() noexcept {
    if (!caches_.empty()) adopt_all(*caches_.front());
  }

  static void show(SegmentVisitor& visitor, const Tile& tile) {
    const bool in_use = tile.state == TileState::kActive || tile.state == TileState::kAwaiting;
    const BlockState state = tile.state == TileState::kActive                                     ? BlockState::kActive
                             : tile.state == TileState::kAwaiting                                 ? BlockState::kAwaitingStream
                             : tile.state == TileState::kFree || tile.state == TileState::kQuick ? BlockState::kFree
                                                                                                  : BlockState::kUnmapped;
    visitor.block({.address = tile.address,
                   .bytes = tile.bytes,
                   .requested_bytes = in_use ? tile.requested_bytes : 0,
                   .state = state});
  }

  MemorySource& source_;
  PolicyObserver* const observer_;
  const std::size_t small_bytes_;
  const std::size_t growth_fraction_;
  const bool joins_;
  Home home_;
  JoinedRanges joined_;
  Awaited awaited_;
  std::vector<std::unique_ptr<StreamCache>> caches_;
  StreamCache* last_cache_ = nullptr;
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace

TENON_ALLOCATOR(mortise, "1.0", Mortise,
                "shares pages between blocks: free pieces are mapped behind each other where one alone does not suffice")
