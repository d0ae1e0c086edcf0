// What happens on nearly every call: a cached piece is found, split and handed out; a freed one is merged and cached.
#include "everything.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <cmath>

namespace tenon::caching {

Policy::Policy(MemorySource& source, const Settings& settings, PolicyObserver* observer)
    : source_(source), settings_(settings), observer_(observer), old_(settings.compat == Compat::k1_13) {
  const SourceTraits traits = source_.traits();
  if (traits.host_accessible) settings_.least_alignment = kDefaultAlignment;
  // As in PyTorch nine eighths of the device, so that fragmentation of addresses alone cannot fail a request that fits.
  constexpr std::size_t kWithoutCapacity = 8 * TiB;
  const std::size_t total = traits.capacity_bytes ? traits.capacity_bytes : kWithoutCapacity;
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
    limit_bytes_ = kUnlimited;
  } else {
    const double limit = fraction * static_cast<double>(total);
    limit_bytes_ = static_cast<std::size_t>(old_ ? std::trunc(limit) : std::round(limit));
  }
}

Block Policy::allocate(const Request& request) {
  if (request.bytes >= kHugeRequestBytes) throw OutOfMemory({.requested_bytes = request.bytes});
  const bool in_a_pool = open_scopes_.load(std::memory_order_acquire) != 0;
  // Frees that waited for a stream come first: this very request may get what they gave back.
  if (deferred_.any_pending() && !(old_ && in_a_pool)) process_events();

  const std::size_t bytes = round_size(settings_, request.bytes);
  const bool large = is_large(bytes);
  Arena& arena = in_a_pool ? route(request) : arena_of(request.stream);
  {
    std::lock_guard lock(arena.mutex);
    if (large && arena.pool == 0 && collects_garbage()) large_lookups_.fetch_add(1, std::memory_order_relaxed);
    if (Piece* piece = find_fit_locked(arena, large, bytes)) {
      arena.free[large].erase(piece);
      return hand_out_locked(arena, piece, bytes, request);
    }
  }
  return allocate_slowly(request, arena, bytes);
}

Arena& Policy::arena_of(StreamRef stream) {
  std::atomic<Arena*>& bucket = default_arenas_[(stream.id ^ stream.id >> 12) % kBuckets];
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
  peaks_.add(arenas_.back()->counters);
  arenas_.back()->counts_active = counts_active_;
  return *arenas_.back();
}

/// Exact best fit; of equal sizes the oldest segment's (1.13: the lowest) address.
Piece* Policy::find_fit_locked(Arena& arena, bool large, std::size_t bytes) const {
  const FreeIndex& free = arena.free[large];
  Piece* piece = free.at_least(bytes);
  if (!piece) return nullptr;
  if (piece->expandable) {
    if (settings_.expandable) {
      // Keep what can still grow for later: of the sufficient pieces take one that is not followed by unmapped space.
      const auto extended = [](const Piece* p) {
        return p->bytes + (p->right && p->right->state == BlockState::kUnmapped ? p->right->bytes : 0);
      };
      for (Piece* next; piece->expandable && (next = free.after(piece)) && extended(next) < extended(piece);)
        piece = next;
    } else {
      while (piece && piece->expandable) piece = free.after(piece);
      if (!piece) return nullptr;
    }
  }
  if (bytes < settings_.max_split_bytes && piece->bytes >= settings_.max_split_bytes) return nullptr;
  if (bytes >= settings_.max_split_bytes && piece->bytes >= bytes + settings_.max_non_split_rounding_bytes)
    return nullptr;
  return piece;
}

void Policy::put_locked(Arena& arena, Piece* piece) const {
  piece->state = BlockState::kFree;
  piece->born = collects_garbage() ? large_lookups_.load(std::memory_order_relaxed) : 0;
  arena.free[piece->large].insert(piece);
}

/// `piece` is in no index. Cuts it at `bytes` where the rules say so and hands it out.
Block Policy::hand_out_locked(Arena& arena, Piece* piece, std::size_t bytes, const Request& request) {
  const bool large = piece->large;
  const std::size_t remainder = piece->bytes - bytes;
  const bool was_split = !piece->is_whole_segment();
  const bool split = !piece->large || settings_.expandable
                         ? remainder >= kMinBlockBytes
                         : bytes < settings_.max_split_bytes && remainder > kLargeSplitSlackBytes;
  bool grown = false;
  if (split) {
    Piece* rest = arena.pieces.take();
    *rest = {.address = piece->address + bytes,
             .bytes = remainder,
             .order = piece->order + order_step(bytes),
             .requested_bytes = 0,
             .left = piece,
             .right = piece->right,
             .arena = &arena,
             .segment = piece->segment,
             .state = BlockState::kFree,
             .large = piece->large,
             .expandable = piece->expandable,
             .has_uses = false};
    if (rest->right) rest->right->left = rest;
    piece->right = rest;
    piece->bytes = bytes;
    put_locked(arena, rest);
    if (!piece->expandable) {
      if (was_split) {
        arena.counters.decrease(large, kInactiveSplitBytes, static_cast<std::int64_t>(bytes));
      } else {
        grown |= arena.counters.increase(large, kInactiveSplit, 1);
        grown |= arena.counters.increase(large, kInactiveSplitBytes, static_cast<std::int64_t>(remainder));
      }
    }
  } else if (was_split && !piece->expandable) {
    arena.counters.decrease(large, kInactiveSplit, 1);
    arena.counters.decrease(large, kInactiveSplitBytes, static_cast<std::int64_t>(piece->bytes));
  }
  piece->state = BlockState::kActive;
  piece->requested_bytes = request.bytes;
  piece->has_uses = false;

  const auto block_bytes = static_cast<std::int64_t>(piece->bytes);
  grown |= arena.counters.increase(large, kAllocation, 1);
  grown |= arena.counters.increase(large, kAllocatedBytes, block_bytes);
  if (arena.counts_active) {
    grown |= arena.counters.increase(large, kActive, 1);
    grown |= arena.counters.increase(large, kActiveBytes, block_bytes);
  }
  grown |= arena.counters.increase(large, kRequestedBytes, static_cast<std::int64_t>(request.bytes));
  if (grown) [[unlikely]]
    peaks_.settle();
  if (piece->bytes >= settings_.max_split_bytes) [[unlikely]] {
    std::lock_guard lock(oversize_mutex_);
    oversize_allocations_.increase(1);
  }
  return {.data = piece->data(), .bytes = piece->bytes, .cookie = piece, .request = request};
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
    const bool large = piece->large;
    arena.counters.decrease(large, kAllocation, 1);
    arena.counters.decrease(large, kAllocatedBytes, static_cast<std::int64_t>(piece->bytes));
    if (piece->bytes >= settings_.max_split_bytes) [[unlikely]] {
      std::lock_guard oversize(oversize_mutex_);
      oversize_allocations_.decrease(1);
    }
    if (!piece->has_uses && last_use == arena.stream) [[likely]] {
      free_piece_locked(piece);
      return;
    }
    piece->state = BlockState::kAwaitingStream;
  }
  free_slowly(piece, last_use);
}

/// Merges with free neighbours and caches the result. The left piece of a merge lives on, so that a segment's first
/// piece stays the same object.
void Policy::free_piece_locked(Piece* piece) noexcept {
  Arena& arena = *piece->arena;
  FreeIndex& free = arena.free[piece->large];
  const bool large = piece->large;
  const auto bytes = static_cast<std::int64_t>(piece->bytes);
  const auto requested = static_cast<std::int64_t>(piece->requested_bytes);
  std::int64_t split_count = 0, split_bytes = 0;

  if (Piece* left = piece->left; left && left->state == BlockState::kFree) {
    free.erase(left);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(left->bytes);
    left->bytes += piece->bytes;
    left->right = piece->right;
    if (left->right) left->right->left = left;
    arena.pieces.give(piece);
    piece = left;
  }
  if (Piece* right = piece->right; right && right->state == BlockState::kFree) {
    free.erase(right);
    --split_count;
    split_bytes -= static_cast<std::int64_t>(right->bytes);
    piece->bytes += right->bytes;
    piece->right = right->right;
    if (piece->right) piece->right->left = piece;
    arena.pieces.give(right);
  }
  put_locked(arena, piece);

  bool grown = false;
  if (!piece->expandable) {
    if (!piece->is_whole_segment()) {
      ++split_count;
      split_bytes += static_cast<std::int64_t>(piece->bytes);
    }
    // Once, as a sum: what came and went in between would show in the peaks.
    grown |= arena.counters.change(large, kInactiveSplit, split_count);
    grown |= arena.counters.change(large, kInactiveSplitBytes, split_bytes);
  }
  if (arena.counts_active) {
    arena.counters.decrease(large, kActive, 1);
    arena.counters.decrease(large, kActiveBytes, bytes);
  }
  arena.counters.decrease(large, kRequestedBytes, requested);
  if (grown) [[unlikely]]
    peaks_.settle();
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
  for (const auto& arena : arenas_) arena->counts_active = true;
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
  free_piece_locked(piece);
}

void Policy::process_events() {
  std::lock_guard world(world_mutex_);
  for (Piece* piece : deferred_.take_reached(source_)) {
    std::lock_guard lock(piece->arena->mutex);
    if (observer_) observer_->free_completed(piece->data(), piece->requested_bytes, piece->arena->stream);
    free_piece_locked(piece);
  }
}

}  // namespace tenon::caching
