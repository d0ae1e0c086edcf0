// Opening and closing scopes, and the arenas of each pool.
#include "private_pools.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <string>

namespace tenon::caching {

namespace {

void apply_options(PrivatePool& pool, const PoolOptions& options) {
  pool.options = options;
  for (const auto& [stream, arena] : pool.arenas) arena->splits = !options.no_split;
}

}  // namespace

void PrivatePools::begin(std::uint64_t id) {
  if (id == 0) throw Error("pool 0 is the default pool: a private pool needs another id");
  const auto it = pools_.find(id);
  if (it != pools_.end() && !it->second.owned)
    throw Error("pool " + std::to_string(id) + " was released and cannot be opened again while its memory is in use");
  pools_[id];
  scopes_.push_back({id, std::this_thread::get_id()});
  open_scopes_.fetch_add(1, std::memory_order_release);
}

void PrivatePools::end(std::uint64_t id) {
  const auto thread = std::this_thread::get_id();
  auto it = std::find_if(scopes_.rbegin(), scopes_.rend(),
                         [&](const Scope& scope) { return scope.pool == id && scope.thread == thread; });
  // A scope may be closed by another thread than the one that opened it, when that one is gone.
  if (it == scopes_.rend())
    it = std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& scope) { return scope.pool == id; });
  if (it == scopes_.rend()) throw Error("pool " + std::to_string(id) + " is not open");
  scopes_.erase(std::next(it).base());
  open_scopes_.fetch_sub(1, std::memory_order_release);
}

void PrivatePools::configure(std::uint64_t id, const PoolOptions& options) {
  const auto it = pools_.find(id);
  if (it == pools_.end()) throw Error("pool " + std::to_string(id) + " does not exist: open it first");
  apply_options(it->second, options);
}

bool PrivatePools::release(std::uint64_t id) {
  const auto it = pools_.find(id);
  if (it == pools_.end()) return false;
  it->second.owned = false;
  apply_options(it->second, {});
  return true;
}

std::optional<std::uint64_t> PrivatePools::current() const {
  const auto thread = std::this_thread::get_id();
  const auto it =
      std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& scope) { return scope.thread == thread; });
  if (it == scopes_.rend()) return std::nullopt;
  return it->pool;
}

Arena& PrivatePools::arena_of(std::uint64_t id, StreamRef stream) {
  PrivatePool& pool = pools_[id];
  if (const auto it = pool.arenas.find(stream.id); it != pool.arenas.end()) return *it->second;
  Arena& arena = arenas_.take(stream, id);
  arena.splits = !pool.options.no_split;
  arena.pool_reserved = &pool.reserved_bytes;
  pool.arenas.emplace(stream.id, &arena);
  return arena;
}

std::map<std::uint64_t, PrivatePool>::iterator PrivatePools::drop_if_empty(
    std::map<std::uint64_t, PrivatePool>::iterator pool) {
  const auto& arenas = pool->second.arenas;
  const bool empty =
      std::all_of(arenas.begin(), arenas.end(), [](const auto& entry) { return entry.second->records.live() == 0; });
  if (!empty) return std::next(pool);
  for (const auto& [stream, arena] : arenas) {
    arena->pool_reserved = nullptr;
    arenas_.give_back(*arena);
  }
  return pools_.erase(pool);
}

}  // namespace tenon::caching
