// PrivatePools: memory that only the requests of one scope use. A scope belongs to the thread that opened it and takes
// every stream of that thread, innermost first, as torch.cuda.use_mem_pool does.
#pragma once

#include "arena/arena_registry.h"

#include <tenon/memory/allocator.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <vector>

namespace tenon::caching {

struct PrivatePool {
  bool owned = true;  ///< false: released, and kept for as long as its memory is in use
  PoolOptions options;
  PoolStats reserved_bytes{};
  std::map<std::uint64_t, Arena*> arenas;  ///< by stream
};

/// Guarded by the registry's lock, but for any_open(); opening and changing pools needs every arena's lock too.
class PrivatePools {
 public:
  explicit PrivatePools(ArenaRegistry& arenas) : arenas_(arenas) {}

  /// Whether any thread has a scope open: only then requests ask where they belong.
  bool any_open() const { return open_scopes_.load(std::memory_order_acquire) != 0; }

  // Each throws Error for a pool that cannot be meant.
  void begin(std::uint64_t id);
  void end(std::uint64_t id);
  void configure(std::uint64_t id, const PoolOptions& options);
  /// The owner is gone: options count no more. False for a pool that does not exist.
  bool release(std::uint64_t id);

  /// The pool of this thread's innermost scope.
  std::optional<std::uint64_t> current() const;
  /// The pool's arena for a stream, made at its first request.
  Arena& arena_of(std::uint64_t id, StreamRef stream);

  std::map<std::uint64_t, PrivatePool>& all() { return pools_; }
  const std::map<std::uint64_t, PrivatePool>& all() const { return pools_; }
  /// Drops a pool whose owner is gone if none of its memory is left. Returns the pool after it.
  std::map<std::uint64_t, PrivatePool>::iterator drop_if_empty(std::map<std::uint64_t, PrivatePool>::iterator pool);

 private:
  struct Scope {
    std::uint64_t pool;
    std::thread::id thread;
  };

  ArenaRegistry& arenas_;
  std::atomic<int> open_scopes_{0};
  std::map<std::uint64_t, PrivatePool> pools_;
  std::vector<Scope> scopes_;  // innermost last
};

}  // namespace tenon::caching
