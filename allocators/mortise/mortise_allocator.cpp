// Requests and frees as they mostly go, and what is shown of the policy.
#include "mortise_allocator.h"

#include "tiled/copy_request.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tenon::mortise {

namespace {

/// More than any device has, and little enough that no sum of sizes wraps.
constexpr std::size_t kLargestBlock = 64 * TiB;

BlockState shown(TileState state) {
  switch (state) {
    case TileState::kActive:
      return BlockState::kActive;
    case TileState::kAwaiting:
      return BlockState::kAwaitingStream;
    case TileState::kFree:
    case TileState::kQuick:
      return BlockState::kFree;
    case TileState::kLent:  // shown where it is joined
    case TileState::kUnmapped:
      break;
  }
  return BlockState::kUnmapped;
}

void show(SegmentVisitor& visitor, const Tile& tile) {
  const bool in_use = tile.state == TileState::kActive || tile.state == TileState::kAwaiting;
  visitor.block({.address = tile.address,
                 .bytes = tile.bytes,
                 .requested_bytes = in_use ? tile.requested_bytes : 0,
                 .state = shown(tile.state)});
}

}  // namespace

OptionSchema MortiseAllocator::options() {
  return {
      OptionSpec::size("small", 256 * KiB, "requests below this live in a range of their own")
          .range(kGrain, QuickTiles::kLargest),
      OptionSpec::integer("growth_fraction", 128,
                          "the device is asked for at least this part of what is reserved, a 128th say; 0 = for no "
                          "more than what is missing")
          .range(0, 1'000'000),
      OptionSpec::integer("slack_fraction", 48,
                          "so much of what lived at most may lie idle before free pieces are joined, a 48th say; "
                          "0 = nothing")
          .range(0, 1'000'000),
      OptionSpec::boolean("join", true, "put blocks together out of pieces of free memory"),
      OptionSpec::boolean("share_ends", true,
                          "such a block begins and ends within pages whose rest is other blocks'; false: it begins "
                          "with a page"),
      OptionSpec::boolean("quick", true, "keep freed blocks as they are for a request of just their size"),
      OptionSpec::boolean("rhythm", true, "serve a request where the step before was served"),
      OptionSpec::size("soft_limit", 0,
                       "beyond it memory is spared as on a full device: nothing is taken that free pieces could "
                       "serve; 0 = none"),
      OptionSpec::boolean("pages_apart", false,
                          "take each page by itself, so that each can go back when a limit shrinks; false: from then "
                          "on, and before it up to 256 MiB at a time"),
      OptionSpec::text(std::string(packing::kPlanOption), "",
                       "a plan of the run, whose blocks have their places reserved: a file of `tenon plan HISTORY -o "
                       "FILE.plan`, or of planned's `record`"),
  };
}

AllocatorTraits MortiseAllocator::traits() {
  return {.depends_on_capacity = [](const Options&) { return false; },
          .alignment =
              [](const Options& options) {
                return options.text(packing::kPlanOption).empty() ? kGrain : kDefaultAlignment;
              }};
}

MortiseAllocator::MortiseAllocator(const AllocatorContext& context)
    : source_(context.source),
      observer_(context.observer),
      small_bytes_(context.options.size("small")),
      growth_fraction_(static_cast<std::size_t>(context.options.integer("growth_fraction"))),
      slack_fraction_(static_cast<std::size_t>(context.options.integer("slack_fraction"))),
      soft_limit_(context.options.size("soft_limit")),
      joins_(context.options.boolean("join")),
      shares_ends_(context.options.boolean("share_ends")),
      keeps_quick_(context.options.boolean("quick")),
      home_(source_),
      joined_(source_, home_),
      awaited_(source_),
      // Places are remembered by their range, which goes with its memory where there is no virtual memory.
      follows_rhythm_(context.options.boolean("rhythm") && home_.can_join()) {
  if (context.options.boolean("pages_apart")) home_.keep_pages_apart();
  if (const std::string& file = context.options.text(packing::kPlanOption); !file.empty())
    plan_ = std::make_unique<PlanPlaces>(context, file);
}

MortiseAllocator::~MortiseAllocator() {
  try {
    source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
}

StreamCache& MortiseAllocator::other_cache(StreamRef stream) {
  for (const auto& cache : caches_)
    if (cache->stream == stream) return *(last_cache_ = cache.get());
  caches_.push_back(std::make_unique<StreamCache>());
  last_cache_ = caches_.back().get();
  last_cache_->stream = stream;
  return *last_cache_;
}

std::size_t MortiseAllocator::cached_bytes() const {
  std::size_t bytes = 0;
  for (const auto& cache : caches_) bytes += cache->cached_bytes();
  return bytes;
}

Block MortiseAllocator::allocate(const Request& request) {
  const std::size_t bytes = align_up(request.bytes, kGrain);
  // Rounding may have wrapped.
  if (bytes < request.bytes || bytes > kLargestBlock) throw OutOfMemory({.requested_bytes = request.bytes});
  if (!awaited_.empty()) [[unlikely]]
    take_reached();
  if (plan_ != nullptr) [[unlikely]]
    if (std::optional<Block> block = plan_->take(request)) return *block;
  StreamCache& cache = cache_of(request.stream);
  Tile* tile = bytes < small_bytes_ ? small_tile(cache, bytes) : large_tile(cache, bytes, request.purpose);
  if (tile == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
  tile->state = TileState::kActive;
  tile->requested_bytes = request.bytes;
  Block block;
  block.data = pointer(tile->address);
  block.bytes = tile->bytes;
  block.cookie = cookie_of(tile);
  tiled::copy_request(block.request, request);
  return block;
}

Tile* MortiseAllocator::small_tile(StreamCache& cache, std::size_t bytes) {
  if (Tile* tile = cache.quick.pop(bytes)) return tile;
  if (Tile* tile = home_.take(cache, kSmall, bytes)) return tile;
  return serve(cache, bytes);
}

Tile* MortiseAllocator::large_tile(StreamCache& cache, std::size_t bytes, Purpose purpose) {
  Rhythm* const rhythm = follows_rhythm_ ? rhythms_.of(purpose) : nullptr;
  const Rhythm::Key key = Rhythm::key_of(cache.stream, bytes);
  cache.free[kLarge].prefetch(bytes);
  const Place* expected = rhythm != nullptr ? rhythm->expect(key) : nullptr;
  Tile* tile = nullptr;
  const bool held_fits = cache.held != nullptr && cache.held->bytes == bytes;
  if (held_fits && (expected == nullptr || expected->is_at(cache.held->address))) {
    tile = std::exchange(cache.held, nullptr);
  } else if (expected != nullptr) {
    if (cache.held != nullptr) home_.give_back(std::exchange(cache.held, nullptr));
    for (; tile == nullptr && expected != nullptr; expected = rhythm->another())
      tile = place_again(cache, bytes, *expected);
    rhythm->tried(tile != nullptr);
  }
  if (tile == nullptr) tile = home_.take(cache, kLarge, bytes);
  if (tile == nullptr) tile = serve(cache, bytes);
  if (tile != nullptr && rhythm != nullptr)
    rhythm->note(key, tile->is_joined() ? Place::in_joined(tile->joined->serial) : Place::at(tile->address));
  return tile;
}

Tile* MortiseAllocator::place_again(StreamCache& cache, std::size_t bytes, Place place) {
  if (place.is_joined()) return joined_.take_again(cache, place.serial(), bytes);
  Tile* tile = home_.containing(place.address());
  if (tile->state != TileState::kFree || tile->cache != &cache || tile->end() < place.address() + bytes) return nullptr;
  return home_.take_part(tile, place.address(), bytes);
}

// A free asks the block and its stream, not the tile: that one comes to the processor's cache meanwhile.
void MortiseAllocator::deallocate(const Block& block, StreamRef last_use) noexcept {
  if (marks_of(block) != 0) [[unlikely]]
    return deallocate_marked(block, last_use);
  auto* tile = static_cast<Tile*>(block.cookie);
  const bool is_used = awaited_.knows_any() && tile->has_uses;
  if (last_use != block.request.stream || is_used) [[unlikely]]
    return defer(tile, block.request.stream, last_use);
  if (last_cache_->stream != last_use) last_cache_ = tile->cache;
  give_back(*last_cache_, tile, block.bytes);
}

[[gnu::noinline]] void MortiseAllocator::deallocate_marked(const Block& block, StreamRef last_use) noexcept {
  if (PlanPlaces::has(block)) return plan_->give(block, last_use);
  Tile* tile = tile_of(block);
  if (last_use == block.request.stream && !tile->has_uses) return joined_.give_back(tile);
  defer(tile, block.request.stream, last_use);
}

[[gnu::noinline]] void MortiseAllocator::defer(Tile* tile, StreamRef stream, StreamRef last_use) noexcept {
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
  if (stream != block.request.stream) awaited_.add_use(tile_of(block), stream);
}

/// At home, `bytes` long.
[[gnu::always_inline]] inline void MortiseAllocator::give_back(StreamCache& cache, Tile* tile,
                                                               std::size_t bytes) noexcept {
  if (!keeps_quick_) [[unlikely]]
    return home_.give_back(tile);
  if (bytes >= small_bytes_) {
    // Its neighbours have come to the processor's cache by the time they are needed.
    __builtin_prefetch(tile->left != nullptr ? tile->left : tile, 1);
    __builtin_prefetch(tile->right != nullptr ? tile->right : tile, 1);
    tile->state = TileState::kQuick;
    tile = std::exchange(cache.held, tile);
    if (tile == nullptr) return;
  } else if (cache.quick.push(tile, bytes)) {
    return;
  }
  home_.give_back(tile);
}

void MortiseAllocator::finish(Tile* tile) noexcept {
  if (observer_ != nullptr)
    observer_->free_completed(pointer(tile->address), tile->requested_bytes, tile->cache->stream);
  if (tile->is_joined()) return joined_.give_back(tile);
  give_back(*tile->cache, tile, tile->bytes);
}

void MortiseAllocator::take_reached() {
  awaited_.take_reached([this](Tile* tile) { finish(tile); });
}

void MortiseAllocator::synchronize() {
  ++synchronizations_;
  source_.synchronize();
  awaited_.take_all([this](Tile* tile) { finish(tile); });
}

std::size_t MortiseAllocator::trim(std::size_t keep_bytes) {
  if (plan_ == nullptr) return trim_home(keep_bytes);
  const std::size_t of_plan = plan_->trim(keep_bytes - std::min(keep_bytes, cached_bytes()));
  return of_plan + trim_home(keep_bytes - std::min(keep_bytes, plan_->cached_bytes()));
}

std::size_t MortiseAllocator::trim_home(std::size_t keep_bytes) {
  if (cached_bytes() <= keep_bytes && awaited_.empty()) return 0;
  synchronize();
  flush_quick();
  if (cached_bytes() <= keep_bytes) return 0;
  joined_.forget_waiting(0);
  // All streams are idle: free neighbours of several of them become one tile.
  if (!caches_.empty()) adopt_all(*caches_.front());
  return home_.shrink(cached_bytes(), keep_bytes);
}

void MortiseAllocator::limit_changed(std::size_t limit_bytes) {
  limit_ = limit_bytes;
  const std::size_t reserved = home_.reserved_bytes() + (plan_ != nullptr ? plan_->reserved_bytes() : 0);
  if (limit_ == 0 || reserved <= limit_) return;
  home_.keep_pages_apart();  // it may shrink again
  const std::size_t excess = reserved - limit_;
  const std::size_t cached = cached_bytes() + (plan_ != nullptr ? plan_->cached_bytes() : 0);
  trim(cached > excess ? cached - excess : 0);
}

void MortiseAllocator::walk(SegmentVisitor& visitor) const {
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
  if (plan_ != nullptr) plan_->walk(visitor);
}

void MortiseAllocator::report(PolicyStats& stats) const {
  stats.retries = retries_;
  stats.synchronizations = synchronizations_;
  stats.cached_bytes = cached_bytes();
  for (const auto& cache : caches_)
    for (const FreeTiles& free : cache->free)
      free.for_each(
          [&](const Tile* tile) { stats.largest_free_bytes = std::max(stats.largest_free_bytes, tile->bytes); });
  if (plan_ == nullptr) return;
  stats.cached_bytes += plan_->cached_bytes();
  stats.largest_free_bytes = std::max(stats.largest_free_bytes, plan_->largest_free_bytes());
}

void MortiseAllocator::check_invariants() const {
  home_.check();
  joined_.check();
  for (const auto& cache : caches_) {
    std::size_t bytes = 0;
    for (const FreeTiles& free : cache->free) free.for_each([&](const Tile* tile) { bytes += tile->bytes; });
    if (bytes != cache->free_bytes) throw Error("mortise: the free tiles of a stream differ from what is counted");
  }
  if (plan_ != nullptr) plan_->check();
}

}  // namespace tenon::mortise
