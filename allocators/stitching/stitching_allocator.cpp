// Requests and frees, and what is shown of the policy.
#include "stitching_allocator.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <new>

namespace tenon::stitching {

namespace {

/// More than any device has, and little enough that no sum of sizes wraps.
constexpr std::size_t kLargestBlock = 64 * TiB;

std::size_t chunk_bytes_of(const AllocatorContext& context) {
  const SourceTraits traits = context.source.traits();
  if (!traits.virtual_memory)
    throw ConfigError("stitching: " + traits.device + " has no virtual memory, which it stitches with: use 'caching'");
  return align_up(context.options.size("chunk"), traits.page_bytes);
}

void show(SegmentVisitor& visitor, const LargeBlock& block) {
  visitor.block(
      {.address = block.address, .bytes = block.bytes, .requested_bytes = block.requested_bytes, .state = block.state});
}

}  // namespace

OptionSchema StitchingAllocator::options() {
  return {
      OptionSpec::size("chunk", 2 * MiB, "granularity of physical memory; rounded up to the device's page")
          .range(kGrain, 1 * GiB),
      OptionSpec::size("share_below", 4 * MiB,
                       "requests of 1 MiB to below this may begin and end in a chunk of another block; 0 = none do")
          .range(std::size_t{0}, 1 * GiB),
      OptionSpec::size("stitch_from", 4 * MiB,
                       "smaller requests are not stitched, unless the device has no more (GMLake's fragLimit)"),
      OptionSpec::integer("most_chunks", 0, "longer blocks are not stitched; 0 = however long they are")
          .range(0, 1'000'000'000),
      OptionSpec::integer(
          "most_ranges", 4096,
          "stitched ranges that are kept mapped; of more, half are forgotten, those longest unused; 0 = "
          "nothing is stitched")
          .range(0, 1'000'000),
      OptionSpec::size("growth", 24 * MiB, "the device is asked for at least so much, where it has as much")
          .range(kGrain, 1 * GiB),
  };
}

AllocatorTraits StitchingAllocator::traits() {
  return {.depends_on_capacity = [](const Options&) { return false; },
          .alignment = [](const Options&) { return kGrain; },
          .is_baseline = true};
}

StitchingAllocator::StitchingAllocator(const AllocatorContext& context)
    : source_(context.source),
      observer_(context.observer),
      chunk_bytes_(chunk_bytes_of(context)),
      share_below_(context.options.size("share_below")),
      stitch_from_(context.options.size("stitch_from")),
      most_chunks_(static_cast<std::size_t>(context.options.integer("most_chunks"))),
      most_ranges_(static_cast<std::size_t>(context.options.integer("most_ranges"))),
      growth_bytes_(align_up(context.options.size("growth"), chunk_bytes_)),
      addresses_(source_, source_.traits().page_bytes),
      primitives_(source_, addresses_, chunk_bytes_),
      ranges_(source_, addresses_, primitives_),
      slabs_(context) {}

StitchingAllocator::~StitchingAllocator() {
  try {
    source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
  for (const auto& block : home_records_)
    if (block->state == BlockState::kActive) tiled::StreamUses::drop(block.get());
  ranges_.for_each_busy([](StitchedRange& range) {
    if (range.state == BlockState::kActive) tiled::StreamUses::drop(&range);
  });
}

std::size_t StitchingAllocator::round(std::size_t bytes) const {
  return align_up(bytes, bytes < share_below_ ? kGrain : chunk_bytes_);
}

std::size_t StitchingAllocator::free_bytes() const {
  std::size_t bytes = 0;
  for (const auto& pool : pools_.all()) bytes += pool->free_bytes;
  return bytes;
}

std::size_t StitchingAllocator::cached_slab_bytes() const {
  PolicyStats stats;
  slabs_.report(stats);
  return stats.cached_bytes;
}

Block StitchingAllocator::allocate(const Request& request) {
  if (uses_.any_waiting())
    for (Tile* const tile : uses_.take_reached(source_)) finish(tile);
  if (is_small(request.bytes)) return allocate_small(request);
  const std::size_t bytes = round(request.bytes);
  // Rounding may have wrapped.
  if (bytes < request.bytes || bytes > kLargestBlock) throw OutOfMemory({.requested_bytes = request.bytes});
  Pool& pool = pools_.of(request.stream);
  Rhythm* const rhythm = rhythms_.of(request.purpose);
  LargeBlock* block = nullptr;
  const Rhythm::Key key = Rhythm::key_of(request.stream, bytes);
  for (const Placement* place = rhythm ? rhythm->expect(key) : nullptr; !block && place; place = rhythm->another())
    block = place_again(pool, bytes, *place);
  if (!block) block = serve(pool, bytes);
  if (!block) throw OutOfMemory({.requested_bytes = request.bytes});
  if (rhythm)
    rhythm->note(
        key, {.address = block->address, .extent = block->lent.front()->segment, .is_stitched = block->is_stitched});
  block->state = BlockState::kActive;
  block->requested_bytes = request.bytes;
  block->uses = nullptr;
  return {.data = block->data(), .bytes = bytes, .cookie = static_cast<Tile*>(block), .request = request};
}

Block StitchingAllocator::allocate_small(const Request& request) {
  try {
    return slabs_.allocate(request);
  } catch (const OutOfMemory&) {
    synchronize();
    if (shrink(0) == 0) throw;
    ++retries_;
    return slabs_.allocate(request);
  }
}

void StitchingAllocator::deallocate(const Block& block, StreamRef last_use) noexcept {
  if (is_small(block.request.bytes)) return slabs_.deallocate(block, last_use);
  auto* const large = static_cast<LargeBlock*>(static_cast<Tile*>(block.cookie));
  if (large->uses == nullptr && last_use == block.request.stream) [[likely]]
    return give_back(large);
  try {
    if (last_use != block.request.stream) tiled::StreamUses::add(large, last_use);
  } catch (const std::bad_alloc&) {
    large->state = BlockState::kAwaitingStream;  // for good: safe, and the host is out of memory anyway
    return;
  }
  uses_.defer(large, source_);
}

void StitchingAllocator::record_use(const Block& block, StreamRef stream) {
  if (is_small(block.request.bytes)) return slabs_.record_use(block, stream);
  if (stream != block.request.stream) tiled::StreamUses::add(static_cast<Tile*>(block.cookie), stream);
}

void StitchingAllocator::give_back(LargeBlock* block) noexcept {
  block->state = BlockState::kFree;
  for (Tile* const tile : block->lent) primitives_.give_back(tile);
  block->lent.clear();
  if (block->is_stitched)
    ranges_.touch(static_cast<StitchedRange&>(*block));
  else
    spare_records_.push_back(block);
}

void StitchingAllocator::finish(Tile* tile) noexcept {
  auto* const block = static_cast<LargeBlock*>(tile);
  if (observer_) observer_->free_completed(block->data(), block->requested_bytes, pool_of(block).stream);
  give_back(block);
}

void StitchingAllocator::synchronize() {
  ++synchronizations_;
  source_.synchronize();
  for (Tile* const tile : uses_.take_all(source_)) finish(tile);
}

/// Gives extents back that are free, the youngest first, until at most so many bytes of large blocks are cached. No
/// stream uses them.
std::size_t StitchingAllocator::shrink(std::size_t keep_bytes) noexcept {
  const auto& pools = pools_.all();
  for (const auto& pool : pools)
    if (pool != pools.front()) primitives_.adopt(*pool, *pools.front());
  const std::size_t before = primitives_.reserved_bytes();
  for (std::size_t i = primitives_.extents().size(); i-- > 0 && free_bytes() > keep_bytes;) {
    const auto& extent = primitives_.extents()[i];
    if (!extent || !primitives_.is_all_free(*extent)) continue;
    ranges_.forget_those_of(static_cast<std::uint32_t>(i));
    primitives_.release(static_cast<std::uint32_t>(i));
  }
  return before - primitives_.reserved_bytes();
}

std::size_t StitchingAllocator::trim(std::size_t keep_bytes) {
  const std::size_t in_slabs = cached_slab_bytes();
  std::size_t given_back = 0;
  if (uses_.any_waiting() || in_slabs + free_bytes() > keep_bytes) {
    synchronize();
    given_back = shrink(keep_bytes - std::min(keep_bytes, in_slabs));
  }
  return given_back + slabs_.trim(keep_bytes - std::min(keep_bytes, free_bytes()));
}

void StitchingAllocator::walk(SegmentVisitor& visitor) const {
  for (const auto& extent : primitives_.extents()) {
    if (!extent) continue;
    std::size_t lent = 0;  // to stitched blocks, which are shown below
    const auto user_of = [](const Tile* tile) { return static_cast<const LargeBlock*>(tile->next); };
    for (const Tile* tile = extent->first; tile; tile = tile->right)
      if (!tile->is_free() && user_of(tile)->is_stitched) lent += tile->bytes;
    visitor.segment({.address = extent->address,
                     .bytes = extent->bytes - lent,
                     .stream = pool_of(extent->first).stream,
                     .is_expandable = true});
    for (const Tile* tile = extent->first; tile; tile = tile->right) {
      if (tile->is_free() || user_of(tile)->is_stitched) {
        visitor.block({.address = tile->address,
                       .bytes = tile->bytes,
                       .state = tile->is_free() ? BlockState::kFree : BlockState::kUnmapped});
      } else if (tile == user_of(tile)->lent.front()) {
        show(visitor, *user_of(tile));
      }
    }
  }
  ranges_.for_each_busy([&](const StitchedRange& range) {
    visitor.segment(
        {.address = range.address, .bytes = range.bytes, .stream = pool_of(&range).stream, .is_expandable = true});
    show(visitor, range);
  });
  slabs_.walk(visitor);
}

void StitchingAllocator::report(PolicyStats& stats) const {
  slabs_.report(stats);
  stats.retries += retries_;
  stats.synchronizations += synchronizations_;
  stats.cached_bytes += free_bytes();
  // No request that a whole free slab would serve goes to slabs.
  stats.largest_free_bytes = std::min(stats.largest_free_bytes, Slabs::kLimit - Slabs::kUnit);
  for (const auto& pool : pools_.all())
    pool->whole.for_each(
        [&](const Tile* tile) { stats.largest_free_bytes = std::max(stats.largest_free_bytes, tile->bytes); });
}

void StitchingAllocator::check_invariants() const {
  primitives_.check();
  ranges_.check();
  slabs_.check_invariants();
}

}  // namespace tenon::stitching
