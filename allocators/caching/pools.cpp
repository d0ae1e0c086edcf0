// Private pools: memory that only the requests of one scope use. A scope belongs to the thread that opened it and takes
// every stream of that thread, innermost first, as torch.cuda.use_mem_pool does.
#include "everything.h"
#include "hot_path.h"
#include "policy.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <string>

namespace tenon::caching {

void Policy::begin_pool(std::uint64_t pool, StreamRef stream) {
  if (pool == 0) throw Error("pool 0 is the default pool: a private pool needs another id");
  const Everything lock(*this);
  const auto it = pools_.find(pool);
  if (it != pools_.end() && !it->second.owned)
    throw Error("pool " + std::to_string(pool) + " was released and cannot be opened again while its memory is in use");
  pools_[pool];
  scopes_.push_back({pool, std::this_thread::get_id(), stream});
  open_scopes_.fetch_add(1, std::memory_order_release);
}

void Policy::end_pool(std::uint64_t pool) {
  const Everything lock(*this);
  const auto same = [&](const Scope& scope) {
    return scope.pool == pool && scope.thread == std::this_thread::get_id();
  };
  auto it = std::find_if(scopes_.rbegin(), scopes_.rend(), same);
  // A scope may be closed by another thread than the one that opened it, when that one is gone.
  if (it == scopes_.rend())
    it = std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& s) { return s.pool == pool; });
  if (it == scopes_.rend()) throw Error("pool " + std::to_string(pool) + " is not open");
  scopes_.erase(std::next(it).base());
  open_scopes_.fetch_sub(1, std::memory_order_release);
}

void Policy::release_pool(std::uint64_t pool) {
  const Everything lock(*this);
  const auto it = pools_.find(pool);
  if (it == pools_.end()) return;
  it->second.owned = false;
  set_options_locked(it->second, {});
  release_cached_locked(pool, 0);
}

void Policy::configure_pool(std::uint64_t pool, const PoolOptions& options) {
  const Everything lock(*this);
  const auto it = pools_.find(pool);
  if (it == pools_.end()) throw Error("pool " + std::to_string(pool) + " does not exist: open it first");
  set_options_locked(it->second, options);
}

void Policy::set_options_locked(PrivatePool& pool, const PoolOptions& options) {
  pool.options = options;
  for (const auto& [stream, arena] : pool.arenas) arena->splits = !options.no_split;
}

Arena& Policy::route(const Request& request) {
  {
    std::lock_guard lock(world_mutex_);
    const auto thread = std::this_thread::get_id();
    const auto it = std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& s) { return s.thread == thread; });
    if (it != scopes_.rend()) return private_arena_locked(it->pool, request.stream);
  }
  return arena_of(request.stream);
}

Arena& Policy::private_arena_locked(std::uint64_t pool, StreamRef stream) {
  PrivatePool& of = pools_[pool];
  Arena*& arena = of.arenas[stream.id];
  if (arena) return *arena;
  if (spare_arenas_.empty()) {
    arena = &add_arena_locked(stream, pool);
  } else {
    arena = spare_arenas_.back();
    spare_arenas_.pop_back();
    arena->stream = stream;
    arena->pool = pool;
  }
  arena->splits = !of.options.no_split;
  return *arena;
}

}  // namespace tenon::caching
