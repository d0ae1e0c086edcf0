// The ways back to the device: garbage, oversized blocks, and everything that is cached.
#include "caching_allocator.h"

#include <algorithm>
#include <utility>

namespace tenon::caching {

/// Frees whole large segments that were not looked at for longer than the average, until the limit's share is
/// respected.
void CachingAllocator::collect_garbage_locked() {
  const std::size_t allowed = limits_.garbage_limit_bytes();
  if (segments_.reserved_bytes() <= allowed) return;
  const std::size_t target = segments_.reserved_bytes() - allowed;
  struct Candidate {
    BlockRecord* block;
    std::uint64_t age;
  };
  std::vector<Candidate> candidates;
  double total_age = 0;
  for (Arena* arena : arenas_.default_arenas()) {
    arena->free[1].for_each([&](BlockRecord* block) {
      if (!block->is_whole_segment() || block->expandable) return;
      candidates.push_back({block, limits_.age_of(block)});
      total_age += static_cast<double>(limits_.age_of(block));
    });
  }
  std::size_t reclaimed = 0;
  for (bool freed = true; reclaimed < target && freed && !candidates.empty();) {
    freed = false;
    const double threshold = total_age / static_cast<double>(candidates.size());
    std::vector<Candidate> kept;
    // A pass does not stop at the target: blocks of equal age go together.
    for (const Candidate& candidate : candidates) {
      if (static_cast<double>(candidate.age) < threshold) {
        kept.push_back(candidate);
        continue;
      }
      source_.wait(source_.mark(candidate.block->arena->stream));
      reclaimed += candidate.block->bytes;
      total_age -= static_cast<double>(candidate.age);
      segments_.release(candidate.block);
      freed = true;
    }
    candidates = std::move(kept);
  }
}

/// With max_split_size set: frees the smallest oversized block that would do, or several from the largest down.
bool CachingAllocator::release_available_locked(Arena& arena, bool large, std::size_t bytes) {
  if (settings_.max_split_bytes == kUnlimited) return false;
  const std::size_t key = std::max(bytes, settings_.max_split_bytes);
  std::vector<BlockRecord*> below;
  BlockRecord* fit = nullptr;
  arena.free[large].for_each([&](BlockRecord* block) {
    if (block->bytes < key)
      below.push_back(block);
    else if (!fit)
      fit = block;
  });
  const auto release = [&](BlockRecord* block) {
    source_.wait(source_.mark(arena.stream));
    segments_.release(block);
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

/// What is reserved and neither handed out nor waiting for a stream.
std::size_t CachingAllocator::cached_bytes_locked() const {
  return segments_.reserved_bytes() - static_cast<std::size_t>(peaks_.stat(0, kActiveBytes).current);
}

/// Gives back what is whole of the arenas' free blocks, in (stream, size, order), and the free pages of expandable
/// segments.
std::size_t CachingAllocator::release_free_locked(const std::vector<Arena*>& arenas, bool large,
                                                  std::size_t keep_bytes) {
  std::size_t released = 0;
  std::vector<BlockRecord*> expandable;
  std::size_t cached = keep_bytes ? cached_bytes_locked() : 0;
  bool synchronized = false;
  for (Arena* arena : arenas) {
    std::vector<BlockRecord*> whole;
    arena->free[large].for_each([&](BlockRecord* block) {
      if (block->expandable)
        expandable.push_back(block);
      else if (block->is_whole_segment())
        whole.push_back(block);
    });
    for (BlockRecord* block : whole) {
      if (keep_bytes && cached <= keep_bytes) return released;
      // cudaFree waits by itself; a source need not. Work on the blocks' own stream may still run.
      if (!synchronized) source_.synchronize();
      synchronized = true;
      released += block->bytes;
      cached -= block->bytes;
      segments_.release(block);
    }
  }
  for (BlockRecord* block : expandable) {
    if (keep_bytes && cached <= keep_bytes) break;
    const std::size_t bytes = expandable_segments_.unmap(block);
    released += bytes;
    cached -= bytes;
  }
  return released;
}

/// PyTorch's release_cached_blocks. Pool 0: the default pool and every private pool whose owner is gone.
std::size_t CachingAllocator::release_cached_locked(std::uint64_t only_pool, std::size_t keep_bytes) {
  std::size_t released = 0;
  if (only_pool == 0) {
    synchronize_and_free_events_locked(0);
    std::vector<Arena*> arenas = arenas_.default_arenas();
    released += release_free_locked(arenas, true, keep_bytes);
    released += release_free_locked(arenas, false, keep_bytes);
  }
  for (auto it = pools_.all().begin(); it != pools_.all().end();) {
    const PrivatePool& pool = it->second;
    if (pool.owned || (only_pool != 0 && it->first != only_pool)) {
      ++it;
      continue;
    }
    if (only_pool != 0) synchronize_and_free_events_locked(only_pool);
    std::vector<Arena*> arenas;
    for (const auto& [stream, arena] : pool.arenas) arenas.push_back(arena);
    released += release_free_locked(arenas, false, keep_bytes);
    released += release_free_locked(arenas, true, keep_bytes);
    it = pools_.drop_if_empty(it);
  }
  return released;
}

}  // namespace tenon::caching
