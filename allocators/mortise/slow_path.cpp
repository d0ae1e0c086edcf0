// What takes longer: caches emptied, pieces joined, the device asked, memory given back.
#include "joint.h"
#include "mortise_allocator.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <utility>

namespace tenon::mortise {

namespace {

/// May lie idle before pieces are joined, of any size of memory. With more, a program that grows takes its long blocks
/// from new pages one by one, and joins none of what it leaves behind; its first step has more calls for that.
constexpr std::size_t kSlackBytes = 9 * MiB / 2;
/// Is taken beyond what is missing, of any size of memory; and of a small program a part of what lives, up to so much:
/// else its first step would be made of calls. All of it is less than a 20th and 8 MiB.
constexpr std::size_t kSpareBytes = 31 * MiB / 4;
constexpr std::size_t kSmallFraction = 20, kMostOfSmallBytes = 32 * MiB;
/// Free tiles looked at for joints, some ten milliseconds in all: in each of 36 recorded histories of training and
/// inference fewer than 2,000.
constexpr std::size_t kManyTiles = 1 << 20;
/// The same where threads have streams of their own: all of them wait for whoever joins.
constexpr std::size_t kManyTilesOfThreads = 1 << 16;
/// After so many, tiles much shorter than the block are left out: there are many, and as its ends they save little.
constexpr std::size_t kManyShortTiles = 1 << 16, kShortFraction = 32;
constexpr std::size_t kFewTiles = 256;
/// Where memory is traded for time, more is taken at a time: such a part of what lived at most; for small blocks less,
/// and no more than the last part in all.
constexpr std::size_t kPlentyFraction = 64, kPlentyOfSmallFraction = 1024, kMostOfSmallFraction = 32;
/// Small blocks that lie between large ones before small ones get another page: looking for such places takes time.
constexpr std::size_t kManyFragments = 64;
/// Ranges that are kept mapped for blocks to come.
constexpr std::size_t kMostWaiting = 4096;

}  // namespace

/// Free tiles that may be looked at for joints, before memory is traded for time.
std::size_t MortiseAllocator::many_tiles() const { return has_threads_ ? kManyTilesOfThreads : kManyTiles; }

/// Whether joints have taken so much time that memory is to be traded for it.
bool MortiseAllocator::trades_memory() const { return tiles_seen_ > many_tiles(); }

/// Small blocks among large ones and large ones among small ones make requests of both kinds slow, and small blocks
/// need little: they may have it beyond what is allowed.
bool MortiseAllocator::may_grow_small() const {
  return trades_memory() && home_.mapped_bytes(kSmall) < peak_live_bytes_ / kMostOfSmallFraction;
}

/// Null when there is no more: everything was tried.
Tile* MortiseAllocator::serve(StreamCache& cache, std::size_t bytes) {
  if (trades_memory())
    if (Tile* tile = from_plenty(cache, bytes)) return tile;
  OtherStreams others(caches_.all(), cache);
  others.lock_at_hand();
  has_threads_ |= !others.has_all();
  if (Tile* tile = from_cached(cache, bytes, others)) return tile;
  const std::size_t allowed = allowed_bytes(bytes);
  if (!others.has_all())
    if (Tile* tile = from_other_threads(cache, bytes, allowed, others)) return tile;
  others.unlock();  // they need not wait for the device
  if (Tile* tile = from_pages(cache, bytes, allowed, others)) return tile;
  others.lock_all();
  return serve_in_need(cache, bytes, others);
}

/// The device has no more: wait for whatever may become free, then give back what is cached and ask again.
Tile* MortiseAllocator::serve_in_need(StreamCache& cache, std::size_t bytes, OtherStreams& others) {
  synchronize();
  adopt_all(cache);
  if (Tile* tile = from_cached(cache, bytes, others)) return tile;
  if (Tile* tile = from_other_region(cache, bytes)) return tile;
  if (Tile* tile = from_pages(cache, bytes, 0, others)) return tile;
  joined_.forget_waiting(0);
  const std::size_t of_plan = plan_ != nullptr ? plan_->trim(0) : 0;
  if (home_.shrink(cache, cached_bytes(), 0) + of_plan != 0) {
    ++retries_;
    if (Tile* tile = from_pages(cache, bytes, 0, others)) return tile;
  }
  for (const auto& each : caches_.all()) each->rhythms.ran_out();
  return nullptr;
}

/// More pages than are missing, where memory is traded for time.
Tile* MortiseAllocator::from_plenty(StreamCache& cache, std::size_t bytes) {
  const Region region = region_of(bytes);
  const Home::Growth growth = home_.growth(cache, region, bytes);
  const std::size_t fraction = region == kSmall ? kPlentyOfSmallFraction : kPlentyFraction;
  const std::size_t pages = std::max(growth.pages, peak_live_bytes_ / fraction / home_.page_bytes());
  const bool may_grow =
      region == kSmall ? may_grow_small() : home_.reserved_bytes() + pages * home_.page_bytes() <= allowed_bytes(bytes);
  if (!may_grow || !home_.grow(cache, region, growth, pages - growth.pages)) return nullptr;
  return cache.take_any(region, bytes);
}

/// Without the device.
Tile* MortiseAllocator::from_cached(StreamCache& cache, std::size_t bytes, const OtherStreams& others) {
  const Region region = region_of(bytes);
  const auto flush = [&](StreamCache& flushed) {  // small tiles serve small requests
    region == kSmall ? flushed.flush_quick() : flushed.flush_held();
  };
  flush(cache);
  for (StreamCache* other : others.locked()) flush(*other);
  if (!others.locked().empty()) {
    if (Tile* tile = from_idle(cache, region, bytes, others)) return tile;
    adopt_idle(cache, others);
  }
  if (Tile* tile = cache.take(region, bytes)) return tile;
  if (Tile* tile = cache.take_any(region, bytes)) return tile;
  if (Tile* tile = joined_.take_waiting(cache, bytes)) return tile;
  return region == kSmall ? from_fragments(cache, bytes) : nullptr;
}

/// A page is not taken for a small block as long as it fits between two large ones, unless many did.
Tile* MortiseAllocator::from_fragments(StreamCache& cache, std::size_t bytes) {
  if (fragments_ == kManyFragments) {
    fragments_ = 0;
    return nullptr;
  }
  ++fragments_;
  return cache.take_fragment(kLarge, bytes);
}

/// What streams of other threads cache, where the device would have to give more than is allowed: one tile, else all
/// that they have. Streams in use keep it, unless somebody has set a limit.
Tile* MortiseAllocator::from_other_threads(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes,
                                           OtherStreams& others) {
  const std::size_t wanted =
      home_.reserved_bytes() + home_.growth(cache, region_of(bytes), bytes).pages * home_.page_bytes();
  if (wanted <= allowed_bytes) return nullptr;
  const auto is_beyond = [&](std::size_t limit) { return limit != 0 && wanted > limit; };
  const bool is_short = is_beyond(limit_) || is_beyond(soft_limit_);
  const std::size_t before = others.locked().size();
  for (const auto& other : caches_.all()) {
    if (others.has(*other) || (!other->seems_unused() && !is_short)) continue;
    if (other->cached_bytes() != 0 && is_idle(*other)) others.lock(*other);
  }
  if (others.locked().size() == before) return nullptr;
  Tile* const tile = from_cached(cache, bytes, others);
  for (StreamCache* other : others.locked()) other->was_taken_from();
  return tile;
}

Tile* MortiseAllocator::from_other_region(StreamCache& cache, std::size_t bytes) {
  return cache.take_any(region_of(bytes) == kSmall ? kLarge : kSmall, bytes);
}

/// From new pages, as long as no more than `allowed_bytes` is reserved then; else from as few as are missing together
/// with free pieces. Null when the device has no more.
Tile* MortiseAllocator::from_pages(StreamCache& cache, std::size_t bytes, std::size_t allowed_bytes,
                                   OtherStreams& others) {
  const Region region = region_of(bytes);
  Home::Growth growth = home_.growth(cache, region, bytes);
  const bool may_grow = home_.reserved_bytes() + growth.pages * home_.page_bytes() <= allowed_bytes;
  // Nor is a page, as long as what was taken for others suffices; large blocks leave it to small ones where time
  // counts.
  if (!may_grow && (region == kSmall || !trades_memory()))
    if (Tile* tile = from_other_region(cache, bytes)) return tile;
  if (joins_ && home_.can_join() && region == kLarge && !may_grow) {
    if (Tile* tile = from_pieces(cache, bytes, growth.pages, others)) return tile;
    growth = home_.growth(cache, region, bytes);
  }
  if (!home_.grow(cache, region, growth, spare_pages(region, growth.pages))) return nullptr;
  return cache.take_any(region, bytes);
}

/// From free pieces and fewer new pages than `most_pages`. Null where that cannot be.
Tile* MortiseAllocator::from_pieces(StreamCache& cache, std::size_t bytes, std::size_t most_pages,
                                    OtherStreams& others) {
  std::vector<Tile*> free = free_tiles(cache, tiles_seen_ > kManyShortTiles ? bytes / kShortFraction : 0);
  tiles_seen_ += free.size();
  Joint joint = plan_joint(free, bytes, home_.page_bytes(), shares_ends_);
  if (joint.missing_pages != 0 && cache.quick.bytes() != 0) {
    cache.flush_quick();
    free = free_tiles(cache);
    joint = plan_joint(free, bytes, home_.page_bytes(), shares_ends_);
  }
  if (joint.missing_pages >= most_pages) return nullptr;
  if (joint.missing_pages != 0) {
    const Home::Growth growth = home_.growth_by(kLarge, joint.missing_pages);
    if (!home_.grow(cache, kLarge, growth, spare_pages(kLarge, growth.pages))) return nullptr;
    joint = plan_joint(free_tiles(cache), bytes, home_.page_bytes(), shares_ends_);
  }
  if (Tile* tile = cache.take_any(kLarge, bytes)) return tile;
  if (joint.pieces.empty()) return nullptr;
  if (joined_.waiting() >= kMostWaiting) {
    others.lock_all();
    synchronize();  // nothing is unmapped that a stream may still use
    joined_.forget_waiting(kMostWaiting / 2);
  }
  return joined_.make(cache, bytes, std::move(joint.pieces));
}

/// What may be reserved before pieces are joined: the most that ever lived, a part of it, and a little. A program that
/// never repeats itself needs joints again and again: it may have more and more, up to half as much again.
std::size_t MortiseAllocator::allowed_bytes(std::size_t bytes) {
  const std::size_t reserved = home_.reserved_bytes();
  // What another thread frees and takes meanwhile may be counted twice.
  const std::size_t live = reserved - std::min(reserved, cached_bytes());
  peak_live_bytes_ = std::max(peak_live_bytes_, live + bytes);
  std::size_t more = slack_fraction_ == 0 ? 0 : peak_live_bytes_ / slack_fraction_ + kSlackBytes;
  if (trades_memory()) more += std::min<std::size_t>(4, tiles_seen_ / many_tiles()) * (peak_live_bytes_ / 8);
  const std::size_t allowed = peak_live_bytes_ + more;
  return std::min({allowed, limit_ != 0 ? limit_ : allowed, soft_limit_ != 0 ? soft_limit_ : allowed});
}

/// What is taken beyond the pages that are missing, so that the device is asked less often. For small blocks that is
/// little: large ones could not use it.
std::size_t MortiseAllocator::spare_pages(Region region, std::size_t pages) const {
  if (growth_fraction_ == 0) return 0;
  const std::size_t of_small = std::min(peak_live_bytes_ / kSmallFraction + kSpareBytes, kMostOfSmallBytes);
  const std::size_t of_large = peak_live_bytes_ / growth_fraction_ + kSpareBytes;
  std::size_t wanted = peak_live_bytes_ + std::max(of_small, of_large);
  if (soft_limit_ != 0) wanted = std::min(wanted, soft_limit_);
  const std::size_t reserved = home_.reserved_bytes() + pages * home_.page_bytes();
  const std::size_t spare = wanted > reserved ? (wanted - reserved) / home_.page_bytes() : 0;
  if (region == kLarge) return spare;
  const std::size_t part = home_.mapped_bytes(kSmall) / kSmallFraction / home_.page_bytes();
  return std::min(spare, std::max<std::size_t>(part, home_.mapped_bytes(kSmall) == 0 ? 0 : 1));
}

/// Those of at least so many bytes, and some that are a little shorter.
std::vector<Tile*> MortiseAllocator::free_tiles(const StreamCache& cache, std::size_t least_bytes) const {
  std::vector<Tile*> tiles;
  tiles.reserve(kFewTiles);
  const std::size_t from = std::min(least_bytes, home_.page_bytes());
  for (const FreeTiles& free : cache.free) free.for_each_from(from, [&](Tile* tile) { tiles.push_back(tile); });
  return tiles;
}

/// All streams are locked, here and in adopt_all().
void MortiseAllocator::flush_all() noexcept {
  for (const auto& cache : caches_.all()) cache->flush_quick();
}

/// One tile, which becomes this stream's. Null where the other one has none.
Tile* MortiseAllocator::take_from(StreamCache& from, StreamCache& to, Region region, std::size_t bytes) {
  Tile* tile = from.take(region, bytes);
  if (tile == nullptr) return nullptr;
  try {
    from.move_to(to, tile);
  } catch (...) {
    from.give_back(tile);
    throw;
  }
  return tile;
}

/// One tile, here or on a stream that has done all its work. That one keeps the others: streams that take all from each
/// other in turn would do nothing else.
Tile* MortiseAllocator::from_idle(StreamCache& to, Region region, std::size_t bytes, const OtherStreams& others) {
  if (Tile* tile = to.take(region, bytes)) return tile;
  for (StreamCache* from : others.locked()) {
    if (from->free_bytes.get() == 0 || !is_idle(*from)) continue;
    if (Tile* tile = take_from(*from, to, region, bytes)) return tile;
  }
  return nullptr;
}

/// What is free on streams that have done all their work becomes this one's.
void MortiseAllocator::adopt_idle(StreamCache& to, const OtherStreams& others) {
  for (StreamCache* from : others.locked())
    if (from->free_bytes.get() != 0 && is_idle(*from)) from->move_all_to(to);
}

void MortiseAllocator::adopt_all(StreamCache& to) {
  flush_all();
  for (const auto& from : caches_.all())
    if (from.get() != &to) from->move_all_to(to);
}

}  // namespace tenon::mortise
