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
#include "rhythm.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/plugin/allocator_plugin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace {

using namespace tenon;
using namespace tenon::mortise;

/// More than any device has, and little enough that no sum of sizes wraps.
constexpr std::size_t kLargestBlock = 64 * TiB;

constexpr std::size_t kSlackBytes = 4 * MiB, kSpareBytes = 2 * MiB;
/// Requests that took longer, of 36 recorded histories of training and inference at most 3,000.
constexpr std::size_t kManyServed = 4096;
/// Ranges that are kept mapped for blocks to come.
constexpr std::size_t kMostWaiting = 4096;

class Mortise final : public Allocator {
 public:
  static OptionSchema options() {
    return {
        OptionSpec::size("small", 256 * KiB, "requests below this live in a range of their own").range(kGrain, QuickTiles::kLargest),
        OptionSpec::integer("growth_fraction", 128,
                            "the device is asked for at least this part of what is reserved, a 128th say; 0 = for no "
                            "more than what is missing")
            .range(0, 1'000'000),
        OptionSpec::integer("slack_fraction", 48,
                            "so much of what lived at most may lie idle before free pieces are joined, a 48th say; "
                            "0 = nothing")
            .range(0, 1'000'000),
        OptionSpec::boolean("join", true, "put blocks together out of pieces of free memory"),
        OptionSpec::size("soft_limit", 0,
                         "beyond it memory is spared as on a full device: nothing is taken that free pieces could "
                         "serve; 0 = none"),
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
        slack_fraction_(static_cast<std::size_t>(context.options.integer("slack_fraction"))),
        joins_(context.options.boolean("join")),
        home_(source_),
        joined_(source_, home_),
        awaited_(source_),
        soft_limit_(context.options.size("soft_limit")) {}
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
    Tile* tile = bytes < small_bytes_ ? small_tile(cache, bytes, request) : large_tile(cache, bytes, request);
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
    joined_.forget_waiting(0);
    unite_idle();
    return home_.shrink(cached_bytes(), keep_bytes);
  }

  /// A neighbour wants memory: what is cached beyond the new limit goes back at once.
  void limit_changed(std::size_t limit_bytes) override {
    limit_ = limit_bytes;
    if (limit_ == 0 || home_.reserved_bytes() <= limit_) return;
    const std::size_t excess = home_.reserved_bytes() - limit_;
    const std::size_t cached = cached_bytes();
    trim(cached > excess ? cached - excess : 0);
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

  Tile* small_tile(StreamCache& cache, std::size_t bytes, const Request& request) {
    if (Tile* tile = cache.quick.pop(bytes)) return tile;
    if (Tile* tile = home_.take(cache, kSmall, bytes)) return tile;
    return serve(cache, bytes, request);
  }
  Tile* large_tile(StreamCache& cache, std::size_t bytes, const Request& request) {
    Rhythm& rhythm = rhythms_[request.purpose == Purpose::kData];
    // Places are remembered by their range, which goes with its memory where there is no virtual memory.
    const Placement* expected = home_.can_join() ? rhythm.expect(cache, bytes) : nullptr;
    Tile* tile = nullptr;
    const bool held_fits = cache.held != nullptr && cache.held->bytes == bytes;
    if (held_fits && (expected == nullptr || expected->address == cache.held->address)) {
      tile = std::exchange(cache.held, nullptr);
    } else if (expected != nullptr) {
      if (cache.held != nullptr) home_.give_back(std::exchange(cache.held, nullptr));
      tile = place_again(cache, *expected);
      for (std::uint64_t back = 1; tile == nullptr && back <= Rhythm::kBack; ++back)
        if (const Placement* other = rhythm.earlier(back, cache, bytes)) tile = place_again(cache, *other);
    }
    if (tile == nullptr) tile = home_.take(cache, kLarge, bytes);
    if (tile == nullptr) tile = serve(cache, bytes, request);
    if (!home_.can_join()) return tile;
    rhythm.note({.cache = &cache,
                 .bytes = bytes,
                 .address = tile->address,
                 .range = tile->range,
                 .joined = tile->joined,
                 .serial = tile->joined != nullptr ? tile->joined->serial : 0});
    return tile;
  }
  Tile* place_again(StreamCache& cache, const Placement& expected) {
    if (expected.joined != nullptr) return joined_.take_again(cache, expected.joined, expected.serial);
    Tile* tile = home_.containing(*expected.range, expected.address);
    if (tile->state != TileState::kFree || tile->cache != &cache || tile->end() < expected.address + expected.bytes)
      return nullptr;
    return home_.take_part(tile, expected.address, expected.bytes);
  }

  void give_back(Tile* tile) noexcept {
    if (tile->joined != nullptr) return joined_.give_back(tile);
    if (tile->bytes >= small_bytes_) {
      tile->state = TileState::kQuick;
      tile = std::exchange(tile->cache->held, tile);
      if (tile == nullptr) return;
    } else if (tile->cache->quick.push(tile)) {
      return;
    }
    home_.give_back(tile);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // What takes longer

  Tile* serve(StreamCache& cache, std::size_t bytes, const Request& request) {
    if (++served_ > kManyServed)
      if (Tile* tile = from_plenty(cache, bytes)) return tile;
    if (Tile* tile = from_cached(cache, bytes)) return tile;
    if (Tile* tile = from_pages(cache, bytes, allowed_bytes(bytes))) return tile;
    // The device has no more: wait for whatever may become free, then give back what is cached and ask again.
    synchronize();
    adopt_all(cache);
    if (Tile* tile = from_cached(cache, bytes)) return tile;
    if (Tile* tile = from_either_region(cache, bytes)) return tile;
    if (Tile* tile = from_pages(cache, bytes, 0)) return tile;
    joined_.forget_waiting(0);
    if (home_.shrink(cached_bytes(), 0) != 0) {
      ++retries_;
      if (Tile* tile = from_pages(cache, bytes, 0)) return tile;
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
    if (Tile* tile = joined_.take_waiting(cache, bytes)) return tile;
    // A page is not taken for a small block as long as one fits between two large ones.
    return region == kSmall ? home_.take_fragment(cache, kLarge, bytes) : nullptr;
  }
  Tile* from_either_region(StreamCache& cache, std::size_t bytes) {
    return home_.take_any(cache, region_of(bytes) == kSmall ? kLarge : kSmall, bytes);
  }

  /// From new pages: behind the free memory at a range's end, or, where that is too much, as few as are missing together
  /// with free pieces: beyond `allowed_bytes` of reserved memory.
  Tile* from_pages(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes) {
    const Region region = region_of(bytes);
    Home::Growth growth = home_.growth(cache, region, bytes);
    const bool may_grow = home_.reserved_bytes() + growth.pages * home_.page_bytes() <= allowed_bytes;
    if (joins_ && home_.can_join() && region == kLarge && !may_grow) {
      Joint joint = plan_joint(free_tiles(cache), bytes, home_.page_bytes());
      if (joint.missing_pages < growth.pages) {
        if (joint.missing_pages != 0) {
          if (!home_.grow(cache, region, home_.growth_by(region, joint.missing_pages), spare_pages(joint.missing_pages)))
            return nullptr;
          joint = plan_joint(free_tiles(cache), bytes, home_.page_bytes());
        }
        if (Tile* tile = home_.take_any(cache, region, bytes)) return tile;
        if (joined_.waiting() >= kMostWaiting) {
          synchronize();  // nothing is unmapped that a stream may still use
          joined_.forget_waiting(kMostWaiting / 2);
        }
        if (!joint.pieces.empty())
          if (Tile* tile = joined_.make(cache, bytes, std::move(joint.pieces))) return tile;
        growth = home_.growth(cache, region, bytes);
      }
    }
    if (!home_.grow(cache, region, growth, spare_pages(growth.pages))) return nullptr;
    return home_.take_any(cache, region, bytes);
  }

  /// What may be reserved before pieces are joined: the most that ever lived, a part of it, and a little. A program that
  /// never repeats itself needs what takes longer again and again: it may have more and more, up to half as much again.
  std::size_t allowed_bytes(std::size_t bytes) {
    peak_live_bytes_ = std::max(peak_live_bytes_, home_.reserved_bytes() - cached_bytes() + bytes);
    std::size_t more = slack_fraction_ == 0 ? 0 : peak_live_bytes_ / slack_fraction_;
    if (served_ > kManyServed) more += std::min(peak_live_bytes_ / 2, peak_live_bytes_ / 4096 * (served_ - kManyServed));
    const std::size_t allowed = peak_live_bytes_ + more + kSlackBytes;
    return std::min({allowed, limit_ != 0 ? limit_ : allowed, soft_limit_ != 0 ? soft_limit_ : allowed});
  }

  /// More pages than are missing, where so many requests took long that memory is to be traded for time.
  Tile* from_plenty(StreamCache& cache, std::size_t bytes) {
    const Region region = region_of(bytes);
    const Home::Growth growth = home_.growth(cache, region, bytes);
    const std::size_t pages = std::max(growth.pages, peak_live_bytes_ / 64 / home_.page_bytes());
    if (home_.reserved_bytes() + pages * home_.page_bytes() > allowed_bytes(bytes)) return nullptr;
    if (!home_.grow(cache, region, growth, pages - growth.pages)) return nullptr;
    return home_.take_any(cache, region, bytes);
  }

  /// What is taken beyond the pages that are missing, so that the device is asked less often.
  std::size_t spare_pages(std::size_t pages) const {
    if (growth_fraction_ == 0) return 0;
    std::size_t wanted = peak_live_bytes_ + peak_live_bytes_ / growth_fraction_ + kSpareBytes;
    if (soft_limit_ != 0) wanted = std::min(wanted, soft_limit_);
    const std::size_t reserved = home_.reserved_bytes() + pages * home_.page_bytes();
    return wanted > reserved ? (wanted - reserved) / home_.page_bytes() : 0;
  }

  std::vector<Tile*> free_tiles(const StreamCache& cache) const {
    std::vector<Tile*> tiles;
    for (const FreeTiles& free : cache.free) free.for_each_from(0, [&](Tile* tile) { tiles.push_back(tile); });
    return tiles;
  }

  void flush_quick() noexcept {
    for (const auto& cache : caches_) {
      while (Tile* tile = cache->quick.pop_any()) home_.give_back(tile);
      if (Tile* tile = std::exchange(cache->held, nullptr)) home_.give_back(tile);
    }
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
  const std::size_t slack_fraction_;
  const bool joins_;
  Home home_;
  JoinedRanges joined_;
  Awaited awaited_;
  std::array<Rhythm, 2> rhythms_;  ///< data sets are read ahead, at no fixed moment of a step
  std::vector<std::unique_ptr<StreamCache>> caches_;
  StreamCache* last_cache_ = nullptr;
  const std::size_t soft_limit_;
  std::size_t limit_ = 0;            ///< the host's, 0 for none
  std::size_t peak_live_bytes_ = 0;  ///< as far as growing has asked
  std::size_t served_ = 0;           ///< requests that took longer
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace

TENON_ALLOCATOR(mortise, "1.0", Mortise,
                "shares pages between blocks: free pieces are mapped behind each other where one alone does not suffice")
