// What happens on nearly every call: a cached piece is found, split and handed out; a freed one is merged and cached.
#include "hot_path.h"
#include "everything.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <cmath>

namespace tenon::caching {

Policy::Policy(MemorySource& source, const Settings& settings, PolicyObserver* observer,
               AddressRangeWatcher* address_ranges)
    : source_(source),
      settings_(settings),
      observer_(observer),
      watcher_(address_ranges),
      old_(settings.compat == Compat::k1_13),
      rounds_plainly_(std::all_of(settings.roundup_divisions.begin(), settings.roundup_divisions.end(),
                                  [&](std::uint32_t divisions) { return divisions <= (old_ ? 0u : 1u); })) {
  const SourceTraits traits = source_.traits();
  if (traits.host_accessible) settings_.least_alignment = kDefaultAlignment;
  // As in PyTorch nine eighths of the device, so that fragmentation of addresses alone cannot fail a request that fits.
  // Without a limit the machine's own memory is the size: terabytes of addresses are not to be had under a limit on
  // address space, or beside ThreadSanitizer's shadow.
  constexpr std::size_t kUnknown = 8 * TiB;
  std::size_t total = traits.capacity_bytes ? traits.capacity_bytes : source_.usage().total_bytes;
  if (total == 0) total = kUnknown;
  constexpr std::size_t kMostAddresses = 31 * TiB;  // an offset has 36 bits of 512 bytes: see Note [Order]
  address_space_bytes_ = std::min(total + total / 8, kMostAddresses);
  if (settings_.expandable) set_expandable(true);
  if (settings_.memory_fraction < 1) set_memory_fraction(settings_.memory_fraction);
}

void Policy::set_expandable(bool expandable) {
  if (expandable && !source_.traits().virtual_memory)
    throw ConfigError(source_.traits().device +
                      " has no virtual memory, which expandable segments need: use 'caching'");
  const Everything lock(*this);
  settings_.expandable = expandable;
}

void Policy::set_memory_fraction(double fraction) {
  const std::size_t total =
      source_.traits().capacity_bytes ? source_.traits().capacity_bytes : source_.usage().total_bytes;
  const Everything lock(*this);
  if (total == 0 || (fraction >= 1 && !old_)) {
    fraction_limit_bytes_ = kUnlimited;
  } else {
    const double limit = fraction * static_cast<double>(total);
    fraction_limit_bytes_ = static_cast<std::size_t>(old_ ? std::trunc(limit) : std::round(limit));
  }
  apply_limits_locked();
}

void Policy::limit_changed(std::size_t limit_bytes) {
  const Everything lock(*this);
  host_limit_bytes_ = limit_bytes == 0 ? kUnlimited : limit_bytes;
  apply_limits_locked();
}

void Policy::apply_limits_locked() {
  limit_bytes_ = std::min(fraction_limit_bytes_, host_limit_bytes_);
  collects_garbage_ = settings_.garbage_collection_threshold > 0 && limit_bytes_ != kUnlimited;
}

Block Policy::allocate(const Request& request) {
  if (request.bytes >= kHugeRequestBytes) throw OutOfMemory({.requested_bytes = request.bytes});
  const bool in_a_pool = open_scopes_.load(std::memory_order_acquire) != 0;
  // Frees that waited for a stream come first: this very request may get what they gave back.
  if (deferred_.any_pending() && !(old_ && in_a_pool)) process_events();

  const std::size_t bytes = rounds_plainly_ ? round_to_blocks(request.bytes) : round_size(settings_, request.bytes);
  const bool large = is_large(bytes);
  Arena& arena = in_a_pool ? route(request) : arena_of(request.stream);
  // See Note [Large and small].
  return large ? allocate_from(arena, true, bytes, request) : allocate_from(arena, false, bytes, request);
}

[[gnu::always_inline]] inline Block Policy::allocate_from(Arena& arena, bool large, std::size_t bytes,
                                                          const Request& request) {
  {
    std::lock_guard lock(arena.mutex);
    if (large && collects_garbage_ && arena.pool == 0) [[unlikely]]
      large_lookups_.fetch_add(1, std::memory_order_relaxed);
    if (const FreeIndex::Place place = find_fit_locked(arena, large, bytes); place.piece) [[likely]] {
      arena.free[large].erase(place);
      return hand_out_locked(arena, large, place.piece, place.bytes, bytes, request);
    }
  }
  return allocate_slowly(request, arena, bytes);
}

Arena& Policy::look_for_arena(std::atomic<Arena*>& bucket, StreamRef stream) {
  for (Arena* arena = bucket.load(std::memory_order_acquire); arena; arena = arena->next)
    if (arena->stream == stream) return *arena;
  std::lock_guard lock(world_mutex_);
  for (Arena* arena = bucket.load(std::memory_order_acquire); arena; arena = arena->next)
    if (arena->stream == stream) return *arena;
  Arena& arena = add_arena_locked(stream, 0);
  arena.next = bucket.load(std::memory_order_relaxed);
  bucket.store(&arena, std::memory_order_release);
  return arena;
}

Arena& Policy::add_arena_locked(StreamRef stream, std::uint64_t pool) {
  arenas_.push_back(std::make_unique<Arena>(stream, pool));
  peaks_.add(*arenas_.back());
  return *arenas_.back();
}

/// What a piece could become without moving.
static std::size_t extended(const Piece* piece) { return piece->bytes + (can_grow(piece) ? piece->right->bytes : 0); }

/// Keep what can still grow for later: of the sufficient pieces take one that is not followed by unmapped space. Where
/// expandable segments are off by now, none of them is taken.
Piece* Policy::choose_among_expandable_locked(const FreeIndex& free, Piece* piece) const {
  if (!settings_.expandable) {
    while (piece && piece->expandable) piece = free.after(piece);
    return piece;
  }
  Piece* const first = piece;
  for (Piece* next; piece->expandable && (next = free.after(piece)) && extended(next) < extended(piece);) piece = next;
  if (watcher_) [[unlikely]]
    tell_watcher_locked(free, first, piece);
  return piece;
}

/// How much shorter the ranges could be before one of the comparisons from `piece` to `chosen` came out otherwise.
void Policy::tell_watcher_locked(const FreeIndex& free, Piece* piece, const Piece* chosen) const {
  const auto ends_with_range = [](const Piece* p) { return can_grow(p) && !p->right->right; };
  for (;; piece = free.after(piece)) {
    const Piece* const next = piece->expandable ? free.after(piece) : nullptr;
    if (!next) return;
    const bool goes_on = extended(next) < extended(piece);
    const bool shrinks = ends_with_range(piece), next_shrinks = ends_with_range(next);
    if (shrinks != next_shrinks && goes_on == shrinks) {
      const std::size_t spare = goes_on ? extended(piece) - extended(next) - 1 : extended(next) - extended(piece);
      const Segment& segment = segments_[(shrinks ? piece : next)->segment];
      watcher_->relied_on(segment.page_bytes, segment.bytes - std::min(spare, segment.bytes));
    }
    if (piece == chosen) return;
  }
}

void Policy::deallocate(const Block& block, StreamRef last_use) noexcept {
  auto* piece = static_cast<Piece*>(block.cookie);
  Arena& arena = *piece->arena;
  if (last_use != arena.stream) [[unlikely]]
    count_active();
  {
    std::lock_guard lock(arena.mutex);
    __builtin_prefetch(piece->left);
    __builtin_prefetch(piece->right);
    const bool done = piece->large ? deallocate_locked(arena, true, piece, last_use)
                                   : deallocate_locked(arena, false, piece, last_use);
    if (done) [[likely]]
      return;
    piece->state = BlockState::kAwaitingStream;
  }
  free_slowly(piece, last_use);
}

/// Whether the block is cached by now: no other stream uses it.
[[gnu::always_inline]] inline bool Policy::deallocate_locked(Arena& arena, bool large, Piece* piece,
                                                             StreamRef last_use) noexcept {
  arena.counters.decrease(large, kAllocation, 1);
  arena.counters.decrease(large, kAllocatedBytes, static_cast<std::int64_t>(piece->bytes));
  if (piece->bytes >= settings_.max_split_bytes) [[unlikely]]
    count_oversize(-1);
  if (piece->has_uses || last_use != arena.stream) [[unlikely]] {
    if (arena.counters.special & Counters::kResting) peaks_.settle(arena);
    return false;
  }
  free_piece_locked(arena, large, piece);
  return true;
}

void Policy::count_oversize(int change) noexcept {
  std::lock_guard lock(oversize_mutex_);
  if (change > 0)
    oversize_allocations_.increase(1);
  else
    oversize_allocations_.decrease(1);
}

void Policy::record_use(const Block& block, StreamRef stream) {
  auto* piece = static_cast<Piece*>(block.cookie);
  Arena& arena = *piece->arena;
  if (stream == arena.stream) return;
  count_active();
  std::lock_guard lock(arena.mutex);
  deferred_.add_use(piece, stream);
  piece->has_uses = true;
}

/// From the first block on that another stream uses, active and allocated are two things.
void Policy::count_active() noexcept {
  if (counts_active_.load(std::memory_order_relaxed)) return;
  const Everything lock(*this);
  peaks_.count_active();
  counts_active_.store(true, std::memory_order_relaxed);
}

/// The block was used on other streams: it stays active until they have got there.
void Policy::free_slowly(Piece* piece, StreamRef last_use) noexcept {
  std::lock_guard world(world_mutex_);
  if (last_use != piece->arena->stream) {
    try {
      deferred_.add_use(piece, last_use);
    } catch (const std::bad_alloc&) {
      return;  // the piece stays awaiting for good: safe, and the host is out of memory anyway
    }
  }
  if (deferred_.defer(piece, source_)) return;
  std::lock_guard lock(piece->arena->mutex);
  free_piece_locked(*piece->arena, piece->large, piece);
}

void Policy::process_events() {
  std::lock_guard world(world_mutex_);
  for (Piece* piece : deferred_.take_reached(source_)) {
    std::lock_guard lock(piece->arena->mutex);
    if (observer_) observer_->free_completed(piece->data(), piece->requested_bytes, piece->arena->stream);
    free_piece_locked(*piece->arena, piece->large, piece);
  }
}

}  // namespace tenon::caching
