// ArenaRegistry: which arenas there are, found by stream; and the lock that whoever looks at several of them takes
// first.
#pragma once

#include "arena.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon::caching {

class ArenaRegistry {
 public:
  explicit ArenaRegistry(Peaks& peaks) : peaks_(peaks) {}

  /// The arena of a stream in the default pool; made at its first request, and never goes.
  [[gnu::always_inline]] Arena& of(StreamRef stream) {
    std::atomic<Arena*>& bucket = default_arenas_[(stream.id ^ stream.id >> 12) % kBuckets];
    Arena* const first = bucket.load(std::memory_order_acquire);
    if (first && first->stream == stream) [[likely]]
      return *first;
    return look_for(bucket, stream);
  }

  /// Taken before any arena's lock by whoever takes several.
  std::mutex& mutex() const { return registry_mutex_; }

  // The rest under mutex().

  const std::vector<std::unique_ptr<Arena>>& all() const { return arenas_; }
  /// Those of the default pool, by stream.
  std::vector<Arena*> default_arenas() const;
  /// An arena for a private pool: one that was given back, or a new one.
  Arena& take(StreamRef stream, std::uint64_t pool);
  /// An empty arena of a pool that is gone.
  void give_back(Arena& arena) { spare_.push_back(&arena); }

 private:
  Arena& look_for(std::atomic<Arena*>& bucket, StreamRef stream);
  Arena& add_locked(StreamRef stream, std::uint64_t pool);

  static constexpr std::size_t kBuckets = 1024;
  std::array<std::atomic<Arena*>, kBuckets> default_arenas_{};  // by stream id, chained; never shrinks
  mutable std::mutex registry_mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Arena*> spare_;
  Peaks& peaks_;
};

}  // namespace tenon::caching
