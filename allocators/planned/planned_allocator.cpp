// Where each request goes, and what becomes of freed blocks.
#include "planned_allocator.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>

namespace tenon::planned {

namespace {

/// Addresses of a range beside the plan: more than most devices have, since addresses cost nothing; where there are
/// fewer, half of it, and so on.
constexpr std::size_t kRangeBytes = 64 * GiB;
/// Beyond it no request is tried.
constexpr std::size_t kMostBytes = 16 * TiB;

/// Places that the plan leaves free are tried so often.
constexpr int kLeftoverAttempts = 8;

/// Reserved memory may be above the plan's bound by such a part and so much, before idle pages of it go back.
constexpr std::size_t kAboveBoundFraction = 50, kAboveBoundBytes = 4 * MiB;

/// What is taken from a source without virtual memory for a request: PyTorch's steps.
std::size_t segment_bytes(std::size_t bytes) {
  if (bytes <= 1 * MiB) return 2 * MiB;
  if (bytes < 10 * MiB) return 20 * MiB;
  return align_up(bytes, 2 * MiB);
}

/// Once: a run and its estimate, the passes of a replay have the same to say.
void say(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fputs(("tenon: planned: " + text + "\n").c_str(), stderr);
}

}  // namespace

struct PlannedAllocator::Leftover {
  explicit Leftover(const packing::Plan& plan)
      : buffers(buffers_of_plan(plan)), timeline(buffers), occupancy(timeline.sections()) {
    for (std::size_t i = 0; i < buffers.size(); ++i) occupancy.add(timeline.pieces(i), plan.blocks[i].offset);
  }

  /// The lowest place at `from` or above that no block of the plan needs from this one on; kNone above `height`.
  std::uint64_t lowest(std::size_t block, std::size_t bytes, std::size_t alignment, std::uint64_t from,
                       std::uint64_t height) const {
    if (bytes > height) return packing::Occupancy::kNone;
    const std::uint32_t now = block < buffers.size() ? timeline.pieces(block).front().begin : timeline.sections() - 1;
    const packing::Piece piece{.begin = now, .end = timeline.sections(), .high = bytes};
    return occupancy.lowest({&piece, 1}, alignment, from, height - bytes);
  }

  static std::vector<packing::Buffer> buffers_of_plan(const packing::Plan& plan) {
    std::vector<packing::Buffer> buffers;
    for (const packing::PlannedBlock& block : plan.blocks) {
      const auto from = static_cast<std::int64_t>(buffers.size());
      buffers.push_back({.lower = from, .upper = static_cast<std::int64_t>(block.until), .size = block.size});
    }
    return buffers;
  }

  std::vector<packing::Buffer> buffers;
  packing::Timeline timeline;
  packing::Occupancy occupancy;
};

OptionSchema PlannedAllocator::options() {
  return {
      OptionSpec::text(std::string(packing::kPlanOption), "",
                       "the plan to serve from: a file of `tenon plan HISTORY -o FILE.plan`, or of `record`"),
      OptionSpec::text("record", "", "where the run's own plan is written when it ends; empty: nowhere"),
      OptionSpec::integer("window", 32, "how many requests around its place in the plan a request is looked for")
          .range(0, 4096),
      OptionSpec::text("mismatch", "fallback", "what a plan of another model leads to: it is dropped, or an error")
          .one_of({"fallback", "error"}),
      OptionSpec::real("planning_seconds", 10, "how long `record` may look for a better plan").range(0.0, 3600.0),
  };
}

AllocatorTraits PlannedAllocator::traits() {
  // Without a plan of the history it is told of, it has nothing to show: it is tried where it is named.
  return {.depends_on_capacity = [](const Options&) { return false; }, .is_baseline = true};
}

PlannedAllocator::PlannedAllocator(const AllocatorContext& context)
    : source_(context.source),
      source_traits_(source_.traits()),
      observer_(context.observer),
      fails_on_mismatch_(context.options.text("mismatch") == "error"),
      planning_seconds_(context.options.real("planning_seconds")),
      recorder_(context.options.text("record")) {
  if (const std::string& file = context.options.text(packing::kPlanOption); !file.empty())
    follower_.emplace(packing::read_plan(file), static_cast<std::size_t>(context.options.integer("window")));
}

PlannedAllocator::~PlannedAllocator() {
  try {
    source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
  plan_range_.reset();
  beside_.clear();
  if (!recorder_.is_on()) return;
  try {
    recorder_.write(planning_seconds_);
    say("the plan of this run is in " + recorder_.file() +
        "; the next one is served from it with allocator.planned.plan=" + recorder_.file());
  } catch (const std::exception& error) {
    say(std::string("no plan is written: ") + error.what());
  }
}

Block PlannedAllocator::allocate(const Request& request) {
  if (request.bytes > kMostBytes) throw OutOfMemory({.requested_bytes = request.bytes});
  begin(request);
  Tile* const tile = serve(request, align_up(request.bytes, kDefaultAlignment));
  if (tile == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
  return hand_out(tile, request);
}

std::optional<Block> PlannedAllocator::allocate_by_plan(const Request& request) {
  if (!follower_ || request.bytes > kMostBytes) return std::nullopt;
  begin(request);
  const std::size_t bytes = align_up(request.bytes, kDefaultAlignment);
  Tile* tile = serve_from_plan(request, bytes);
  if (tile == nullptr) tile = serve_from_leftover(request, bytes);
  return tile != nullptr ? std::optional(hand_out(tile, request)) : std::nullopt;
}

void PlannedAllocator::begin(const Request& request) {
  collect_waiting();
  has_streams_ = has_streams_ || (only_stream_ && *only_stream_ != request.stream);
  only_stream_ = request.stream;
}

/// Throws std::bad_alloc where the host has no memory to record it; the tile is cached then.
Block PlannedAllocator::hand_out(Tile* tile, const Request& request) {
  tile->requested_bytes = request.bytes;
  try {
    tile->recorded = recorder_.requested(request);
  } catch (...) {
    tile->range->give(tile, std::nullopt);
    throw;
  }
  return {.data = tile->data(), .bytes = tile->bytes, .cookie = tile, .request = request};
}

Tile* PlannedAllocator::serve(const Request& request, std::size_t bytes) {
  if (Tile* const tile = serve_from_plan(request, bytes)) return tile;
  if (Tile* const tile = serve_from_leftover(request, bytes)) return tile;
  if (Tile* const tile = serve_beside(request, bytes)) return tile;
  if (Tile* const tile = serve_anywhere(request, bytes)) return tile;
  // The device is full: what is cached goes back, and what waits is waited for.
  settle_all();
  if (trim(0) != 0) ++retries_;
  if (Tile* const tile = serve_anywhere(request, bytes)) return tile;
  return serve_beside(request, bytes);
}

Tile* PlannedAllocator::serve_from_plan(const Request& request, std::size_t bytes) {
  if (!follower_) return nullptr;
  const std::optional<std::size_t> number = follower_->follow(request);
  if (follower_->is_foreign()) drop_foreign_plan();
  if (!number || !follower_ || has_no_plan_range_) return nullptr;
  const packing::PlannedBlock& block = follower_->block(*number);
  if (block.offset % request.alignment != 0) return nullptr;
  if (!plan_range_) plan_range_ = make_range(follower_->plan().height, 0);
  has_no_plan_range_ = !plan_range_;
  if (!plan_range_) return nullptr;
  stay_below_bound(block.offset, bytes);
  return plan_range_->take_at(block.offset, bytes, request.stream);
}

/// A plan whose packing is far above what lives at once has idle pages somewhere at any time: these go back before the
/// device is asked for more than a little above that. Each costs calls, so plans that are packed well keep theirs.
void PlannedAllocator::stay_below_bound(std::size_t offset, std::size_t bytes) {
  const packing::Plan& plan = follower_->plan();
  const std::size_t enough = plan.lower_bound + plan.lower_bound / kAboveBoundFraction + kAboveBoundBytes;
  if (!source_traits_.virtual_memory || plan.height <= enough) return;
  const std::size_t missing = plan_range_->missing_bytes(offset, bytes), reserved = reserved_bytes();
  if (missing == 0 || reserved + missing <= enough) return;
  settle_all();
  static_cast<void>(plan_range_->shrink(reserved + missing - enough, offset, bytes));
}

/// Where nothing of the plan will be: however long the block lives, it is in nobody's way.
Tile* PlannedAllocator::serve_from_leftover(const Request& request, std::size_t bytes) {
  if (!follower_ || !plan_range_) return nullptr;
  const packing::Plan& plan = follower_->plan();
  if (!leftover_) leftover_ = std::make_unique<Leftover>(plan);
  std::uint64_t from = 0;
  for (int attempt = 0; attempt < kLeftoverAttempts; ++attempt) {
    const std::uint64_t offset = leftover_->lowest(follower_->place(), bytes, request.alignment, from, plan.height);
    if (offset == packing::Occupancy::kNone) return nullptr;
    if (Tile* const tile = plan_range_->take_at(offset, bytes, request.stream)) return tile;
    from = offset + bytes;  // others outside of the plan are there already
  }
  return nullptr;
}

Tile* PlannedAllocator::serve_beside(const Request& request, std::size_t bytes) {
  for (const auto& range : beside_)
    if (Tile* const tile = range->take(bytes, request.alignment, request.stream)) return tile;
  std::unique_ptr<MemoryRange> range = source_traits_.virtual_memory ? make_range(bytes, kRangeBytes) : nullptr;
  if (!source_traits_.virtual_memory) {
    range = make_range(segment_bytes(bytes), 0);
    if (!range) range = make_range(bytes, 0);
  }
  if (!range) return nullptr;
  Tile* const tile = range->take(bytes, request.alignment, request.stream);
  if (tile != nullptr) beside_.push_back(std::move(range));
  return tile;
}

/// Also where blocks of the plan are still to come: they then go elsewhere.
Tile* PlannedAllocator::serve_anywhere(const Request& request, std::size_t bytes) {
  if (plan_range_)
    if (Tile* const tile = plan_range_->take(bytes, request.alignment, request.stream)) return tile;
  for (const auto& range : beside_)
    if (Tile* const tile = range->take(bytes, request.alignment, request.stream)) return tile;
  return nullptr;
}

/// Of at least `bytes`, and with virtual memory of up to `most`; null where the device has none.
std::unique_ptr<MemoryRange> PlannedAllocator::make_range(std::size_t bytes, std::size_t most) {
  const bool is_virtual = source_traits_.virtual_memory;
  const std::size_t granule =
      std::max<std::size_t>(is_virtual ? source_traits_.page_bytes : source_traits_.acquire_granularity, 1);
  const std::size_t least = align_up(bytes, granule);
  std::size_t length = std::max(least, align_up(most, granule));
  void* base = is_virtual ? source_.reserve(length) : source_.acquire(length);
  while (base == nullptr && is_virtual && length > least) {
    length = std::max(least, align_up(length / 2, granule));
    base = source_.reserve(length);
  }
  if (base == nullptr) return nullptr;
  try {
    return std::make_unique<MemoryRange>(source_, base, length, is_virtual);
  } catch (...) {  // it was nobody's yet
    is_virtual ? source_.unreserve(base, length) : source_.release(base, length);
    throw;
  }
}

void PlannedAllocator::drop_foreign_plan() {
  const std::string text = "the plan of '" + follower_->plan().name + "' has " + std::to_string(follower_->found()) +
                           " of the first " + std::to_string(follower_->requests()) +
                           " requests: it is of another model, or of other sizes";
  if (fails_on_mismatch_) throw Error("planned: " + text + "; make one of this run, or set mismatch=fallback");
  say(text + "; it is not used");
  follower_.reset();
  leftover_.reset();
  if (plan_range_) beside_.insert(beside_.begin(), std::move(plan_range_));
}

void PlannedAllocator::deallocate(const Block& block, StreamRef last_use) noexcept {
  auto* const tile = static_cast<Tile*>(block.cookie);
  try {
    if (last_use != tile->stream && std::ranges::find(tile->other_streams, last_use) == tile->other_streams.end())
      tile->other_streams.push_back(last_use);
    if (!tile->other_streams.empty()) {
      for (const StreamRef stream : tile->other_streams) tile->awaited.push_back(source_.mark(stream));
      tile->state = BlockState::kAwaitingStream;
      waiting_.push_back(tile);
      return;
    }
    const std::optional<Ticket> ticket = has_streams_ ? std::optional(source_.mark(tile->stream)) : std::nullopt;
    recorder_.freed(tile->recorded);
    tile->range->give(tile, ticket);
  } catch (const Error&) {
    tile->state = BlockState::kAwaitingStream;  // which streams still use it is unknown: it stays until teardown
  }
}

void PlannedAllocator::record_use(const Block& block, StreamRef stream) {
  auto* const tile = static_cast<Tile*>(block.cookie);
  if (stream == tile->stream || std::ranges::find(tile->other_streams, stream) != tile->other_streams.end()) return;
  tile->other_streams.push_back(stream);
}

/// Blocks whose other streams have got there are free. The device may fail to answer: those that were given back by
/// then wait no more.
void PlannedAllocator::collect_waiting() {
  for (std::size_t i = 0; i < waiting_.size();) {
    Tile* const tile = waiting_[i];
    std::erase_if(tile->awaited, [&](const Ticket& ticket) { return source_.reached(ticket); });
    if (!tile->awaited.empty()) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    recorder_.freed(tile->recorded);
    if (observer_ != nullptr) observer_->free_completed(tile->data(), tile->requested_bytes, tile->stream);
    tile->range->give(tile, std::nullopt);
  }
}

void PlannedAllocator::settle_all() {
  source_.synchronize();
  collect_waiting();
  for_each_range([](MemoryRange& range) { range.settle(); });
}

std::size_t PlannedAllocator::trim(std::size_t keep_bytes) {
  collect_waiting();
  const std::size_t cached = reserved_bytes() - active_bytes();
  if (cached <= keep_bytes) return 0;
  settle_all();
  const std::size_t wanted = reserved_bytes() - active_bytes() - keep_bytes;
  std::size_t given = 0;
  for (auto range = beside_.rbegin(); range != beside_.rend() && given < wanted; ++range)
    given += (*range)->shrink(wanted - given);
  std::erase_if(beside_, [](const auto& range) { return range->is_empty(); });
  if (plan_range_ && given < wanted) {
    given += plan_range_->shrink(wanted - given);
    if (plan_range_->is_empty()) plan_range_.reset();
  }
  return given;
}

template <class Visit>
void PlannedAllocator::for_each_range(Visit&& visit) const {
  if (plan_range_) visit(*plan_range_);
  for (const auto& range : beside_) visit(*range);
}

std::size_t PlannedAllocator::reserved_bytes() const {
  std::size_t bytes = 0;
  for_each_range([&](const MemoryRange& range) { bytes += range.reserved_bytes(); });
  return bytes;
}

std::size_t PlannedAllocator::active_bytes() const {
  std::size_t bytes = 0;
  for_each_range([&](const MemoryRange& range) { bytes += range.active_bytes(); });
  return bytes;
}

void PlannedAllocator::walk(SegmentVisitor& visitor) const {
  for_each_range([&](const MemoryRange& range) { range.walk(visitor); });
}

void PlannedAllocator::report(PolicyStats& stats) const {
  stats.retries = retries_;
  stats.cached_bytes = reserved_bytes() - active_bytes();
  for_each_range([&](const MemoryRange& range) {
    stats.largest_free_bytes = std::max(stats.largest_free_bytes, range.largest_free_bytes());
  });
}

void PlannedAllocator::check_invariants() const {
  for_each_range([](const MemoryRange& range) { range.check_invariants(); });
  for (const Tile* tile : waiting_)
    if (tile->state != BlockState::kAwaitingStream) throw Error("planned: a block that waits is not marked as one");
}

}  // namespace tenon::planned
