// The slow path: no cached piece would do. In PyTorch's order: collect garbage, a new segment, free oversized pieces
// and try again, flush everything and try again, out of memory. And the ways back to the device.
#include "everything.h"
#include "hot_path.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace tenon::caching {

namespace {

void increase(PoolStats& stats, bool large, std::size_t amount) {
  stats[static_cast<int>(StatPool::kAggregate)].increase(static_cast<std::int64_t>(amount));
  stats[large ? 2 : 1].increase(static_cast<std::int64_t>(amount));
}

void decrease(PoolStats& stats, bool large, std::size_t amount) {
  stats[static_cast<int>(StatPool::kAggregate)].decrease(static_cast<std::int64_t>(amount));
  stats[large ? 2 : 1].decrease(static_cast<std::int64_t>(amount));
}

}  // namespace

Block Policy::allocate_slowly(const Request& request, Arena& arena, std::size_t bytes) {
  const bool large = is_large(bytes);
  Everything lock(*this, arena);
  // Another thread may have freed something meanwhile.
  if (const FreeIndex::Place place = find_fit_locked(arena, large, bytes, settings_.expandable); place.piece) {
    arena.free[large].erase(place);
    return hand_out_locked(arena, large, place.piece, place.bytes, bytes, request, settings_.expandable);
  }
  if (collects_garbage_) {
    lock.lock_others();
    collect_garbage_locked();
  }
  Piece* piece = device_allocate_locked(arena, large, bytes);
  if (!piece) lock.lock_others();
  if (!piece && arena.pool == 0) {
    // What a private pool lends is judged as if expandable segments were off.
    if (Piece* const lent = borrow_locked(request.stream, large, bytes))
      return hand_out_locked(*lent->arena, large, lent, lent->bytes, bytes, request, false);
  }
  if (!piece && release_available_locked(arena, large, bytes)) piece = device_allocate_locked(arena, large, bytes);
  // 1.13 knows private pools from graph capture only, where nothing may be flushed.
  if (!piece && !(old_ && open_scopes_.load(std::memory_order_relaxed) != 0)) {
    release_cached_locked(0, 0);
    ++retries_;
    piece = device_allocate_locked(arena, large, bytes);
  }
  if (!piece) throw OutOfMemory({.requested_bytes = request.bytes});
  return hand_out_locked(arena, large, piece, piece->bytes, bytes, request, settings_.expandable);
}

/// A piece of a private pool that lends what it caches before others run out of memory; it goes back there.
Piece* Policy::borrow_locked(StreamRef stream, bool large, std::size_t bytes) {
  for (const auto& [id, pool] : pools_) {
    if (!pool.options.use_on_oom) continue;
    const auto arena = pool.arenas.find(stream.id);
    if (arena == pool.arenas.end()) continue;
    if (const FreeIndex::Place place = find_fit_locked(*arena->second, large, bytes, false); place.piece) {
      arena->second->free[large].erase(place);
      return place.piece;
    }
  }
  return nullptr;
}

/// Segments and pages that came (or, below 0, went).
void Policy::count_reserved_locked(const Arena& arena, bool large, std::int64_t bytes) {
  const auto count = [&](PoolStats& stats) {
    for (Stat* stat : {&stats[0], &stats[large ? 2 : 1]}) bytes < 0 ? stat->decrease(-bytes) : stat->increase(bytes);
  };
  reserved_total_ += static_cast<std::size_t>(bytes);
  count(reserved_stats_);
  if (arena.pool != 0) count(pools_.at(arena.pool).reserved_bytes);
}

/// A piece in no index, of at least `bytes`; null when the limit or the device does not allow it.
Piece* Policy::device_allocate_locked(Arena& arena, bool large, std::size_t bytes) {
  const std::size_t segment_bytes = segment_size(settings_, bytes);
  // What a segment would take counts, even where expandable segments need less.
  if (limit_bytes_ != kUnlimited && reserved_total_ + segment_bytes > limit_bytes_) return nullptr;
  if (settings_.expandable) return expand_locked(arena, large, bytes);
  void* address = source_.acquire(segment_bytes);
  if (!address) return nullptr;
  Piece* piece = new_segment_locked(arena, large, reinterpret_cast<std::uintptr_t>(address), segment_bytes, false);
  count_reserved_locked(arena, large, static_cast<std::int64_t>(segment_bytes));
  increase(segment_stats_, large, 1);
  if (segment_bytes >= settings_.max_split_bytes) oversize_segments_.increase(1);
  return piece;
}

Piece* Policy::new_segment_locked(Arena& arena, bool large, std::uintptr_t address, std::size_t bytes,
                                  bool expandable) {
  if (spare_segments_.empty()) {
    spare_segments_.push_back(static_cast<std::uint32_t>(segments_.size()));
    segments_.emplace_back();
    spare_segments_.reserve(segments_.size());  // so that forgetting one cannot fail
  }
  const std::uint32_t slot = spare_segments_.back();
  spare_segments_.pop_back();
  // Note [Order]: equal sizes are taken from the oldest segment first, then by address; in 1.13 by address alone.
  constexpr int kOffsetBits = 36;  // of 512 bytes
  const std::uint64_t registration = next_registration_++;
  Piece* piece = arena.pieces.take();
  *piece = {.address = address,
            .bytes = bytes,
            .order = old_ ? address : registration << kOffsetBits,
            .requested_bytes = 0,
            .left = nullptr,
            .right = nullptr,
            .arena = &arena,
            .segment = slot,
            .state = expandable ? BlockState::kUnmapped : BlockState::kFree,
            .large = large,
            .expandable = expandable,
            .has_uses = false};
  Segment& segment = segments_[slot];
  segment = {.arena = &arena,
             .address = address,
             .bytes = bytes,
             .mapped_bytes = expandable ? 0 : bytes,
             .first = piece,
             .large = large,
             .expandable = expandable};
  return piece;
}

void Policy::forget_segment_locked(Piece* piece) noexcept {
  segments_[piece->segment] = Segment{};
  spare_segments_.push_back(piece->segment);
  piece->arena->pieces.give(piece);
}

/// The piece is a whole cached segment that no stream uses any more.
void Policy::release_segment_locked(Piece* piece) noexcept {
  const std::size_t bytes = piece->bytes;
  const bool large = piece->large;
  piece->arena->free[large].erase(piece);
  source_.release(piece->data(), bytes);
  count_reserved_locked(*piece->arena, large, -static_cast<std::int64_t>(bytes));
  forget_segment_locked(piece);
  decrease(segment_stats_, large, 1);
  if (bytes >= settings_.max_split_bytes) oversize_segments_.decrease(1);
}

std::vector<Arena*> Policy::default_arenas_locked() const {
  std::vector<Arena*> arenas;
  for (const auto& arena : arenas_)
    if (arena->pool == 0) arenas.push_back(arena.get());
  std::sort(arenas.begin(), arenas.end(), [](const Arena* a, const Arena* b) { return a->stream < b->stream; });
  return arenas;
}

/// Frees whole large segments that were not looked at for longer than the average, until the limit's share is
/// respected.
void Policy::collect_garbage_locked() {
  const auto allowed =
      static_cast<std::size_t>(settings_.garbage_collection_threshold * static_cast<double>(limit_bytes_));
  if (reserved_total_ <= allowed) return;
  const std::size_t target = reserved_total_ - allowed;
  const std::uint64_t now = large_lookups_.load(std::memory_order_relaxed);
  struct Candidate {
    Piece* piece;
    std::uint64_t age;
  };
  std::vector<Candidate> candidates;
  double total_age = 0;
  for (Arena* arena : default_arenas_locked()) {
    arena->free[1].for_each([&](Piece* piece) {
      if (!piece->is_whole_segment() || piece->expandable) return;
      candidates.push_back({piece, now - piece->born});
      total_age += static_cast<double>(now - piece->born);
    });
  }
  std::size_t reclaimed = 0;
  for (bool freed = true; reclaimed < target && freed && !candidates.empty();) {
    freed = false;
    const double threshold = total_age / static_cast<double>(candidates.size());
    std::vector<Candidate> kept;
    // A pass does not stop at the target: pieces of equal age go together.
    for (const Candidate& candidate : candidates) {
      if (static_cast<double>(candidate.age) < threshold) {
        kept.push_back(candidate);
        continue;
      }
      source_.wait(source_.mark(candidate.piece->arena->stream));
      reclaimed += candidate.piece->bytes;
      total_age -= static_cast<double>(candidate.age);
      release_segment_locked(candidate.piece);
      freed = true;
    }
    candidates = std::move(kept);
  }
}

/// With max_split_size set: frees the smallest oversized piece that would do, or several from the largest down.
bool Policy::release_available_locked(Arena& arena, bool large, std::size_t bytes) {
  if (settings_.max_split_bytes == kUnlimited) return false;
  const std::size_t key = std::max(bytes, settings_.max_split_bytes);
  std::vector<Piece*> below;
  Piece* fit = nullptr;
  arena.free[large].for_each([&](Piece* piece) {
    if (piece->bytes < key)
      below.push_back(piece);
    else if (!fit)
      fit = piece;
  });
  const auto release = [&](Piece* piece) {
    source_.wait(source_.mark(arena.stream));
    release_segment_locked(piece);
  };
  // Part of a segment is as large as that only where expandable segments were on for a while: PyTorch would free it.
  if (fit && !fit->expandable && fit->is_whole_segment()) {
    release(fit);
    return true;
  }
  std::size_t released = 0;
  for (auto it = below.rbegin(); it != below.rend() && released < key && (*it)->bytes >= settings_.max_split_bytes;
       ++it) {
    if ((*it)->expandable || !(*it)->is_whole_segment()) continue;
    released += (*it)->bytes;
    release(*it);
  }
  return released >= key;
}

void Policy::synchronize_and_free_events_locked(std::uint64_t only_pool) {
  ++synchronizations_;
  for (Piece* piece : deferred_.take_all(source_, only_pool, only_pool == 0)) {
    if (observer_) observer_->free_completed(piece->data(), piece->requested_bytes, piece->arena->stream);
    free_piece_locked(*piece->arena, piece->large, piece);
  }
}

/// What is reserved and neither handed out nor waiting for a stream.
std::size_t Policy::cached_bytes_locked() const {
  return reserved_total_ - static_cast<std::size_t>(peaks_.stat(0, kActiveBytes).current);
}

/// Gives back what is whole of the arenas' free pieces, in (stream, size, order), and the free pages of expandable
/// segments.
std::size_t Policy::release_free_locked(std::vector<Arena*>& arenas, bool large, std::size_t keep_bytes) {
  std::size_t released = 0;
  std::vector<Piece*> expandable;
  std::size_t cached = keep_bytes ? cached_bytes_locked() : 0;
  bool synchronized = false;
  for (Arena* arena : arenas) {
    std::vector<Piece*> whole;
    arena->free[large].for_each([&](Piece* piece) {
      if (piece->expandable)
        expandable.push_back(piece);
      else if (piece->is_whole_segment())
        whole.push_back(piece);
    });
    for (Piece* piece : whole) {
      if (keep_bytes && cached <= keep_bytes) return released;
      // cudaFree waits by itself; a source need not. Work on the pieces' own stream may still run.
      if (!synchronized) source_.synchronize();
      synchronized = true;
      released += piece->bytes;
      cached -= piece->bytes;
      release_segment_locked(piece);
    }
  }
  for (Piece* piece : expandable) {
    if (keep_bytes && cached <= keep_bytes) break;
    const std::size_t bytes = unmap_locked(piece);
    released += bytes;
    cached -= bytes;
  }
  return released;
}

/// PyTorch's release_cached_blocks. Pool 0: the default pool and every private pool whose owner is gone.
std::size_t Policy::release_cached_locked(std::uint64_t only_pool, std::size_t keep_bytes) {
  std::size_t released = 0;
  if (only_pool == 0) {
    synchronize_and_free_events_locked(0);
    std::vector<Arena*> arenas = default_arenas_locked();
    released += release_free_locked(arenas, true, keep_bytes);
    released += release_free_locked(arenas, false, keep_bytes);
  }
  for (auto it = pools_.begin(); it != pools_.end();) {
    PrivatePool& pool = it->second;
    if (pool.owned || (only_pool != 0 && it->first != only_pool)) {
      ++it;
      continue;
    }
    if (only_pool != 0) synchronize_and_free_events_locked(only_pool);
    std::vector<Arena*> arenas;
    for (const auto& [stream, arena] : pool.arenas) arenas.push_back(arena);
    released += release_free_locked(arenas, false, keep_bytes);
    released += release_free_locked(arenas, true, keep_bytes);
    const bool gone =
        std::all_of(arenas.begin(), arenas.end(), [](const Arena* arena) { return arena->pieces.live() == 0; });
    if (gone) spare_arenas_.insert(spare_arenas_.end(), arenas.begin(), arenas.end());
    it = gone ? pools_.erase(it) : std::next(it);
  }
  return released;
}

std::size_t Policy::trim(std::size_t keep_bytes) {
  const Everything lock(*this);
  return release_cached_locked(0, keep_bytes);
}

}  // namespace tenon::caching
