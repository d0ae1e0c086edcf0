// New arenas, and those that are used again.
#include "arena_registry.h"

#include <algorithm>

namespace tenon::caching {

Arena& ArenaRegistry::look_for(std::atomic<Arena*>& bucket, StreamRef stream) {
  for (Arena* arena = bucket.load(std::memory_order_acquire); arena; arena = arena->next)
    if (arena->stream == stream) return *arena;
  std::lock_guard lock(registry_mutex_);
  for (Arena* arena = bucket.load(std::memory_order_acquire); arena; arena = arena->next)
    if (arena->stream == stream) return *arena;
  Arena& arena = add_locked(stream, 0);
  arena.next = bucket.load(std::memory_order_relaxed);
  bucket.store(&arena, std::memory_order_release);
  return arena;
}

Arena& ArenaRegistry::add_locked(StreamRef stream, std::uint64_t pool) {
  arenas_.push_back(std::make_unique<Arena>(stream, pool));
  peaks_.add(*arenas_.back());
  return *arenas_.back();
}

Arena& ArenaRegistry::take(StreamRef stream, std::uint64_t pool) {
  if (spare_.empty()) return add_locked(stream, pool);
  Arena& arena = *spare_.back();
  spare_.pop_back();
  arena.stream = stream;
  arena.pool = pool;
  return arena;
}

std::vector<Arena*> ArenaRegistry::default_arenas() const {
  std::vector<Arena*> arenas;
  for (const auto& arena : arenas_)
    if (arena->pool == 0) arenas.push_back(arena.get());
  std::sort(arenas.begin(), arenas.end(), [](const Arena* a, const Arena* b) { return a->stream < b->stream; });
  return arenas;
}

}  // namespace tenon::caching
