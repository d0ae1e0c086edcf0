// What the policy is told, gives back, and shows of itself.
#include "mortise_allocator.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <utility>

namespace tenon::mortise {

namespace {

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
      OptionSpec::integer("slack_fraction", 32,
                          "so much of what lived at most may lie idle before free pieces are joined, a 32nd say; "
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
      // Places are remembered by their range, which goes with its memory where there is no virtual memory.
      follows_rhythm_(context.options.boolean("rhythm") && source_.traits().virtual_memory),
      caches_([this](StreamRef stream, std::size_t lane) {
        return std::make_unique<StreamCache>(stream, lane, tiles_, home_.page_bytes());
      }),
      home_(source_),
      joined_(source_, home_),
      awaited_(source_) {
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

std::size_t MortiseAllocator::cached_bytes() const {
  std::size_t bytes = 0;
  for (const auto& cache : caches_.all()) bytes += cache->cached_bytes();
  return bytes;
}

std::size_t MortiseAllocator::trim(std::size_t keep_bytes) {
  const Caches::LockAll lock(caches_);
  return trim_all(keep_bytes);
}

std::size_t MortiseAllocator::trim_all(std::size_t keep_bytes) {
  if (plan_ == nullptr) return trim_home(keep_bytes);
  const std::size_t of_plan = plan_->trim(keep_bytes - std::min(keep_bytes, cached_bytes()));
  return of_plan + trim_home(keep_bytes - std::min(keep_bytes, plan_->cached_bytes()));
}

std::size_t MortiseAllocator::trim_home(std::size_t keep_bytes) {
  if (cached_bytes() <= keep_bytes && awaited_.empty()) return 0;
  synchronize();
  flush_all();
  if (cached_bytes() <= keep_bytes) return 0;
  joined_.forget_waiting(0);
  // All streams are idle: free neighbours of several of them become one tile.
  StreamCache& cache = *caches_.all().front();
  adopt_all(cache);
  const std::size_t given_back = home_.shrink(cache, cached_bytes(), keep_bytes);
  for (const auto& each : caches_.all()) each->records.give_all();
  return given_back;
}

void MortiseAllocator::limit_changed(std::size_t limit_bytes) {
  const Caches::LockAll lock(caches_);
  limit_ = limit_bytes;
  const std::size_t reserved = home_.reserved_bytes() + (plan_ != nullptr ? plan_->reserved_bytes() : 0);
  if (limit_ == 0 || reserved <= limit_) return;
  home_.keep_pages_apart();  // it may shrink again
  const std::size_t excess = reserved - limit_;
  const std::size_t cached = cached_bytes() + (plan_ != nullptr ? plan_->cached_bytes() : 0);
  trim_all(cached > excess ? cached - excess : 0);
}

void MortiseAllocator::walk(SegmentVisitor& visitor) const {
  const Caches::LockAll lock(caches_);
  for (const auto& range : home_.ranges()) {
    const std::vector<Home::Part> parts = Home::parts_of(*range, caches_.all());
    // Lent tiles are shown where they are joined.
    std::size_t lent = 0;
    for (const Home::Part& part : parts)
      if (part.tile != nullptr && part.tile->state == TileState::kLent) lent += part.bytes;
    visitor.segment({.address = range->address,
                     .bytes = range->mapped_bytes - lent,
                     .stream = parts.front().tile != nullptr ? parts.front().tile->cache->stream : StreamRef{},
                     .is_large = range->region == kLarge,
                     .is_expandable = home_.can_join()});
    for (const Home::Part& part : parts) {
      if (part.tile != nullptr)
        show(visitor, *part.tile);
      else
        visitor.block({.address = part.address, .bytes = part.bytes, .state = BlockState::kUnmapped});
    }
  }
  joined_.for_each_block([&](const JoinedRange& range) {
    const std::uintptr_t begin = JoinedRanges::begin_of(range, home_.page_bytes()), end = begin + range.bytes;
    visitor.segment({.address = begin,
                     .bytes = range.bytes,
                     .stream = range.tile->cache->stream,
                     .is_large = true,
                     .is_expandable = true});
    // What an aligned block leaves before and behind it goes back with it.
    const auto show_rest = [&](std::uintptr_t from, std::uintptr_t to) {
      if (from != to) visitor.block({.address = from, .bytes = to - from, .state = BlockState::kFree});
    };
    show_rest(begin, range.tile->address);
    show(visitor, *range.tile);
    show_rest(range.tile->end(), end);
  });
  if (plan_ != nullptr) plan_->walk(visitor);
}

void MortiseAllocator::report(PolicyStats& stats) const {
  const Caches::LockAll lock(caches_);
  stats.retries = retries_;
  stats.synchronizations = synchronizations_;
  stats.cached_bytes = cached_bytes();
  for (const auto& cache : caches_.all())
    for (const FreeTiles& free : cache->free)
      free.for_each(
          [&](const Tile* tile) { stats.largest_free_bytes = std::max(stats.largest_free_bytes, tile->bytes); });
  if (plan_ == nullptr) return;
  stats.cached_bytes += plan_->cached_bytes();
  stats.largest_free_bytes = std::max(stats.largest_free_bytes, plan_->largest_free_bytes());
}

void MortiseAllocator::check_invariants() const {
  const Caches::LockAll lock(caches_);
  home_.check(caches_.all());
  joined_.check();
  for (const auto& cache : caches_.all()) {
    std::size_t bytes = 0;
    for (const FreeTiles& free : cache->free) free.for_each([&](const Tile* tile) { bytes += tile->bytes; });
    if (bytes != cache->free_bytes.get())
      throw Error("mortise: the free tiles of a stream differ from what is counted");
  }
  if (plan_ != nullptr) plan_->check();
}

}  // namespace tenon::mortise
